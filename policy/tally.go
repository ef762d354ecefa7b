package policy

import (
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// Vote is one person's word on a question. The order of votes is that of the journal.
type Vote struct {
	By     stint.Actor // human:NAME
	Roles  []string    // that the person has
	Yes    bool
	Digest stint.Hash // what is said yes to, see [Digest]; zero: the arguments as they were asked about
	Edited bool       // the person changed the arguments, to those of Digest
}

// Admits reports whether a person may decide on a question: nil, or [stint.Denied] with
// the reason. It says nothing of whether the question is still open.
func (v Verdict) Admits(vote Vote) error {
	name, human := strings.CutPrefix(string(vote.By), "human:")
	if !human || name == "" {
		e := stint.Denied.Errorf("policy", "%q is no person, and a person decides", string(vote.By))
		e.Hint = "decide with stint approve or stint deny in a shell of your own"
		return e
	}
	if vote.Edited && !v.Edit {
		e := stint.Denied.Errorf("policy", "the rule %s lets nobody change the arguments", v.Rule)
		e.Hint = "approve them as they are, or deny them and say what should be otherwise"
		return e
	}
	if len(v.Approvers) == 0 || slices.Contains(v.Approvers, "user:"+name) {
		return nil
	}
	for _, role := range vote.Roles {
		if slices.Contains(v.Approvers, role) {
			return nil
		}
	}
	e := stint.Denied.Errorf("policy", "%s is not among those who decide for the rule %s: %s", name, v.Rule, strings.Join(v.Approvers, ", "))
	e.Hint = "ask one of them; stint policy show AGENT prints the rule"
	return e
}

// Tally counts votes: approved once as many distinct people as the quorum said yes to the
// same arguments, denied with the first no, else open. missing is how many have yet to say
// yes. Votes of who may not decide do not count, nor do those after the end. Whoever changes
// the arguments says yes to the new ones; those who said yes before have to look again.
func Tally(votes []Vote, v Verdict) (state stint.ApprovalState, missing int) {
	quorum := max(v.Quorum, 1)
	current := v.Digest
	yes := map[stint.Actor]bool{}
	for _, vote := range votes {
		if v.Admits(vote) != nil {
			continue
		}
		if !vote.Yes {
			return stint.ApprovalDenied, 0
		}
		digest := vote.Digest
		if digest.IsZero() {
			digest = v.Digest
		}
		switch {
		case vote.Edited && digest != current:
			current = digest
			clear(yes)
		case digest != current:
			continue // it is a yes to arguments that were changed since
		}
		if yes[vote.By] = true; len(yes) >= quorum {
			return stint.ApprovalApproved, 0
		}
	}
	return stint.ApprovalOpen, quorum - len(yes)
}

// Expired says what comes at the nth deadline of a question, from 1, and who may decide
// from then on. Each of EscalateTo has one deadline; after the last it is [ExpireDeny].
func (v Verdict) Expired(n int) (what OnExpire, approvers []string) {
	if v.OnExpire != Escalate {
		return or(v.OnExpire, ExpireDeny), v.Approvers
	}
	if n < 1 || n > len(v.EscalateTo) {
		return ExpireDeny, v.Approvers
	}
	if len(v.Approvers) == 0 { // everybody may already
		return Escalate, nil
	}
	return Escalate, slices.Concat(v.Approvers, v.EscalateTo[:n])
}

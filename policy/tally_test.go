package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

func yes(name string, roles ...string) policy.Vote {
	return policy.Vote{By: stint.Actor("human:" + name), Roles: roles, Yes: true}
}

func no(name string, roles ...string) policy.Vote {
	v := yes(name, roles...)
	v.Yes = false
	return v
}

// edit is a yes to other arguments.
func edit(name string, digest byte) policy.Vote {
	v := yes(name)
	v.Edited, v.Digest = true, stint.Hash{digest}
	return v
}

// to is a yes to arguments that were shown.
func to(name string, digest byte) policy.Vote {
	v := yes(name)
	v.Digest = stint.Hash{digest}
	return v
}

func TestTally(t *testing.T) {
	two := policy.Verdict{Rule: "r", Quorum: 2, Edit: true, Digest: stint.Hash{1}}
	gated := two
	gated.Approvers = []string{"approver", "user:bob"}
	for _, c := range []struct {
		name    string
		v       policy.Verdict
		votes   []policy.Vote
		state   stint.ApprovalState
		missing int
	}{
		{"nobody", two, nil, stint.ApprovalOpen, 2},
		{"one by default", policy.Verdict{}, []policy.Vote{yes("ana")}, stint.ApprovalApproved, 0},
		{"one of two", two, []policy.Vote{yes("ana")}, stint.ApprovalOpen, 1},
		{"the same one twice", two, []policy.Vote{yes("ana"), yes("ana")}, stint.ApprovalOpen, 1},
		{"two", two, []policy.Vote{yes("ana"), yes("bob")}, stint.ApprovalApproved, 0},
		{"one no ends it", two, []policy.Vote{yes("ana"), no("bob")}, stint.ApprovalDenied, 0},
		{"also of who said yes", two, []policy.Vote{yes("ana"), no("ana"), yes("bob")}, stint.ApprovalDenied, 0},
		{"after the end", two, []policy.Vote{yes("ana"), yes("bob"), no("cy")}, stint.ApprovalApproved, 0},
		{"who may not", gated, []policy.Vote{yes("ana"), no("cy", "viewer"), yes("bob")}, stint.ApprovalOpen, 1},
		{"by role and by name", gated, []policy.Vote{yes("ana", "viewer", "approver"), yes("bob")}, stint.ApprovalApproved, 0},
		{"an agent", two, []policy.Vote{{By: "agent", Yes: true}, {By: "mcp:ana/x", Yes: true}, {By: "human:", Yes: true}}, stint.ApprovalOpen, 2},
		{"as they were shown", two, []policy.Vote{to("ana", 1), yes("bob")}, stint.ApprovalApproved, 0},
		{"other arguments than are asked about", two, []policy.Vote{to("ana", 9), yes("bob")}, stint.ApprovalOpen, 1},
		{"an edit begins anew", two, []policy.Vote{yes("ana"), edit("bob", 2)}, stint.ApprovalOpen, 1},
		{"an edit and a yes to it", two, []policy.Vote{yes("ana"), edit("bob", 2), to("ana", 2)}, stint.ApprovalApproved, 0},
		{"an edit and a yes to the old ones", two, []policy.Vote{edit("bob", 2), to("ana", 1), yes("cy")}, stint.ApprovalOpen, 1},
		{"the same edit twice", two, []policy.Vote{edit("bob", 2), edit("ana", 2)}, stint.ApprovalApproved, 0},
		{"edits that differ", two, []policy.Vote{edit("bob", 2), edit("ana", 3), to("bob", 2)}, stint.ApprovalOpen, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if state, missing := policy.Tally(c.votes, c.v); state != c.state || missing != c.missing {
				t.Errorf("got %s, %d missing", state, missing)
			}
		})
	}
	fixed := two
	fixed.Edit, fixed.Quorum = false, 1
	if state, _ := policy.Tally([]policy.Vote{edit("ana", 2)}, fixed); state != stint.ApprovalOpen {
		t.Errorf("arguments that nobody may change: %s", state)
	}
}

// Who is refused is told why, and what to do.
func TestAdmits(t *testing.T) {
	v := policy.Verdict{Rule: "prod", Approvers: []string{"approver", "user:bob"}}
	for _, c := range []struct {
		vote policy.Vote
		want string
	}{
		{yes("ana", "approver"), ""},
		{yes("bob"), ""},
		{yes("ana", "admin"), "ana is not among those who decide for the rule prod: approver, user:bob"},
		{yes("bo"), "bo is not among"},
		{policy.Vote{By: "session:x", Roles: []string{"approver"}}, `"session:x" is no person`},
		{policy.Vote{By: "bob"}, `"bob" is no person`},
		{edit("bob", 1), "the rule prod lets nobody change the arguments"},
	} {
		err := v.Admits(c.vote)
		var e *stint.Error
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &e) || e.Code != stint.Denied || e.Hint == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v", c.vote, err)
		}
	}
}

// However people vote: the end is that of the first votes that make one, those who may not
// decide change nothing, a yes needs as many people as were wanted, and one no is enough.
func TestTallyProperty(t *testing.T) {
	votes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Vote {
		v := policy.Vote{By: stint.Actor(rapid.SampledFrom([]string{"human:ana", "human:bob", "human:cy", "human:dee", "agent", "mcp:ana/x"}).Draw(t, "by")),
			Roles: rapid.SampledFrom([][]string{nil, {"viewer"}, {"viewer", "approver"}}).Draw(t, "roles"), Yes: rapid.IntRange(0, 5).Draw(t, "yes") > 0}
		if rapid.IntRange(0, 3).Draw(t, "sees") == 0 {
			v.Digest, v.Edited = stint.Hash{rapid.ByteRange(1, 3).Draw(t, "digest")}, rapid.Bool().Draw(t, "edited")
		}
		return v
	}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		v := policy.Verdict{Rule: "r", Quorum: rapid.IntRange(0, 4).Draw(t, "quorum"), Edit: rapid.Bool().Draw(t, "edit"), Digest: stint.Hash{1},
			Approvers: rapid.SampledFrom([][]string{nil, {"approver"}, {"approver", "user:dee"}, {"user:ana", "user:bob"}}).Draw(t, "approvers")}
		all := votes.Draw(t, "votes")
		state, missing := policy.Tally(all, v)
		quorum := max(v.Quorum, 1)
		if (state == stint.ApprovalOpen) != (missing > 0) || missing > quorum {
			t.Fatalf("%s, and %d are missing", state, missing)
		}
		for n := range all {
			if was, _ := policy.Tally(all[:n], v); was != stint.ApprovalOpen && was != state {
				t.Fatalf("%s after %d votes, %s after all", was, n, state)
			}
		}
		admitted := slices.DeleteFunc(slices.Clone(all), func(x policy.Vote) bool { return v.Admits(x) != nil })
		if s, m := policy.Tally(admitted, v); s != state || m != missing {
			t.Fatalf("%s without those who may not decide, %s with them", s, state)
		}
		people := map[stint.Hash]map[stint.Actor]bool{}
		refused := false
		for _, x := range admitted {
			digest := x.Digest
			if digest.IsZero() {
				digest = v.Digest
			}
			if people[digest] == nil {
				people[digest] = map[stint.Actor]bool{}
			}
			people[digest][x.By] = people[digest][x.By] || x.Yes
			refused = refused || !x.Yes
		}
		enough := false
		for _, by := range people {
			n := 0
			for _, agrees := range by {
				if agrees {
					n++
				}
			}
			enough = enough || n >= quorum
		}
		switch {
		case state == stint.ApprovalApproved && !enough:
			t.Fatalf("approved by too few: %+v", admitted)
		case state == stint.ApprovalDenied && !refused:
			t.Fatalf("denied by nobody: %+v", admitted)
		case state == stint.ApprovalOpen && refused:
			t.Fatalf("open after a no: %+v", admitted)
		}
	})
}

func TestExpired(t *testing.T) {
	v := policy.Verdict{Approvers: []string{"approver"}, OnExpire: policy.Escalate, EscalateTo: []string{"user:ana", "admin"}}
	var got []string
	for n := range 4 {
		what, who := v.Expired(n)
		got = append(got, fmt.Sprint(what, who))
	}
	if want := "deny[approver] escalate[approver user:ana] escalate[approver user:ana admin] deny[approver]"; strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
	v.Approvers = nil
	if what, who := v.Expired(1); what != policy.Escalate || who != nil {
		t.Errorf("everybody might decide, and now %s", who)
	}
	for given, want := range map[policy.OnExpire]policy.OnExpire{"": policy.ExpireDeny, policy.ExpireDeny: policy.ExpireDeny, policy.ExpireStop: policy.ExpireStop, policy.ExpireAsk: policy.ExpireAsk} {
		if what, _ := (policy.Verdict{OnExpire: given}).Expired(7); what != want {
			t.Errorf("%q: got %s", given, what)
		}
	}
}

func TestGrants(t *testing.T) {
	now := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	p := compile(t, named("pushes", policy.Match{Effect: []stint.Effect{stint.Once}}))
	call := push()
	call.Session = stint.ID{7}
	v := p.Judge(call)
	whole := policy.Grant{ID: "g1", Scope: policy.InStore, Rule: "pushes", Tool: "github.*", Effect: stint.Once, When: "true", By: "human:ana"}
	for _, c := range []struct {
		name string
		edit func(g *policy.Grant, c *policy.Call, v *policy.Verdict)
		want bool
	}{
		{"store", func(*policy.Grant, *policy.Call, *policy.Verdict) {}, true},
		{"agent", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.Scope, g.Agent = policy.OfAgent, "triage" }, true},
		{"other agent", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.Scope, g.Agent = policy.OfAgent, "other" }, false},
		{"session", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) {
			g.Scope, g.Session = policy.InSession, stint.ID{7}
		}, true},
		{"other session", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) {
			g.Scope, g.Session = policy.InSession, stint.ID{8}
		}, false},
		{"digest", func(g *policy.Grant, _ *policy.Call, v *policy.Verdict) { g.When, g.Digest = "", v.Digest }, true},
		{"the same arguments otherwise written", func(g *policy.Grant, c *policy.Call, v *policy.Verdict) {
			g.When, g.Digest, c.Input = "", v.Digest, []byte(`{ "id": 9007199254740993, "branch": "m\u0061in" }`)
		}, true},
		{"other arguments", func(g *policy.Grant, c *policy.Call, v *policy.Verdict) {
			g.When, g.Digest, c.Input = "", v.Digest, []byte(`{"branch":"main","id":9007199254740992}`)
		}, false},
		{"condition", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.When = `args.branch == "main"` }, true},
		{"condition that is false", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.When = `args.branch == "x"` }, false},
		{"condition that does not fit", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.When = `args.amount < 5` }, false},
		{"other tool", func(g *policy.Grant, _ *policy.Call, _ *policy.Verdict) { g.Tool = "slack.*" }, false},
		{"other effect", func(_ *policy.Grant, c *policy.Call, _ *policy.Verdict) { c.Effect = stint.Idempotent }, false},
		{"other rule", func(_ *policy.Grant, _ *policy.Call, v *policy.Verdict) { v.Rule = policy.TaintedOnce }, false},
		{"no standing grants", func(_ *policy.Grant, _ *policy.Call, v *policy.Verdict) { v.Grantable = false }, false},
		{"a fault", func(_ *policy.Grant, _ *policy.Call, v *policy.Verdict) { v.Fault = "x" }, false},
		{"nothing asked", func(_ *policy.Grant, _ *policy.Call, v *policy.Verdict) { v.Do = policy.Deny }, false},
		{"a verb", func(_ *policy.Grant, c *policy.Call, _ *policy.Verdict) { c.Verb = policy.Branch }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, call, v := whole, call, v
			c.edit(&g, &call, &v)
			g, err := policy.NewGrant(g, now)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := policy.Granted([]policy.Grant{g}, v, call, now); ok != c.want || ok && got.ID != "g1" {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
	g, err := policy.NewGrant(whole, now)
	if err != nil || g.Expires.Sub(now) != 30*24*time.Hour || !g.At.Equal(now) {
		t.Fatalf("got %+v, %v", g, err)
	}
	for at, want := range map[time.Duration]bool{-1: false, 0: true, policy.GrantLife - 1: true, policy.GrantLife: false} {
		if got, err := g.Covers(call, now.Add(at)); got != want || err != nil {
			t.Errorf("%s: got %v, %v", at, got, err)
		}
	}
	if got, err := (&policy.Grant{At: now, Expires: now.Add(1), Scope: policy.InStore, Tool: "*", Effect: stint.Once}).Covers(call, now); got || stint.CodeOf(err) != stint.Invalid {
		t.Errorf("a grant that nobody checked: %v, %v", got, err)
	}
}

func TestGrantsThatAreNone(t *testing.T) {
	now := time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)
	for want, edit := range map[string]func(*policy.Grant){
		"names no rule":           func(g *policy.Grant) { g.Rule = "" },
		"is no person":            func(g *policy.Grant) { g.By = "agent" },
		"for a session and names": func(g *policy.Grant) { g.Scope = policy.InSession },
		"for an agent and names":  func(g *policy.Grant) { g.Scope = policy.OfAgent },
		"expected session, agent": func(g *policy.Grant) { g.Scope = "all" },
		"and not both":            func(g *policy.Grant) { g.Digest = stint.Hash{1} },
		"the digest of arguments": func(g *policy.Grant) { g.When = "" },
		"unknown name x":          func(g *policy.Grant) { g.When = "x" },
		"expected the name":       func(g *policy.Grant) { g.Tool = "" },
		"expected read":           func(g *policy.Grant) { g.Effect = "" },
		"ended before it begins":  func(g *policy.Grant) { g.Expires = now },
		"more than a year":        func(g *policy.Grant) { g.Expires = now.Add(policy.MaxGrantLife + 1) },
	} {
		g := policy.Grant{Scope: policy.InStore, Rule: "r", Tool: "*", Effect: stint.Once, When: "true", By: "human:ana"}
		edit(&g)
		_, err := policy.NewGrant(g, now)
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

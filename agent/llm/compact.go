package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// askSummary is what the model is told at the end of what it is to summarise.
const askSummary = "Stop here. Write a summary of everything above, for yourself: it will stand in place of these messages. " +
	"Keep what was asked for and decided, what was done and what it gave (names, ids, paths and numbers exactly), what failed and why, and what is still to do. " +
	"Write the summary and nothing else."

// minExcerpted is the shortest text that is excerpted harder, in bytes.
const minExcerpted = 1024

// compact makes the transcript shorter. What stands before a boundary gives way to a
// summary, where the newest keep tokens behind the boundary stay; boundaries lie before an
// answer, so that no call loses its result. If it is then longer than most tokens, the
// longest texts in it are excerpted.
func (p *pass) compact(ctx context.Context, keep, most int64) error {
	perToken := float64(len(p.t.raw)+p.offer().size()) / float64(max(1, p.estimate()))
	if i := p.boundary(int(float64(keep) * perToken)); i > 0 {
		summary, err := p.summary(ctx, i)
		if err != nil {
			return err
		}
		if err := p.replace(i, summary); err != nil {
			return err
		}
		p.mem.Used = 0
	}
	if room := int(float64(most)*perToken) - p.offer().size(); len(p.t.raw) > room {
		p.mem.Used = 0
		return p.shrink(room)
	}
	return nil
}

// boundary is the first message that stays, with about keep bytes; 0 where nothing worth
// it lies before one.
func (p *pass) boundary(keep int) int {
	at := 0
	for i := len(p.t.msgs) - 1; i > 0; i-- {
		if p.t.msgs[i].Role != model.Assistant {
			continue
		}
		if at > 0 && p.t.from(i) > keep {
			break
		}
		at = i
	}
	if at < 3 {
		return 0 // before it is the task alone, or the summary
	}
	return at
}

// summary asks the model for a summary of the messages before the i-th. If it cannot
// give one, what it returns says so.
func (p *pass) summary(ctx context.Context, i int) (string, error) {
	o := p.offer()
	req := o.request
	req.Session = p.ses.ID.String()
	req.Messages = slices.Clone(p.t.msgs[:i])
	last := &req.Messages[i-1]
	last.Parts = append(slices.Clip(last.Parts), model.Part{Text: askSummary})
	if len(req.Tools) > 0 {
		req.Choice.Mode = model.Never
	}
	ans, err := p.put(ctx, question{step: "compact", model: p.a.spec.Model, req: &req, input: p.input(o, i), tokens: int64(p.t.at[i]+o.size()) / 4,
		settled: func(k model.Kind) bool { return !k.Retryable() }})
	why := ""
	switch {
	case err != nil && !definite(err):
		return "", err
	case err != nil:
		why = err.Error()
	case strings.TrimSpace(ans.msg.Text()) == "" || ans.Stop == model.Refusal:
		why = "the model gave none"
	default:
		return fmt.Sprintf("[stint: the %d messages that stood here were long. A summary of them:]\n\n%s", i, ans.msg.Text()), nil
	}
	why, _ = tool.Clean([]byte(oneLine(why, 300)))
	return fmt.Sprintf("[stint: %d messages that stood here are left out. There is no summary of them: %s]", i, why), nil
}

// replace puts the task and a summary in place of the messages before the i-th.
func (p *pass) replace(i int, summary string) error {
	old := p.t
	p.t = &transcript{raw: make([]byte, 0, old.from(i)+len(summary)+len(p.mem.Task)+256)}
	first := []string{summary}
	if strings.TrimSpace(p.mem.Task) != "" {
		first = []string{p.mem.Task, summary}
	}
	if err := p.t.say(first...); err != nil {
		return err
	}
	for k := i; k < len(old.msgs); k++ {
		p.t.put(old.msgs[k], old.encoded(k))
	}
	return nil
}

// encoded is the JSON of the i-th message.
func (t *transcript) encoded(i int) []byte {
	if i+1 < len(t.at) {
		return t.raw[t.at[i] : t.at[i+1]-1]
	}
	return t.raw[t.at[i]:]
}

// shrink excerpts the longest texts of the user's side, results first, until the
// transcript has at most room bytes or nothing long is left.
func (p *pass) shrink(room int) error {
	changed := map[int]bool{}
	size := len(p.t.raw)
	for _, results := range []bool{true, false} {
		for size > room {
			i, k, text := p.longest(results)
			if len(text) <= minExcerpted {
				break
			}
			part := &p.t.msgs[i].Parts[k]
			how := ""
			if r := part.Result; r != nil && slices.ContainsFunc(p.mem.Long, func(l long) bool { return l.Call == r.Call }) {
				how = readHow(r.Call)
			}
			shorter := tool.Excerpt(text, max(minExcerpted, len(text)/2), how)
			if !changed[i] { // what was sent before is not changed
				p.t.msgs[i].Parts = slices.Clone(p.t.msgs[i].Parts)
				part, changed[i] = &p.t.msgs[i].Parts[k], true
			}
			if part.Result != nil {
				r := *part.Result
				r.Text = shorter
				part.Result = &r
			} else {
				part.Text = shorter
			}
			size -= len(text) - len(shorter)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	old := p.t
	p.t = &transcript{raw: make([]byte, 0, len(old.raw))}
	for i, m := range old.msgs {
		enc := old.encoded(i)
		if changed[i] {
			var err error
			if enc, err = stint.Marshal(m); err != nil {
				return err
			}
		}
		p.t.put(m, enc)
	}
	return nil
}

// longest finds the longest result, or the longest other text of the user's side.
func (p *pass) longest(results bool) (message, part int, text string) {
	for i := range p.t.msgs {
		if p.t.msgs[i].Role != model.User {
			continue
		}
		for k, q := range p.t.msgs[i].Parts {
			s := q.Text
			if results != (q.Result != nil) {
				continue
			}
			if q.Result != nil {
				s = q.Result.Text
			}
			if len(s) > len(text) {
				message, part, text = i, k, s
			}
		}
	}
	return message, part, text
}

package engine

import (
	"fmt"

	"github.com/stint-dev/stint"
)

// frugal is implemented by agents that can do something about a limit that is nearly used
// up, and want to hear of it. To a program a message that nobody sent is an order that
// nobody gave.
type frugal interface{ HearsLimits() }

// nearLimit tells the agent, before its next loop, of each limit of which four fifths are
// used: once, for the message of one limit has one id, in whichever drive it is sent.
func (d *driver) nearLimit(s *stint.Session) error {
	if _, ok := d.agent.Loop.(frugal); !ok {
		return nil
	}
	lim, u := s.Limits, s.Totals.Usage
	told := false
	for _, l := range []struct {
		name      string
		used, max int64
		figure    string
	}{
		{"loops", int64(s.Totals.Loops), int64(lim.Loops), counted(lim.Loops, "loop")},
		{"steps", int64(s.Totals.Steps), int64(lim.Steps), counted(lim.Steps, "step")},
		{"tool_calls", int64(s.Totals.Tools), int64(lim.ToolCalls), counted(lim.ToolCalls, "call") + " of tools"},
		{"tokens", u.Tokens(), lim.Tokens, fmt.Sprintf("%d tokens", lim.Tokens)},
		{"cost", int64(u.Cost), int64(lim.Cost), fmt.Sprintf("$%v", lim.Cost)},
	} {
		id := fmt.Sprintf("limit-80-%s-%d", l.name, l.max)
		if l.max <= 0 || l.used < l.max-l.max/5 || d.noticed[id] {
			continue
		}
		if d.noticed == nil {
			d.noticed = map[string]bool{}
		}
		d.noticed[id], told = true, true
		text := fmt.Sprintf("Of %s that this session may use, 80 %% are used. Come to an end, or leave what is not needed.", l.figure)
		if err := d.e.store.Send(d.io, s.ID, stint.Message{ID: id, Kind: stint.Prompt, From: stint.ByEngine, Body: []byte(text)}); err != nil {
			d.e.opt.Log.Warn("an agent is not told of its limit", "session", s.ID, "error", err)
		}
	}
	if !told {
		return nil
	}
	return d.readInbox()
}

package http_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
)

// TestSpawn: an agent behind a URL begins a child between its steps, names it again in each
// request that follows, and hears of its end.
func TestSpawn(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, func(k *talk) {
		switch {
		case k.loop.Session.Name == "kid":
			k.say(`{"type":"end","outcome":"complete","result":"dug"}`)
		case k.loop.Loop == 2:
			k.say(fmt.Sprintf(`{"type":"end","outcome":"complete","result":%q}`, k.loop.Inbox[0].Child.Outcome+" "+k.loop.Inbox[0].Child.Name))
		default:
			k.step("look", "read", c.do("look"))
			k.id++
			k.say(fmt.Sprintf(`{"type":"spawn","id":%d,"agent":"clerk","name":"kid","input":{"n":1}}`, k.id))
			if got := string(k.outcome(k.id, nil)); !strings.HasPrefix(got, `{"session":"`) {
				t.Errorf("the spawn gave %s", got)
			}
			k.step("refund", "once", c.do("refund"))
			k.say(`{"type":"end","outcome":"wait","wait":{"for":"child"}}`)
		}
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || ses.Totals.Children != 1 || ses.Totals.Steps != 3 {
		t.Errorf("the session is %s (%s) after %+v\n%s", ses.Status, ses.Reason, ses.Totals, r.journal())
	}
	contains(t, "the journal", r.journal(), "completed kid")
	if got := c.done(); len(got) != 2 {
		t.Errorf("the effects are %q", got)
	}
}

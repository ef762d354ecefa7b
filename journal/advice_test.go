package journal_test

import (
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// inVain is what a loop does, by a letter.
func inVain() map[rune]func(c *chain) {
	ends := func(c *chain, state []byte, r journal.Rollup) {
		ref, body := c.encode(state)
		c.must(journal.Draft{Kind: stint.LoopCompleted, Pos: c.at(0, 0), Data: journal.LoopCompleted{MS: 5, State: ref, Rollup: r}, Body: body})
	}
	calls := func(c *chain, input, result string) {
		c.must(journal.Draft{Kind: stint.StepCompleted, Pos: c.at(1, 0), Body: []byte(result), Data: journal.StepDone{
			StepRequested: journal.StepRequested{Name: "search", Kind: stint.Tool, Effect: stint.Read, Input: input}}})
	}
	fails := func(c *chain, final bool) {
		c.must(journal.Draft{Kind: stint.LoopFailed, Pos: c.at(0, 0), Data: journal.LoopFailed{Error: "no route", Final: final}})
	}
	grown := func(c *chain) []byte { return []byte(`{"transcript":"` + strings.Repeat("x", len(c.es)) + `"}`) }
	by := journal.Rollup{Models: 1, Tools: 1}
	return map[rune]func(c *chain){
		'.': func(c *chain) { ends(c, grown(c), journal.Rollup{}) },                       // comes to something
		'0': func(c *chain) { ends(c, nil, journal.Rollup{Tools: 1}) },                    // leaves the state as it is
		'e': func(c *chain) { ends(c, nil, journal.Rollup{Effects: 1}) },                  // and does something outside
		'a': func(c *chain) { calls(c, "a", "one"); ends(c, grown(c), by) },               // a model's call
		'b': func(c *chain) { calls(c, "a", "two"); ends(c, grown(c), by) },               // with another result
		'c': func(c *chain) { calls(c, "b", "one"); ends(c, grown(c), by) },               // another call
		'p': func(c *chain) { calls(c, "a", "one"); ends(c, grown(c), journal.Rollup{}) }, // a program's
		'r': func(c *chain) { fails(c, false); c.loop(); ends(c, grown(c), by) },          // the second attempt does it
		'!': func(c *chain) { fails(c, true) },
		'?': func(*chain) {}, // under way
	}
}

// TestAdvice names the checkpoint before the loops that were in vain.
func TestAdvice(t *testing.T) {
	do := inVain()
	for _, tt := range []struct {
		loops string
		from  int
		why   string // empty: no advice
	}{
		{"", 0, ""},
		{"...", 0, ""},
		{"..?", 0, ""},
		{"..!", 2, "loop 3 failed: no route"},
		{"!", 0, "loop 1 failed: no route"},
		{"..0", 2, "loop 3 came to nothing"},
		{"..00!", 2, "loops 3 to 4 came to nothing, and loop 5 failed: no route"},
		{"..00?", 2, "loops 3 to 4 came to nothing"},
		{".0.", 0, ""},
		{".0.!", 3, "loop 4 failed: no route"},
		{".ee!", 3, "loop 4 failed: no route"},
		{"0", 0, "loop 1 came to nothing"},
		{"00", 0, "loops 1 to 2 came to nothing"},
		{".aaa", 2, "loops 3 to 4 came to nothing"},
		{".ab", 0, ""},
		{".ac", 0, ""},
		{".aa!", 2, "loop 3 came to nothing, and loop 4 failed: no route"},
		{".pp", 0, ""},
		{".r", 0, ""},
	} {
		t.Run(tt.loops, func(t *testing.T) {
			c := begun(t)
			for _, l := range tt.loops {
				c.loop()
				do[l](c)
			}
			if p := planOf(t, c, 0); p.Advice != tt.why || tt.why != "" && p.Advised != tt.from {
				t.Fatalf("%d: %s", p.Advised, p.Advice)
			}
		})
	}
	t.Run("behind what another line left", func(t *testing.T) {
		c := begun(t)
		for _, l := range "..aa" {
			c.loop()
			do[l](c)
		}
		fresh(2, nil)(c)
		c.loop()
		do['a'](c)
		if p := planOf(t, c, 0); p.Advice != "" {
			t.Fatalf("the calls of a line that was left count: %s", p.Advice)
		}
	})
}

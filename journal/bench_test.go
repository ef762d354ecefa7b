package journal_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// stepDraft is what a step of an agent comes to: its result has size bytes.
func stepDraft(c *chain, size int) journal.Draft {
	return journal.Draft{
		Kind: stint.StepCompleted, Pos: c.at(1, 0), Epoch: 1, At: base(), Actor: stint.ByAgent, Salt: saltOf(1),
		Data: journal.StepDone{
			StepRequested: journal.StepRequested{Name: "github.list_issues", Kind: stint.Tool, Effect: stint.Idempotent, Input: "0123456789abcdef01234567"},
			MS:            184, Usage: stint.Usage{Input: 1200, Output: 80, Cost: 4_200_000},
		},
		Body: bytes.Repeat([]byte("x"), size),
	}
}

func BenchmarkNext(b *testing.B) {
	for _, size := range []int{256, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			c := begun(b)
			c.loop()
			d := stepDraft(c, size)
			s := c.s
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if s, _, err = journal.Next(s, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerifier(b *testing.B) {
	c := begun(b)
	c.loop()
	for i := range 1000 {
		d := stepDraft(c, 256)
		d.Pos.Step = i + 1
		c.must(d)
	}
	c.complete(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := verifyAll(c.es); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.es)), "ns/entry")
}

func BenchmarkReadState(b *testing.B) {
	s, _, cps, _ := grow(b, 1000, 1024)
	b.SetBytes(cps[999].Size)
	b.ReportAllocs()
	for b.Loop() {
		s.read(cps[999])
	}
}

package journal_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// TestHandWrittenJSON compares the data that is written by hand with what
// encoding/json makes of the same value: byte for byte, and read back.
func TestHandWrittenJSON(t *testing.T) {
	t.Run("loop.started", rapid.MakeCheck(func(t *rapid.T) {
		d := journal.LoopStarted{Why: drawText(t, "why")}
		sameJSON(t, begun(t), journal.Draft{Kind: stint.LoopStarted, Pos: stint.Position{Loop: 1, Attempt: 1}, Data: d})
	}))
	t.Run("step.requested", rapid.MakeCheck(func(t *rapid.T) {
		c := begun(t)
		c.loop()
		sameJSON(t, c, journal.Draft{Kind: stint.StepRequested, Pos: c.at(1, 0), Data: drawStepDone(t).StepRequested})
	}))
	t.Run("step.completed", rapid.MakeCheck(func(t *rapid.T) {
		c := begun(t)
		c.loop()
		kind := rapid.SampledFrom([]stint.Kind{stint.StepCompleted, stint.StepFailed}).Draw(t, "kind")
		sameJSON(t, c, journal.Draft{Kind: kind, Pos: c.at(1, 0), Data: drawStepDone(t)})
	}))
	t.Run("loop.completed", rapid.MakeCheck(func(t *rapid.T) {
		c := begun(t)
		c.loop()
		sameJSON(t, c, journal.Draft{Kind: stint.LoopCompleted, Pos: c.at(0, 0), Data: drawLoopCompleted(t)})
	}))
}

// sameJSON makes an entry of d and compares its data with json.Marshal's.
func sameJSON(t *rapid.T, c *chain, d journal.Draft) {
	e := c.must(d)
	want := toJSON(t, d.Data)
	if !bytes.Equal(e.Data, want) {
		t.Fatalf("written by hand\n%q\nencoding/json\n%q", e.Data, want)
	}
	got, fresh := reflect.New(reflect.TypeOf(d.Data)), reflect.New(reflect.TypeOf(d.Data))
	if err := json.Unmarshal(e.Data, got.Interface()); err != nil {
		t.Fatalf("%q: %v", e.Data, err)
	}
	if err := json.Unmarshal(want, fresh.Interface()); err != nil {
		t.Fatalf("%q: %v", want, err)
	}
	if !reflect.DeepEqual(got.Interface(), fresh.Interface()) {
		t.Fatalf("%+v, want %+v", got.Elem(), fresh.Elem())
	}
	if !reflect.DeepEqual(got.Elem().Interface(), d.Data) {
		t.Fatalf("read back %+v, want %+v", got.Elem(), d.Data)
	}
}

// drawText gives plain words, and everything that makes JSON strings hard.
func drawText(t *rapid.T, label string) string {
	if rapid.Bool().Draw(t, label+" is plain") {
		return rapid.StringMatching(`[ -~]{0,20}`).Draw(t, label)
	}
	return rapid.StringOf(rapid.OneOf(
		rapid.RuneFrom([]rune("\"\\/<>&\b\f\n\r\t\x00\x1f\x7f\u0080\u2028\u2029\ufffd\U0001F600é")), rapid.Rune(),
	)).Draw(t, label)
}

func drawCount(t *rapid.T, label string) int64 {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1000), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 1 << 53, -1}), rapid.Int64()).Draw(t, label)
}

// drawCost stays below nine billion dollars, which is what Money reads.
func drawCost(t *rapid.T) stint.Money {
	return stint.Money(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1e10), rapid.Int64Range(-9e18+1, 9e18-1)).Draw(t, "cost"))
}

func drawAnyUsage(t *rapid.T) stint.Usage {
	return stint.Usage{Input: drawCount(t, "in"), Output: drawCount(t, "out"), CacheRead: drawCount(t, "read"), CacheWrite: drawCount(t, "write"), Cost: drawCost(t)}
}

func drawStepDone(t *rapid.T) journal.StepDone {
	d := journal.StepDone{
		StepRequested: journal.StepRequested{
			Name: drawText(t, "name"), Kind: stint.StepKind(drawText(t, "kind")), Effect: stint.Effect(drawText(t, "effect")), Input: drawText(t, "input"), Reserve: drawAnyUsage(t),
		},
		MS: drawCount(t, "ms"), Usage: drawAnyUsage(t), Error: drawText(t, "error"), Definite: rapid.Bool().Draw(t, "definite"), Final: rapid.Bool().Draw(t, "final"),
	}
	d.Args = json.RawMessage(rapid.SampledFrom([]string{"", `{}`, `[1,2.50,"x"]`, `{"a":{"b":null}}`, `"é"`, `1e400`}).Draw(t, "args"))
	if len(d.Args) == 0 {
		d.Args = nil
	}
	return d
}

func drawLoopCompleted(t *rapid.T) journal.LoopCompleted {
	n := func(label string) int { return int(int32(drawCount(t, label))) }
	return journal.LoopCompleted{
		Rollup: journal.Rollup{Steps: n("steps"), Models: n("models"), Tools: n("tools"), Effects: n("effects"), Errors: n("errors"), Usage: drawAnyUsage(t)},
		MS:     drawCount(t, "ms"), Headline: drawText(t, "headline"), Ran: time.Duration(drawCount(t, "ran")),
		State: journal.StateRef{
			Enc: journal.Encoding(drawText(t, "enc")), Base: stint.Seq(drawCount(t, "base")), Rank: n("rank"), Weight: drawCount(t, "weight"), Size: drawCount(t, "size"),
			Sum: stint.Hash(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x9a, 0xff}), 32, 32).Draw(t, "sum")),
		},
	}
}

// TestArgsAsGiven keeps a step's input byte for byte: white space, escapes and
// the characters that encoding/json would escape.
func TestArgsAsGiven(t *testing.T) {
	args := `{ "url": "https://example.com/?a=1&b=<2>", "n": 1.0 }`
	c := begun(t)
	c.loop()
	e := c.must(journal.Draft{Kind: stint.StepCompleted, Pos: c.at(1, 0), Data: journal.StepDone{Args: json.RawMessage(args)}})
	d, err := journal.Decode[journal.StepDone](&e)
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Args) != args {
		t.Fatalf("the input came back as %s", d.Args)
	}
}

// TestLimits is what one entry may hold.
func TestLimits(t *testing.T) {
	const maxData = 64 << 10
	big := bytes.Repeat([]byte("x"), maxData)
	for _, tt := range []struct {
		name string
		d    journal.Draft
		want stint.Code
	}{
		{"an inline body", journal.Draft{Body: big[:journal.InlineBytes]}, ""},
		{"a longer body", journal.Draft{Body: big[:journal.InlineBytes+1]}, stint.Invalid},
		{"the longest blob", journal.Draft{Blob: stint.BlobRef{Size: journal.MaxBody}}, ""},
		{"a longer blob", journal.Draft{Blob: stint.BlobRef{Size: journal.MaxBody + 1}}, stint.Limit},
		{"a longer body than any", journal.Draft{Body: make([]byte, journal.MaxBody+1)}, stint.Limit},
		{"the longest data", journal.Draft{Data: journal.Output{Stream: string(big[:maxData-len(`{"stream":""}`)])}}, ""},
		{"longer data", journal.Draft{Data: journal.Output{Stream: string(big[:maxData-len(`{"stream":""}`)+1])}}, stint.Limit},
		{"data that is no JSON", journal.Draft{Data: func() {}}, stint.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			d := tt.d
			d.Kind, d.Pos, d.At, d.Epoch = stint.OutputWritten, c.at(0, 0), base(), c.epoch
			if d.Data == nil {
				d.Data = journal.Output{Stream: "stdout"}
			}
			_, _, err := journal.Next(c.s, d)
			wantCode(t, err, tt.want)
		})
	}
}

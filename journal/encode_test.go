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
	t.Run("session.created", rapid.MakeCheck(func(t *rapid.T) {
		d := drawCreated(t)
		c := newChain(t)
		sameJSON(t, c, journal.Draft{Kind: stint.SessionCreated, Data: d})
		if d.Labels != nil {
			d.Labels["later"] = "the caller's map is not the session's"
		}
		if _, there := c.s.Labels["later"]; there {
			t.Fatal("the session's labels changed with the caller's")
		}
	}))
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
		c := newChain(t)
		c.epoch = 0 // a branch, which may begin with steps of its parent
		first := createdData()
		first.Parent = stint.Parent{Session: testID(2), Seq: 1, Hash: stint.Hash{9}, Branch: true}
		c.must(journal.Draft{Kind: stint.SessionCreated, Data: first})
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

func drawHash(t *rapid.T, label string) stint.Hash {
	return stint.Hash(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x9a, 0xff}), 32, 32).Draw(t, label))
}

func drawID(t *rapid.T, label string) stint.ID {
	return rapid.SampledFrom([]stint.ID{{}, testID(1), testID(2)}).Draw(t, label)
}

// drawMoment is a time as an entry says it, or none.
func drawMoment(t *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(t, "no "+label) {
		return time.Time{}
	}
	return time.UnixMicro(rapid.Int64Range(-62e15, 253e15).Draw(t, label)).UTC()
}

func drawCreated(t *rapid.T) journal.Created {
	d := journal.Created{
		Family: drawID(t, "family"), Name: drawText(t, "name"),
		Agent:   stint.AgentRef{Name: drawText(t, "agent"), Runtime: drawText(t, "runtime"), Pin: drawHash(t, "pin")},
		Config:  drawRaw(t, "config"),
		Trigger: stint.Trigger{Kind: rapid.SampledFrom([]string{"prompt", "a<b"}).Draw(t, "trigger"), Ref: drawText(t, "ref"), Due: drawMoment(t, "due")},
		Limits: stint.Limits{
			Wall: time.Duration(drawCount(t, "wall")), Idle: time.Duration(drawCount(t, "idle")), Deadline: drawMoment(t, "deadline"), Loops: int(drawCount(t, "loops")),
			Steps: int(drawCount(t, "steps")), Tokens: drawCount(t, "tokens"), Cost: drawCost(t), Stop: rapid.Bool().Draw(t, "stop"),
		},
	}
	for range rapid.IntRange(0, 3).Draw(t, "labels") {
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		d.Labels[drawText(t, "label")] = drawText(t, "value")
	}
	return d
}

// drawRaw is compact JSON, or none.
func drawRaw(t *rapid.T, label string) json.RawMessage {
	s := rapid.SampledFrom([]string{"", `{}`, `[1,2.50,"x"]`, `{"a":{"b":null}}`, `"é"`, `1e400`}).Draw(t, label)
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
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
			Name: drawText(t, "name"), Kind: stint.StepKind(drawText(t, "kind")), Effect: stint.Effect(drawText(t, "effect")), Input: drawText(t, "input"), Asked: drawText(t, "asked"), Rule: drawText(t, "rule"), Child: rapid.Bool().Draw(t, "child"), Reserve: drawAnyUsage(t),
		},
		MS: drawCount(t, "ms"), Usage: drawAnyUsage(t), Error: drawText(t, "error"), Definite: rapid.Bool().Draw(t, "definite"), Final: rapid.Bool().Draw(t, "final"), Copied: rapid.Bool().Draw(t, "copied"),
	}
	d.Args = drawRaw(t, "args")
	return d
}

func drawLoopCompleted(t *rapid.T) journal.LoopCompleted {
	n := func(label string) int { return int(int32(drawCount(t, label))) }
	return journal.LoopCompleted{
		Rollup: journal.Rollup{Steps: n("steps"), Models: n("models"), Tools: n("tools"), Effects: n("effects"), Errors: n("errors"), Usage: drawAnyUsage(t)},
		MS:     drawCount(t, "ms"), Headline: drawText(t, "headline"), Ran: time.Duration(drawCount(t, "ran")),
		State: journal.StateRef{
			Enc: journal.Encoding(drawText(t, "enc")), Base: stint.Seq(drawCount(t, "base")), Rank: n("rank"), Weight: drawCount(t, "weight"), Size: drawCount(t, "size"),
			Sum: drawHash(t, "sum"),
		},
	}
}

// TestCreatedThatJSONChanges is a first entry whose data cannot say what it was made of: the
// session is what the entry says, or there is none.
func TestCreatedThatJSONChanges(t *testing.T) {
	for name, change := range map[string]func(*journal.Created){
		"a name that is not UTF-8":   func(d *journal.Created) { d.Name = "a\xff" },
		"a label that is not UTF-8":  func(d *journal.Created) { d.Labels = map[string]string{"k\xff": "\xff", "k\xfe": "x"} },
		"no labels":                  func(d *journal.Created) { d.Labels = map[string]string{} },
		"a time of another zone":     func(d *journal.Created) { d.Trigger.Due = base().In(time.FixedZone("x", 5400)).Add(time.Nanosecond) },
		"a configuration with space": func(d *journal.Created) { d.Config = json.RawMessage("{ \"a\": 1 }\n") },
	} {
		t.Run(name, func(t *testing.T) {
			d := createdData()
			change(&d)
			newChain(t).must(journal.Draft{Kind: stint.SessionCreated, Data: d}) // which compares Next with Apply
		})
	}
	for name, change := range map[string]func(*journal.Created){
		"a configuration that is no JSON": func(d *journal.Created) { d.Config = json.RawMessage(`{"a":`) },
		"a configuration that goes on":    func(d *journal.Created) { d.Config = json.RawMessage(`{},"name":"x"`) },
		"a year of five digits":           func(d *journal.Created) { d.Limits.Deadline = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a year before the first":         func(d *journal.Created) { d.Trigger.Due = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		t.Run(name, func(t *testing.T) {
			d := createdData()
			change(&d)
			_, err := newChain(t).add(journal.Draft{Kind: stint.SessionCreated, Data: d})
			wantCode(t, err, stint.Invalid)
		})
	}
}

// TestRawThatIsNoJSON is input that would end the object it stands in.
func TestRawThatIsNoJSON(t *testing.T) {
	for _, args := range []string{`{"a":`, `{},"final":true`, ` `} {
		c := begun(t)
		c.loop()
		_, err := c.add(journal.Draft{Kind: stint.StepCompleted, Pos: c.at(1, 0), Data: journal.StepDone{Args: json.RawMessage(args)}})
		wantCode(t, err, stint.Invalid)
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

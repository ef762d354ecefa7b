package journal_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// TestVerifierSound shows the Verifier journals that broke no rule.
func TestVerifierSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := simulate(t, rapid.IntRange(2, 60).Draw(t, "entries"))
		s, err := c.v.Result()
		if err != nil {
			t.Fatalf("%v", err)
		}
		if !reflect.DeepEqual(s, c.s) {
			t.Fatalf("the Verifier's session is\n%s\nwant\n%s", toJSON(t, s), toJSON(t, c.s))
		}
		c.refold()
	})
}

// TestVerifierDamage changes sound journals in one place.
func TestVerifierDamage(t *testing.T) {
	damages := map[string]func(t *rapid.T, es []stint.Entry) []stint.Entry{
		"bit flip": flipBit, "swap": swap, "swap places": swapPlaces, "removal": remove, "closed gap": removeAndClose,
		"repetition": repeat, "late beginning": func(_ *rapid.T, es []stint.Entry) []stint.Entry { return es[1:] },
	}
	for name, damage := range damages {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			c := simulate(t, rapid.IntRange(3, 25).Draw(t, "entries"))
			if _, err := verifyAll(c.es); err != nil {
				t.Fatalf("before: %v", err)
			}
			bad := damage(t, slices.Clone(c.es))
			s, err := verifyAll(bad)
			if stint.CodeOf(err) != stint.Corrupt {
				t.Fatalf("the damage went unseen: %v", err)
			}
			sound, ferr := journal.Fold(stint.Session{}, bad[:s.Head])
			if ferr != nil || s.Head > 0 && !reflect.DeepEqual(s, sound) {
				t.Fatalf("the session beside the error is not that of the sound entries")
			}
		}))
	}
}

// flipBit changes one bit of one entry: of its bytes, or of its header.
func flipBit(t *rapid.T, es []stint.Entry) []stint.Entry {
	e := &es[rapid.IntRange(0, len(es)-1).Draw(t, "entry")]
	bit := rapid.IntRange(0, 1<<20).Draw(t, "bit")
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[bit/8%len(b)] ^= 1 << (bit % 8)
		return b
	}
	num := func(n int) int { return n ^ 1<<(bit%31) }
	fields := []func(){
		func() { e.Version ^= 1 << (bit % 8) },
		func() { e.Session = stint.ID(flip(e.Session[:])) },
		func() { e.Seq ^= 1 << (bit % 63) },
		func() { e.Epoch ^= 1 << (bit % 63) },
		func() { e.Pos.Line = num(e.Pos.Line) },
		func() { e.Pos.Loop = num(e.Pos.Loop) },
		func() { e.Pos.Attempt = num(e.Pos.Attempt) },
		func() { e.Pos.Step = num(e.Pos.Step) },
		func() { e.Pos.Sub = num(e.Pos.Sub) },
		func() { e.Kind = stint.Kind(flip([]byte(e.Kind))) },
		func() { e.At = time.UnixMicro(e.At.UnixMicro() ^ 1<<(bit%50)).UTC() },
		func() { e.Actor = stint.Actor(flip([]byte(e.Actor))) },
		func() { e.Cause ^= 1 << (bit % 63) },
		func() { e.Salt = [16]byte(flip(e.Salt[:])) },
		func() { e.Hash = stint.Hash(flip(e.Hash[:])) },
		func() { e.Erased = !e.Erased },
		func() { e.Blob.Sum = stint.Hash(flip(e.Blob.Sum[:])) },
		func() { e.Blob.Size ^= 1 << (bit % 63) },
		func() { e.Data = flip(e.Data) },
	}
	if len(e.Body) > 0 {
		fields = append(fields, func() { e.Body = flip(e.Body) })
	}
	fields[rapid.IntRange(0, len(fields)-1).Draw(t, "field")]()
	return es
}

func pair(t *rapid.T, es []stint.Entry) (i, j int) {
	i = rapid.IntRange(0, len(es)-2).Draw(t, "one")
	return i, rapid.IntRange(i+1, len(es)-1).Draw(t, "other")
}

func swap(t *rapid.T, es []stint.Entry) []stint.Entry {
	i, j := pair(t, es)
	es[i], es[j] = es[j], es[i]
	return es
}

// swapPlaces gives each of two entries the other's seq and hash.
func swapPlaces(t *rapid.T, es []stint.Entry) []stint.Entry {
	es = swap(t, es)
	for i := range es {
		es[i].Seq = stint.Seq(i + 1)
	}
	return es
}

// remove takes an entry out that is not the last.
func remove(t *rapid.T, es []stint.Entry) []stint.Entry {
	i := rapid.IntRange(0, len(es)-2).Draw(t, "gone")
	return slices.Delete(es, i, i+1)
}

func removeAndClose(t *rapid.T, es []stint.Entry) []stint.Entry {
	es = remove(t, es)
	for i := range es {
		es[i].Seq = stint.Seq(i + 1)
	}
	return es
}

func repeat(t *rapid.T, es []stint.Entry) []stint.Entry {
	i := rapid.IntRange(0, len(es)-1).Draw(t, "twice")
	return slices.Insert(es, i, es[i])
}

// deed is one entry of a journal for TestVerifierRules.
type deed func(c *chain)

func does(kind stint.Kind, step int, data any) deed {
	return func(c *chain) { c.must(journal.Draft{Kind: kind, Pos: c.at(step, 0), Data: data}) }
}

func charge(effect stint.Effect) journal.StepRequested {
	return journal.StepRequested{Name: "charge", Kind: stint.Tool, Effect: effect}
}

func asks(effect stint.Effect) deed { return does(stint.StepRequested, 1, charge(effect)) }
func gets(effect stint.Effect) deed {
	return does(stint.StepCompleted, 1, journal.StepDone{StepRequested: charge(effect)})
}
func fails(effect stint.Effect, definite bool) deed {
	return does(stint.StepFailed, 1, journal.StepDone{StepRequested: charge(effect), Error: "x", Definite: definite})
}
func says(v journal.Verdict) deed {
	return does(stint.StepResolved, 1, journal.StepResolved{Verdict: v})
}
func loops() deed { return func(c *chain) { c.loop() } }
func ends() deed  { return func(c *chain) { c.complete(nil) } }
func saves(state string) deed {
	return func(c *chain) { c.complete([]byte(state)) }
}
func stores(r journal.StateRef, body string) deed {
	return func(c *chain) {
		c.must(journal.Draft{Kind: stint.LoopCompleted, Pos: c.at(0, 0), Data: journal.LoopCompleted{State: r}, Body: []byte(body)})
	}
}
func fresh(from int, change func(*stint.Checkpoint)) deed {
	return func(c *chain) {
		d := journal.LineStarted{From: from}
		if cp, err := journal.CheckpointAt(c.es, from); err == nil {
			d.Checkpoint = cp
		}
		if change != nil {
			change(&d.Checkpoint)
		}
		c.must(journal.Draft{Kind: stint.LineStarted, Data: d})
	}
}

// verifierCase is a journal whose chain is in order and whose every entry may
// follow. Where want is set, stint would not have written it all the same.
type verifierCase struct {
	name  string
	want  string // part of the reason; empty: sound
	deeds []deed
}

func soundCases() []verifierCase {
	once, idem, read := stint.Once, stint.Idempotent, stint.Read
	return []verifierCase{
		{"a once step", "", []deed{loops(), asks(once), gets(once), ends()}},
		{"a definite error is an answer", "", []deed{loops(), asks(once), fails(once, true), ends()}},
		{"a try that failed is none", "", []deed{loops(), fails(read, false), loops(), fails(read, false), loops(), gets(read), ends()}},
		{"an idempotent step is requested again", "", []deed{loops(), asks(idem), loops(), asks(idem), gets(idem), ends()}},
		{"its failed try settles the intent", "", []deed{loops(), asks(idem), fails(idem, false), ends()}},
		{"it did not happen", "", []deed{loops(), asks(once), says(journal.NotHappened), asks(once), gets(once), ends()}},
		{"it happened", "", []deed{loops(), asks(once), says(journal.Happened), ends()}},
		{"nobody knows", "", []deed{loops(), asks(once), says(journal.Unknown), ends()}},
		{"the same place on another line", "", []deed{loops(), asks(once), gets(once), ends(), fresh(0, nil), loops(), asks(once), gets(once), ends()}},
		{"an intent left on another line", "", []deed{loops(), asks(once), fresh(0, nil), loops(), asks(once), gets(once), ends()}},
		{"the same place in the next loop", "", []deed{loops(), gets(read), ends(), loops(), gets(read), ends()}},
		{"states", "", []deed{loops(), ends(), loops(), saves("abcdefghijklmnopqrstuvwxyz1"), loops(), saves("abcdefghijklmnopqrstuvwxyz2"), loops(), ends(), fresh(2, nil)}},
	}
}

func answerCases() []verifierCase {
	once, idem, read := stint.Once, stint.Idempotent, stint.Read
	return []verifierCase{
		{"two results", "which entry 3 answered", []deed{loops(), gets(read), gets(read)}},
		{"two results over attempts", "which entry 3 answered", []deed{loops(), gets(read), loops(), gets(read)}},
		{"a result after a definite error", "which entry 3 answered", []deed{loops(), fails(read, true), gets(read)}},
		{"an error after a result", "which entry 3 answered", []deed{loops(), gets(read), fails(read, false)}},
		{"a result after it happened", "which entry 4 answered", []deed{loops(), asks(once), says(journal.Happened), gets(once)}},
		{"a result after nobody knew", "which entry 4 answered", []deed{loops(), asks(once), says(journal.Unknown), gets(once)}},
		{"two verdicts", "which entry 4 answered", []deed{loops(), asks(once), says(journal.Happened), says(journal.NotHappened)}},
		{"a request after the answer", "which entry 3 answered", []deed{loops(), gets(idem), asks(idem)}},
		{"a once result without intent", "no step.requested stands before it", []deed{loops(), gets(once)}},
		{"a once error without intent", "no step.requested stands before it", []deed{loops(), fails(once, true)}},
		{"a once result after it did not happen", "no step.requested stands before it", []deed{loops(), asks(once), says(journal.NotHappened), gets(once)}},
		{"an intent of another loop", "no step.requested stands before it", []deed{loops(), asks(once), gets(once), ends(), loops(), gets(once)}},
		{"an intent of another line", "no step.requested stands before it", []deed{loops(), asks(once), fresh(0, nil), loops(), gets(once)}},
		{"a verdict without intent", "no step.requested stands before it", []deed{loops(), says(journal.Happened)}},
		{"a verdict that is none", `the verdict "maybe"`, []deed{loops(), asks(once), says("maybe")}},
		{"a once step twice", "which entry 3 requested", []deed{loops(), asks(once), loops(), asks(once)}},
		{"another step than was requested", "another step than entry 3 requested", []deed{loops(), asks(once), gets(idem)}},
		{"an open intent at the end of the loop", "while step 1.1, requested by entry 3, has no outcome", []deed{loops(), asks(once), ends()}},
		{"an open idempotent intent too", "requested by entry 3, has no outcome", []deed{loops(), asks(idem), ends()}},
		{"a verdict on no step", "names no step", []deed{loops(), asks(once), does(stint.StepResolved, 0, journal.StepResolved{Verdict: journal.Happened})}},
	}
}

func stateCases() []verifierCase {
	return []verifierCase{
		{"a line from another state", "not the one of loop 1", []deed{loops(), saves("a"), fresh(1, func(cp *stint.Checkpoint) { cp.Sum[0] ^= 1 })}},
		{"a line from another checkpoint", "not the one of loop 1", []deed{loops(), saves("a"), loops(), saves("b"), fresh(1, func(cp *stint.Checkpoint) { cp.Seq = 5 })}},
		{"no encoding", "the encoding", []deed{loops(), stores(journal.StateRef{}, "")}},
		{"a snapshot of another size", "not the full state", []deed{loops(), stores(journal.StateRef{Enc: journal.Full, Size: 2}, "abc")}},
		{"a snapshot with a base", "not the full state", []deed{loops(), saves("a"), loops(), stores(journal.StateRef{Enc: journal.Full, Size: 1, Base: 3}, "b")}},
		{"the same with a body", "has a body of 1 bytes", []deed{loops(), stores(journal.StateRef{Enc: journal.Same}, "b")}},
		{"a delta on nothing", "against entry 2", []deed{loops(), stores(journal.StateRef{Enc: journal.Delta, Base: 2, Rank: 1}, "b")}},
		{"a delta on another rank", "against entry 3", []deed{loops(), saves("a"), loops(), stores(journal.StateRef{Enc: journal.Delta, Base: 3, Rank: 2}, "b")}},
		{"a delta of rank 0", "against entry 3", []deed{loops(), saves("a"), loops(), stores(journal.StateRef{Enc: journal.Delta, Base: 3}, "b")}},
	}
}

func TestVerifierRules(t *testing.T) {
	for _, tt := range slices.Concat(soundCases(), answerCases(), stateCases()) {
		t.Run(tt.name, func(t *testing.T) {
			c := begun(t)
			for _, do := range tt.deeds {
				do(c)
			}
			s, err := c.v.Result()
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantCode(t, err, stint.Corrupt)
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "entry") {
				t.Fatalf("the reason is %q, want %q", err, tt.want)
			}
			if s.Head != c.s.Head-1 {
				t.Fatalf("the problem is found after entry %d, not at %d", s.Head, c.s.Head)
			}
		})
	}
}

// TestVerifierStops at the first problem, and says the same ever after.
func TestVerifierStops(t *testing.T) {
	c := begun(t)
	c.loop()
	var v journal.Verifier
	if _, err := v.Result(); stint.CodeOf(err) != stint.Corrupt {
		t.Fatalf("no entries: %v", err)
	}
	if err := v.Add(c.es[1]); stint.CodeOf(err) != stint.Corrupt {
		t.Fatalf("the second entry first: %v", err)
	}
	first := v.Add(c.es[0])
	if s, err := v.Result(); first == nil || err != first || s.Head != 0 {
		t.Fatalf("after a problem, the good entry gives %v, the result is %v at %d", first, err, s.Head)
	}
}

// TestVerifierErased: no entry of this format can say that bytes were erased, so
// one whose bytes are gone is not sound, even with its commitment.
func TestVerifierErased(t *testing.T) {
	c := begun(t)
	c.loop()
	e := c.must(journal.Draft{Kind: stint.OutputWritten, Pos: c.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte("a secret")})
	c.complete(nil)
	erased := e
	erased.Erased, erased.Commit = true, journal.Commitment(&e)
	if e.Hash != journal.Sum(&erased, c.es[1].Hash) {
		t.Fatal("an erased entry has another hash")
	}
	es := slices.Clone(c.es)
	es[2] = erased
	_, err := verifyAll(es)
	wantCode(t, err, stint.Corrupt)
}

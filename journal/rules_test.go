package journal_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// try makes an entry after c's, at its time and epoch, without adding it.
func (c *chain) try(d journal.Draft) (stint.Session, stint.Entry, error) {
	d.At, d.Epoch = c.now, c.epoch
	return journal.Next(c.s, d)
}

// TestOutcome: only an end ends a session.
func TestOutcome(t *testing.T) {
	for _, outcome := range []stint.Status{"", "done", stint.Pending, stint.Running, stint.Waiting} {
		c := begun(t)
		c.loop()
		_, _, err := c.try(journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: outcome}})
		wantCode(t, err, stint.Invalid)
	}
}

// TestNextIsApply gives Next what JSON changes, or what does not belong to the
// kind. It may refuse it, or make an entry whose fold is the session it returns.
func TestNextIsApply(t *testing.T) {
	labelled := createdData()
	labelled.Labels = map[string]string{}
	ends := journal.Ended{Outcome: stint.Failed}
	wait := func(w journal.Waiting) journal.Draft { return journal.Draft{Kind: stint.SessionWaiting, Data: w} }
	done := func(d journal.StepDone) journal.Draft { return journal.Draft{Kind: stint.StepCompleted, Data: d} }
	for name, d := range map[string]journal.Draft{
		"no data":                       {Kind: stint.LoopCompleted},
		"a pointer":                     {Kind: stint.SessionEnded, Data: &ends},
		"data of another kind":          {Kind: stint.LoopFailed, Data: ends},
		"data of a kind that does more": {Kind: stint.OutputWritten, Data: ends},
		"a loop's in another kind":      {Kind: stint.LoopFailed, Data: journal.LoopCompleted{State: journal.StateRef{Enc: journal.Same}}},
		"a loop's beginning in another": {Kind: stint.OutputWritten, Data: journal.LoopStarted{}},
		"a step's in another":           {Kind: stint.LoopFailed, Data: journal.StepDone{Usage: stint.Usage{Input: 5}}},
		"a clock's monotonic part":      wait(journal.Waiting{For: stint.ForRetry, Until: time.Now().Add(time.Minute)}),
		"nanoseconds":                   wait(journal.Waiting{For: stint.ForRetry, Until: base().Add(1)}),
		"a time JSON cannot hold":       wait(journal.Waiting{For: stint.ForTime, Until: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}),
		"an empty list":                 wait(journal.Waiting{For: stint.ForMessage, Wakes: []stint.MessageKind{}}),
		"a zone":                        {Kind: stint.LimitChanged, Data: journal.LimitChanged{Limits: stint.Limits{Deadline: base().In(time.FixedZone("CET", 3600))}}},
		"an error that is not UTF-8":    {Kind: stint.LoopFailed, Data: journal.LoopFailed{Error: "exit 1: \xff\xfe"}},
		"a reason that is not UTF-8":    {Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Failed, Reason: "caf\xe9"}},
		"the most money":                done(journal.StepDone{Usage: stint.Usage{Cost: math.MaxInt64}}),
		"an input that is not JSON":     done(journal.StepDone{Args: json.RawMessage(`{"a":`)}),
		"an input that adds a member":   done(journal.StepDone{Args: json.RawMessage(`1,"usage":{"input_tokens":5}`)}),
		"no labels":                     {Kind: stint.SessionCreated, Data: labelled},
	} {
		t.Run(name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			if d.Kind == stint.SessionCreated {
				c.s = stint.Session{ID: testID(1)}
			}
			d.Pos = c.at(1, 0)
			s, e, err := c.try(d)
			if err != nil {
				wantCode(t, err, stint.Invalid)
				return
			}
			again, err := journal.Apply(c.s, e)
			if err != nil {
				t.Fatalf("Apply refuses what Next made: %v", err)
			}
			if !reflect.DeepEqual(again, s) {
				t.Fatalf("Next\n%s\nApply\n%s", toJSON(t, s), toJSON(t, again))
			}
			if w := s.Wait; w != nil && (w.Until.Nanosecond()%1000 != 0 || w.Until.Location() != time.UTC) {
				t.Fatalf("a wait until %v", w.Until)
			}
		})
	}
}

// TestReleasedAfterFailure: a drain does not make a failed attempt whole.
func TestReleasedAfterFailure(t *testing.T) {
	c := begun(t)
	c.loop()
	c.must(journal.Draft{Kind: stint.LoopFailed, Pos: c.at(0, 0), Data: journal.LoopFailed{Error: "boom"}})
	c.must(journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{Why: "drain"}})
	if c.s.At.Parked {
		t.Fatal("the attempt that failed counts as parked")
	}
	if e := c.loop(); e.Pos.Attempt != 2 {
		t.Fatalf("attempt %d begins", e.Pos.Attempt)
	}
}

// TestEpochNeverFalls and ends the running stretch of whoever held the one before.
func TestEpochNeverFalls(t *testing.T) {
	c := begun(t)
	c.epoch = 5
	c.loop()
	c.epoch = 4
	_, _, err := c.try(journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{}})
	wantCode(t, err, stint.Invalid)
	c.epoch = 6
	_, _, err = c.try(journal.Draft{Kind: stint.LoopCompleted, Pos: c.at(0, 0), Data: journal.LoopCompleted{State: journal.StateRef{Enc: journal.Same}}})
	wantCode(t, err, stint.Invalid)
}

// TestDeadTime: what passes between a death and the next holder's first entry is
// no running time, whatever that entry is.
func TestDeadTime(t *testing.T) {
	for name, d := range map[string]journal.Draft{
		"noted":       {Kind: stint.LeaseLost, Data: journal.LeaseLost{Prior: stint.Died}},
		"fenced":      {Kind: stint.LeaseLost, Data: journal.LeaseLost{Prior: stint.Expired}},
		"stopped":     {Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Canceled}},
		"paused":      {Kind: stint.SessionWaiting, Data: journal.Waiting{For: stint.ForOperator}},
		"rolled back": {Kind: stint.LineStarted, Data: journal.LineStarted{Park: true}},
		"spoken to":   {Kind: stint.MessageTaken, Data: journal.Taken{ID: "m", Kind: stint.SetLimit}},
		"begun again": {Kind: stint.LoopStarted, Pos: stint.Position{Loop: 1, Attempt: 2}, Data: journal.LoopStarted{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			c.must(journal.Draft{Kind: stint.OutputWritten, Pos: c.at(0, 0), Data: journal.Output{Stream: "stdout"}})
			c.epoch++
			c.now = c.now.Add(72 * time.Hour)
			c.must(d)
			if got := c.s.Totals.Running; got != time.Second {
				t.Fatalf("%v of running time", got)
			}
		})
	}
}

// TestLineKeepsWhatIsThere: a line keeps completed loops of the one before it.
func TestLineKeepsWhatIsThere(t *testing.T) {
	for from, want := range map[int]stint.Code{-1: stint.Invalid, 0: "", 1: "", 2: stint.Invalid, 99: stint.Invalid} {
		c := begun(t)
		c.loop()
		c.complete([]byte(`{}`))
		c.loop()
		_, _, err := c.try(journal.Draft{Kind: stint.LineStarted, Data: journal.LineStarted{From: from}})
		wantCode(t, err, want)
	}
}

// TestUnderWay: what happens in a loop happens in the attempt that runs.
func TestUnderWay(t *testing.T) {
	same := journal.LoopCompleted{State: journal.StateRef{Enc: journal.Same}}
	for _, tt := range []struct {
		name  string
		deeds []deed
		want  stint.Code
	}{
		{"running", nil, ""},
		{"failed", []deed{does(stint.LoopFailed, 0, journal.LoopFailed{})}, stint.Invalid},
		{"drained", []deed{does(stint.SessionReleased, 0, journal.Released{})}, stint.Invalid},
		{"resumed", []deed{does(stint.SessionWaiting, 0, journal.Waiting{}), does(stint.SessionResumed, 0, journal.Resumed{})}, stint.Invalid},
		{"restarted", []deed{does(stint.SessionEnded, 0, journal.Ended{Outcome: stint.Failed}), does(stint.SessionResumed, 0, journal.Resumed{})}, stint.Invalid},
		{"another's", []deed{func(c *chain) { c.epoch++ }}, stint.Invalid},
		{"lost", []deed{func(c *chain) { c.epoch++ }, does(stint.LeaseLost, 0, journal.LeaseLost{Prior: stint.Expired})}, stint.Invalid},
		{"begun again", []deed{loops()}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begun(t)
			c.loop()
			for _, do := range tt.deeds {
				do(c)
			}
			for kind, data := range map[stint.Kind]any{
				stint.StepRequested: charge(stint.Once), stint.StepCompleted: journal.StepDone{}, stint.StepFailed: journal.StepDone{},
				stint.OutputWritten: journal.Output{}, stint.LoopFailed: journal.LoopFailed{}, stint.LoopCompleted: same,
			} {
				_, _, err := c.try(journal.Draft{Kind: kind, Pos: c.at(1, 0), Data: data})
				wantCode(t, err, tt.want)
				pos := c.at(1, 0)
				pos.Attempt++
				_, _, err = c.try(journal.Draft{Kind: kind, Pos: pos, Data: data})
				wantCode(t, err, stint.Invalid)
			}
			for _, kind := range []stint.Kind{stint.StepRequested, stint.StepCompleted, stint.StepFailed} {
				_, _, err := c.try(journal.Draft{Kind: kind, Pos: c.at(0, 0), Data: journal.StepDone{}})
				wantCode(t, err, stint.Invalid)
			}
		})
	}
}

// TestVerifyRefuses what the hash cannot vouch for.
func TestVerifyRefuses(t *testing.T) {
	c := begun(t)
	e, prev := c.loop(), c.es[0].Hash
	for name, tt := range map[string]struct {
		spoil func(*stint.Entry)
		want  stint.Code
	}{
		"the entry":           {func(*stint.Entry) {}, ""},
		"another version":     {func(e *stint.Entry) { e.Version++; e.Hash = journal.Sum(e, prev) }, stint.Corrupt},
		"nanoseconds":         {func(e *stint.Entry) { e.At = e.At.Add(7) }, stint.Corrupt},
		"erased with a proof": {func(e *stint.Entry) { e.Commit, e.Erased = journal.Commitment(e), true }, stint.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			e := e
			tt.spoil(&e)
			wantCode(t, journal.Verify(&e, prev), tt.want)
		})
	}
}

// TestBodyOrBlob: an entry has one of them.
func TestBodyOrBlob(t *testing.T) {
	c := begun(t)
	c.loop()
	_, _, err := c.try(journal.Draft{Kind: stint.OutputWritten, Pos: c.at(0, 0), Data: journal.Output{}, Body: []byte("x"), Blob: stint.BlobRef{Size: 5}})
	wantCode(t, err, stint.Invalid)
}

// TestBrake is on for five failures within ten minutes, to the second, and for
// three deaths, however long ago.
func TestBrake(t *testing.T) {
	fails := func(ages ...time.Duration) (out []time.Time) {
		for _, age := range ages {
			out = append(out, base().Add(-age))
		}
		return out
	}
	for _, tt := range []struct {
		name string
		at   stint.Place
		want bool
	}{
		{"nothing", stint.Place{}, false},
		{"four failures", stint.Place{Failures: fails(4, 3, 2, 1)}, false},
		{"five", stint.Place{Failures: fails(5, 4, 3, 2, 1)}, true},
		{"five in ten minutes", stint.Place{Failures: fails(10*time.Minute, 4, 3, 2, 1)}, true},
		{"five in longer", stint.Place{Failures: fails(10*time.Minute+time.Microsecond, 4, 3, 2, 1)}, false},
		{"two deaths", stint.Place{Deaths: 2}, false},
		{"three deaths", stint.Place{Deaths: 3}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			why, on := journal.Brake(&stint.Session{At: tt.at}, base())
			if on != tt.want || (why != "") != on {
				t.Fatalf("%v: %q", on, why)
			}
		})
	}
}

// TestAsWritten: text is in the data as it was given, not escaped for web pages.
func TestAsWritten(t *testing.T) {
	c := begun(t)
	e := c.must(journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Failed, Reason: "a < b && b > c"}})
	if want := `{"outcome":"failed","reason":"a < b && b > c"}`; string(e.Data) != want {
		t.Fatalf("%s, want %s", e.Data, want)
	}
}

// TestErrorsName the session that they are about.
func TestErrorsName(t *testing.T) {
	c := begun(t)
	e := c.loop()
	_, _, illegal := c.try(journal.Draft{Kind: stint.SessionResumed, Data: journal.Resumed{}})
	_, _, long := c.try(journal.Draft{Kind: stint.OutputWritten, Pos: c.at(0, 0), Data: journal.Output{}, Blob: stint.BlobRef{Size: journal.MaxBody + 1}})
	_, unknown := journal.Course(c.es, 7)
	_, nowhere := journal.CheckpointAt(c.es, 7)
	for name, err := range map[string]error{
		"illegal": illegal, "too long": long, "a broken chain": journal.Verify(&e, stint.Hash{9}), "no such line": unknown, "no such loop": nowhere,
	} {
		var se *stint.Error
		if !errors.As(err, &se) || se.Session != c.s.ID {
			t.Errorf("%s: %v", name, err)
		}
		if name != "illegal" && name != "no such line" && (se == nil || se.Hint == "") {
			t.Errorf("%s has no remedy: %v", name, err)
		}
	}
}

// TestCircle: a chain that leads back to where it was read from ends all the same.
func TestCircle(t *testing.T) {
	for name, ref := range map[string]journal.StateRef{
		"its own base": {Enc: journal.Delta, Base: 3, Rank: 1}, "a later base": {Enc: journal.Delta, Base: 4, Rank: 1},
		"no base": {Enc: journal.Delta, Rank: 1}, "below zero": {Enc: journal.Delta, Base: 2, Rank: -1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			_, err := journal.ReadState(stint.Checkpoint{Seq: 3, Rank: 1}, func(stint.Seq) (journal.StateRef, []byte, error) {
				if reads++; reads > 1000 {
					return journal.StateRef{}, nil, errors.New("1,000 reads")
				}
				return ref, nil, nil
			})
			wantCode(t, err, stint.Corrupt)
		})
	}
	_, _, err := journal.WriteState(stint.Checkpoint{Seq: 3, Rank: -1}, []byte("a"), []byte("b"), nil)
	wantCode(t, err, stint.Corrupt)
}

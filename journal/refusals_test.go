package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// TestEpochOfTheFirstEntry: a session that was created under a lease has its epoch.
func TestEpochOfTheFirstEntry(t *testing.T) {
	c := newChain(t)
	c.epoch = 3
	c.must(journal.Draft{Kind: stint.SessionCreated, Data: createdData()})
	if c.s.Epoch != 3 {
		t.Errorf("the session's epoch is %d, its newest entry's is 3", c.s.Epoch)
	}
	c.epoch = 2
	if _, _, err := c.try(journal.Draft{Kind: stint.SessionReleased, Data: journal.Released{}}); err == nil {
		t.Error("epoch 2 follows epoch 3")
	}
}

// TestNobodyLosesHisOwnLease: a runner cannot say of itself that its lease is lost;
// its attempt would be dead and run on.
func TestNobodyLosesHisOwnLease(t *testing.T) {
	for _, prior := range []stint.Prior{stint.Died, stint.Expired} {
		c := begun(t)
		c.loop()
		if _, err := c.add(journal.Draft{Kind: stint.LeaseLost, Data: journal.LeaseLost{Prior: prior}}); err != nil {
			continue
		}
		_, _, err := c.try(journal.Draft{Kind: stint.StepCompleted, Pos: c.at(1, 0), Data: journal.StepDone{}})
		t.Errorf("%s: taken; parked %v, deaths %d, and a step after it: %v", prior, c.s.At.Parked, c.s.At.Deaths, err)
	}
}

// TestOnlyADeathIsADeath: a lease that was given back is not lost, and does not
// bring the brake nearer.
func TestOnlyADeathIsADeath(t *testing.T) {
	for _, prior := range []stint.Prior{"", stint.Released, "vanished"} {
		c := begun(t)
		c.loop()
		c.epoch++
		if _, err := c.add(journal.Draft{Kind: stint.LeaseLost, Data: journal.LeaseLost{Prior: prior}}); err == nil {
			t.Errorf("%q: taken, %d deaths", prior, c.s.At.Deaths)
		}
	}
}

// TestUnknownEncoding: a chain of an encoding that nobody knows is corrupt, and is
// not followed round in a circle.
func TestUnknownEncoding(t *testing.T) {
	reads := 0
	_, err := journal.ReadState(stint.Checkpoint{Seq: 3, Rank: 1}, func(stint.Seq) (journal.StateRef, []byte, error) {
		if reads++; reads > 1000 {
			return journal.StateRef{}, nil, errors.New("1,000 reads")
		}
		return journal.StateRef{Enc: "zip", Base: 3, Rank: 1}, nil, nil
	})
	wantCode(t, err, stint.Corrupt)
}

// TestAnAttemptIsNotBegunTwice: while an attempt runs, its own runner cannot begin
// the next; the running time of the first would be counted nowhere.
func TestAnAttemptIsNotBegunTwice(t *testing.T) {
	c := begun(t)
	c.loop()
	c.now = c.now.Add(time.Hour)
	e, err := c.add(journal.Draft{Kind: stint.LoopStarted, Pos: stint.Position{Loop: 1, Attempt: 2}, Data: journal.LoopStarted{}})
	if err == nil {
		t.Errorf("entry %d taken; an hour ran, %v is counted", e.Seq, c.s.Totals.Running)
	}
}

// TestDataBelongsToItsKind: an entry with no data, or that of another kind, is not
// made; those who read it later would find it corrupt.
func TestDataBelongsToItsKind(t *testing.T) {
	for _, kind := range []stint.Kind{stint.StepRequested, stint.StepResolved, stint.MessageRefused, stint.OutputWritten, stint.SessionReleased} {
		c := begun(t)
		c.loop()
		if kind == stint.StepResolved {
			asks(stint.Once)(c)
		}
		if _, _, err := c.try(journal.Draft{Kind: kind, Pos: c.at(1, 0)}); err == nil {
			t.Errorf("%s without data is taken", kind)
		}
		if _, _, err := c.try(journal.Draft{Kind: kind, Pos: c.at(1, 0), Data: journal.Ended{Outcome: stint.Failed}}); err == nil {
			t.Errorf("%s with the data of session.ended is taken", kind)
		}
	}
}

// TestTimesAreWholeMicroseconds holds for limits too: what comes back out of JSON
// must be what was put in.
func TestTimesAreWholeMicroseconds(t *testing.T) {
	c := begun(t)
	c.must(journal.Draft{Kind: stint.LimitChanged, Data: journal.LimitChanged{Limits: stint.Limits{Deadline: base().Add(7).In(time.FixedZone("CET", 3600))}}})
	if d := c.s.Limits.Deadline; d.Nanosecond()%1000 != 0 || d.Location() != time.UTC {
		t.Errorf("the deadline is %v", d)
	}
}

// TestSystemJournalHoldsRecords: the system journal has records, and no session has any.
func TestSystemJournalHoldsRecords(t *testing.T) {
	record := journal.Draft{Kind: stint.SystemRecorded, Data: journal.Recorded{What: "schedule.paused", Name: "nightly"}}
	c := begun(t)
	if _, err := c.add(record); err == nil {
		t.Error("a session takes a record")
	}
	c = newChain(t)
	data := createdData()
	data.Trigger.Kind = "system"
	c.must(journal.Draft{Kind: stint.SessionCreated, Data: data})
	c.must(record)
	for _, d := range []journal.Draft{
		{Kind: stint.LoopStarted, Pos: stint.Position{Loop: 1, Attempt: 1}, Data: journal.LoopStarted{Why: "first"}},
		{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Canceled}},
		{Kind: stint.SessionWaiting, Data: journal.Parked{Waiting: stint.Wait{For: stint.ForOperator}}},
		{Kind: stint.LimitChanged, Data: journal.LimitChanged{}},
		{Kind: stint.LineStarted, Data: journal.LineStarted{}},
	} {
		if _, err := c.add(d); err == nil {
			t.Errorf("it takes %s", d.Kind)
		}
	}
	c.must(record)
}

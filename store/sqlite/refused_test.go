package sqlite_test

import (
	"crypto/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// TestAStaleAppendDoesNotRefuseTheHoldersOwn: what is queued behind a refused append
// is refused too if it is of the same lease. A stale holder that goes on appending
// does not take those of its successor with it.
func TestAStaleAppendDoesNotRefuseTheHoldersOwn(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "stint.db"))
	for _, holder := range []string{"one", "two"} {
		if _, err := s.Hold(t.Context(), holder); err != nil {
			t.Fatal(err)
		}
	}
	id := stint.ID(uuid.Must(uuid.NewV7()))
	ses, first, err := journal.Begin(id, journal.Created{Family: id, Name: "x", Agent: stint.AgentRef{Name: "x", Runtime: "go/x"}}, journal.Draft{At: time.Now(), Salt: salted()})
	if err != nil {
		t.Fatal(err)
	}
	stale, err := s.Create(t.Context(), stint.Batch{Session: ses, Entries: []stint.Entry{first}}, stint.Claim{Holder: "one", TTL: time.Millisecond, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(10 * time.Millisecond)
	ls, err := s.Claim(t.Context(), stint.Claim{Holder: "two", TTL: time.Minute, Max: 1, Session: id})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	old := ses
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			answered := make(chan struct{})
			s.Append(t.Context(), stale, stint.Batch{Session: old, Release: true}, func(error) { close(answered) })
			<-answered
		}
	}()
	for i := range 300 {
		next, e, err := journal.Next(ses, journal.Draft{Kind: stint.MessageTaken, Epoch: ls[0].Epoch, At: time.Now(), Salt: salted(),
			Data: journal.Taken{ID: "m", Kind: stint.Pause}})
		if err != nil {
			t.Fatal(err)
		}
		answer := make(chan error, 1)
		s.Append(t.Context(), ls[0], stint.Batch{Session: next, Entries: []stint.Entry{e}}, func(err error) { answer <- err })
		if err := <-answer; err != nil {
			t.Errorf("append %d of the holder: %v", i, err)
			break
		}
		ses = next
	}
	close(stop)
	<-ended
}

func salted() (s [16]byte) {
	_, _ = rand.Read(s[:])
	return s
}

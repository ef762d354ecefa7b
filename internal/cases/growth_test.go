package cases_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// TestE06LinearGrowth: a session's file grows with what the session was given, not
// with the square of it: the state is not copied into every checkpoint
// (bytedance/deer-flow#4148, langchain-ai/langgraphjs#1138).
//
// The payload is counted strictly: the results of steps, and of each state only
// what it has that the one before had not. What a file has before it has a session
// is not of the session: the pages of empty tables, a tenth of a megabyte or so.
func TestE06LinearGrowth(t *testing.T) {
	t.Parallel()
	at := []int{125, 250, 251, 301}
	if long() {
		at = []int{500, 1000, 2000, 2001, 2201}
	}
	for name, agent := range map[string]func(t *testing.T) engine.Agent{
		"go":   func(*testing.T) engine.Agent { return growing() },
		"exec": func(t *testing.T) engine.Agent { return python(t, "growing") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grows(t, agent(t), at)
		})
	}
}

// marks are the loops after which the agents below wait, and the file is measured;
// they are in the first prompt, and a later prompt is how many bytes the next
// results have.
type marks struct {
	At    []int `json:"at"`
	Bytes int   `json:"bytes"`
}

// grows drives a session to each mark and measures the file there. All but the last
// two are each twice the one before; then comes one loop with a large result, and
// what follows it.
func grows(t *testing.T, a engine.Agent, at []int) {
	t.Helper()
	p := newPlace(t, "sqlite", t.TempDir())
	p.reload()
	empty := p.size()
	m := marks{At: at, Bytes: 1 << 10}
	sizes := map[int]int64{}
	var s stint.Session
	doubled, end := at[:len(at)-2], at[len(at)-1]
	for i, at := range m.At {
		if at == doubled[len(doubled)-1]+1 {
			m.Bytes = 1 << 20
		} else {
			m.Bytes = 1 << 10
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s = p.run(a, string(text))
		} else {
			p.prompt(s.ID, string(text))
			s = p.goOn(a, s.ID)
		}
		p.ends(s, stint.Waiting, "message: ", fmt.Sprint(at))
		p.reload() // which empties the WAL
		sizes[at] = p.size() - empty
		payload := p.payload(s)
		t.Logf("after loop %d: %d bytes beside the %d of an empty file, for a payload of %d, %.2fx; the state has %d", at, sizes[at], empty, payload, float64(sizes[at])/float64(payload), s.Checkpoint.Size)
		if sizes[at] >= 3*payload {
			t.Errorf("the file has grown by %d bytes after loop %d, for a payload of %d", sizes[at], at, payload)
		}
	}
	for _, n := range doubled[:len(doubled)-1] {
		if r := float64(sizes[2*n]) / float64(sizes[n]); r >= 2.2 {
			t.Errorf("from loop %d to loop %d the file grew to the %.2ffold", n, 2*n, r)
		}
	}
	if s.Totals.Loops != end {
		t.Errorf("%d loops", s.Totals.Loops)
	}
	p.close()
}

// size is that of the database file with all that lies beside it.
func (p *place) size() int64 {
	p.t.Helper()
	var n int64
	for _, ext := range []string{"", "-wal", ".keys"} {
		if info, err := os.Stat(p.path + ext); err == nil {
			n += info.Size()
		}
	}
	return n
}

// payload is what the session was given: its results, and its state, whose notes
// are only ever added.
func (p *place) payload(s stint.Session) int64 {
	p.t.Helper()
	n := s.Checkpoint.Size
	for _, r := range p.results(s.ID, "fetch") {
		n += int64(len(r))
	}
	return n
}

// growing fetches something random and adds a note to its state, once a loop.
func growing() engine.Agent {
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		var st struct {
			Marks marks    `json:"marks"`
			Notes []string `json:"notes"`
		}
		if l.State() != nil {
			if err := json.Unmarshal(l.State(), &st); err != nil {
				return stint.Next{}, err
			}
		}
		for _, m := range l.Inbox() {
			if err := json.Unmarshal(m.Body, &st.Marks); err != nil {
				return stint.Next{}, err
			}
		}
		got, err := stint.Do(ctx, l, stint.Step{Name: "fetch", Effect: stint.Read}, func(context.Context, string) (string, error) {
			return noise(st.Marks.Bytes), nil
		})
		if err != nil {
			return stint.Next{}, err
		}
		st.Notes = append(st.Notes, got[:100])
		state, err := stint.Marshal(st)
		next := stint.Next{State: state}
		for _, at := range st.Marks.At {
			if at == l.Session().At.Loop {
				next.Wait = &stint.Wait{For: stint.ForMessage, What: fmt.Sprint(at)}
			}
		}
		return next, err
	})
}

// noise is n bytes of text that no compression makes much smaller.
func noise(n int) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	var b strings.Builder
	for b.Len() < n {
		b.WriteByte(letters[rand.IntN(len(letters))])
	}
	return b.String()
}

package cases_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// filled is a site without agents whose store fn has filled through the library.
func filled(t *testing.T, fn func(store stint.Store) error) *site {
	t.Helper()
	s := newSite(t)
	s.env = []string{"STINT_STORE=sqlite:" + s.path("stint.db")}
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: s.path("stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	if err := fn(store); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	return s
}

// page is what the cases look at in a list.
type page struct {
	Items []struct {
		ID, Status string
		Seq        int
		Agent      struct{ Name string }
		Trigger    struct{ Kind string }
		Name       string
	}
	Next *string
}

// follow goes through all pages of a list behind that query, from its first one.
func (v *server) follow(path, query string, fn func(p page, size int)) {
	v.t.Helper()
	for next := "?" + query; ; {
		text := v.gets(path + next)
		p := unmarshal[page](v.t, text)
		fn(p, len(text))
		if p.Next == nil {
			return
		}
		next = *p.Next
	}
}

// many is how many sessions, and how many steps of one of them, TestH01 has.
func many() (sessions, steps int) {
	if long() {
		return 100_000, 50_000
	}
	return 10_000, 2_000
}

// TestH01ManySessions: lists of a store with very many sessions, one of which is very
// long, are as short as is asked for, whatever they select, and have what they should:
// first pages, filters, names, and the log of the long one. store/sqlite shows
// that each is read by an index (Datus-ai/Datus-agent#1222, Fergana-Labs/stash#1031,
// kirodotdev/KiroCrew#2552).
func TestH01ManySessions(t *testing.T) {
	t.Parallel()
	n, steps := many()
	s := filled(t, func(store stint.Store) error { return bench.FillLists(t.Context(), store, n) })
	s.write("stint.yaml", "store: sqlite:stint.db\nagents:\n"+inPython(t, "count", "counts.py", fmt.Sprint(steps)))
	s.must("run", "count", "-q")
	id := s.show("@last").ID
	v := s.serves("--no-run")
	var took []time.Duration
	for _, c := range []struct {
		query string
		want  int // on the first page
		fits  func(i int, p page) bool
	}{
		{"limit=20", 20, func(int, page) bool { return true }},
		{"limit=20&status=failed", 20, func(i int, p page) bool { return p.Items[i].Status == "failed" }},
		{"limit=20&status=completed&agent=agent-3", 20, func(i int, p page) bool {
			return p.Items[i].Status == "completed" && p.Items[i].Agent.Name == "agent-3"
		}},
		{"limit=20&status=failed&agent=agent-3", 0, func(int, page) bool { return false }},
		{"limit=20&trigger=hook", min(20, n/500), func(i int, p page) bool { return p.Items[i].Trigger.Kind == "hook" }},
		{"limit=20&text=agent-1-", 20, func(i int, p page) bool { return strings.HasPrefix(p.Items[i].Name, "agent-1-") }},
		{"limit=20&text=needle", min(20, n/5_000), func(i int, p page) bool { return strings.HasPrefix(p.Items[i].Name, "needle-") }},
		{"limit=20&text=nothing-has-it", 0, func(int, page) bool { return false }},
		{"limit=20&label=customer%3Dc-7", min(20, n/2_000), func(int, page) bool { return true }},
		{"limit=20&agent=count", 1, func(i int, p page) bool { return p.Items[i].ID == id }},
	} {
		for range 20 {
			begun := time.Now()
			text := v.gets("/v1/sessions?" + c.query)
			took = append(took, time.Since(begun))
			p := unmarshal[page](t, text)
			if len(text) >= 100_000 || len(p.Items) != c.want {
				t.Fatalf("%s: %d sessions in %d bytes", c.query, len(p.Items), len(text))
			}
			for i := range p.Items {
				if !c.fits(i, p) {
					t.Fatalf("%s has %+v", c.query, p.Items[i])
				}
			}
		}
	}
	for _, path := range []string{"/v1/sessions/" + id, "/v1/sessions/" + id + "/entries?limit=20", "/v1/sessions/" + id + "/entries?tail=20"} {
		begun := time.Now()
		text := v.gets(path)
		if took = append(took, time.Since(begun)); len(text) >= 100_000 {
			t.Errorf("%s: %d bytes", path, len(text))
		}
	}
	slices.Sort(took)
	if long() && took[len(took)*95/100] > 200*time.Millisecond { // it is on a machine of its own then
		t.Errorf("of %d requests 5 %% took more than %v", len(took), took[len(took)*95/100])
	}
	t.Logf("%d requests: p95 %v, at most %v", len(took), took[len(took)*95/100], took[len(took)-1])
	all, last := 0, 0
	v.follow("/v1/sessions/"+id+"/entries", "limit=500&body=0", func(p page, size int) {
		for _, e := range p.Items {
			if e.Seq != last+1 {
				t.Fatalf("behind the entry %d comes %d", last, e.Seq)
			}
			last = e.Seq
		}
		if all += len(p.Items); size > 1<<20+4096 {
			t.Errorf("a page has %d bytes", size)
		}
	})
	if all < steps {
		t.Errorf("%d steps have %d entries", steps, all)
	}
}

// TestH02EqualTimes: of a thousand sessions of one instant each is on one page, however
// small the pages, and what begins meanwhile moves nothing; the entries of one instant are
// the same (aaif-goose/goose#9199, AgentWorkforce/relayhistory#74,
// triggerdotdev/trigger.dev#3417).
func TestH02EqualTimes(t *testing.T) {
	t.Parallel()
	const sessions, entries = 1000, 1000
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var long stint.ID
	s := filled(t, func(store stint.Store) error {
		for i := range sessions {
			id := ident.At(at)
			state, e, err := journal.Begin(id, journal.Created{Family: id, Name: fmt.Sprint("s-", i), Agent: stint.AgentRef{Name: "a", Runtime: "exec"}, Trigger: stint.Trigger{Kind: "prompt"}}, journal.Draft{At: at, Actor: "human:ana"})
			es := []stint.Entry{e}
			for k := 1; i == 0 && k < entries && err == nil; k++ {
				state, e, err = journal.Next(state, journal.Draft{At: at, Actor: "human:ana", Kind: stint.LimitChanged, Data: journal.LimitChanged{}})
				es, long = append(es, e), id
			}
			if err == nil {
				_, err = store.Create(t.Context(), stint.Batch{Session: state, Entries: es}, stint.Claim{})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.write("stint.yaml", "store: sqlite:stint.db\nagents:\n  new: {kind: exec, protocol: none, command: [\"true\"]}\n")
	v := s.serves("--no-run")
	var seen []string
	v.follow("/v1/sessions", "limit=7", func(p page, _ int) {
		for _, one := range p.Items {
			seen = append(seen, one.ID)
		}
		if len(seen)%100 < 7 {
			if a := v.asks(t.Context(), http.MethodPost, "/v1/sessions", strings.NewReader(`{"agent":"new"}`), nil); a.status != http.StatusCreated {
				t.Fatalf("%d %v %s", a.status, a.err, a.text)
			}
		}
	})
	if !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Error("the sessions are not in order, newest first")
	}
	if slices.Sort(seen); len(seen) != sessions || len(slices.Compact(seen)) != sessions {
		t.Errorf("of %d sessions %d were listed", sessions, len(seen))
	}
	var forth, back []int
	v.follow("/v1/sessions/"+long.String()+"/entries", "limit=7", func(p page, _ int) {
		for _, e := range p.Items {
			forth = append(forth, e.Seq)
		}
	})
	for _, e := range unmarshal[page](t, v.gets("/v1/sessions/"+long.String()+"/entries?tail=500")).Items {
		back = append(back, e.Seq)
	}
	for i, seq := range forth {
		if seq != i+1 {
			t.Fatalf("the entry no. %d is %d", i+1, seq)
		}
	}
	if len(forth) != entries || !slices.Equal(back, forth[entries-500:]) {
		t.Errorf("of %d entries %d were listed, and %d from the end", entries, len(forth), len(back))
	}
}

package cases_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint/model/modeltest"
)

// seed is what the random instants follow from.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("STINT_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(os.Getpid())
}

// turns is what the model asks for in the rig of kills: two calls in each answer.
func turns() [][2]string {
	return [][2]string{{"effect", "look"}, {"put", "effect"}, {"effect", "effect"}, {"look", "put"}}
}

// restless is a site with tools of every class, each of which takes a moment, and an agent
// that calls them in turns.
func restless(t *testing.T, api string) *site {
	t.Helper()
	sc := modeltest.Scenario{By: "turn"}
	for i, pair := range turns() {
		var step modeltest.Step
		for k, name := range pair {
			args := turnArgs(i, k)
			step.Tools = append(step.Tools, modeltest.ToolCall{ID: fmt.Sprintf("t%d%d", i, k), Name: name, ArgsRaw: &args})
		}
		sc.Steps = append(sc.Steps, step)
	}
	sc.Steps = append(sc.Steps, modeltest.Step{Text: "finished"})
	env := map[string]string{"EFFECT_SLEEP_BEFORE": "5ms", "EFFECT_SLEEP_AFTER": "5ms"}
	return llm(t, api, sc, agent{keys: "retry: {initial: 10ms}", tools: []toolSpec{
		{name: "effect", env: env}, {name: "put", part: "effect", env: env, more: "effect: idempotent, parallel: true"}, {name: "look", part: "echo", more: "effect: read, parallel: true"},
	}})
}

func turnArgs(turn, call int) string { return fmt.Sprintf(`{"turn":%d,"call":%d}`, turn, call) }

// TestKilledInTurns kills stint at random instants of turns with two calls. Whoever goes on
// makes valid requests only, does what may be done once at most once, and ends with one
// result for every call (crush#1206, claude-code#45286, leviath#96).
func TestKilledInTurns(t *testing.T) {
	t.Parallel()
	rounds := 30
	if long() {
		rounds = 300
	}
	var kills, doubts atomic.Int64
	t.Cleanup(func() {
		t.Logf("seed %d: %d kills, %d steps in doubt", seed(), kills.Load(), doubts.Load())
		if !t.Failed() && int(kills.Load()) < rounds/3 {
			t.Errorf("of %d rounds only %d were killed in time", rounds, kills.Load())
		}
	})
	took := map[string]time.Duration{}
	for _, api := range apis() {
		s := restless(t, api)
		u := s.start("run", "case", "-p", "Go.", "--json")
		u.ends(0)
		took[api] = u.took
		s.complete(0)
	}
	for i := range rounds {
		api := apis()[i%len(apis())]
		t.Run(fmt.Sprintf("%03d %s", i, api), func(t *testing.T) {
			t.Parallel()
			h := fnv.New64a()
			h.Write([]byte(t.Name()))
			r := rand.New(rand.NewPCG(seed(), h.Sum64()))
			s := restless(t, api)
			told := map[int]string{}
			unknown := 0
			for n := 0; ; n++ {
				u := s.start(s.onward()...)
				if n == 0 || n == 1 && i%3 == 0 {
					timer := time.NewTimer(time.Duration(r.Int64N(int64(took[api]))))
					select {
					case <-timer.C:
						u.kill()
						kills.Add(1)
					case <-u.done:
						timer.Stop()
					}
				}
				u.ends(-1)
				s.told(told, u.out.String())
				v, ok := s.newest()
				switch {
				case !ok || v.Status == "pending":
				case v.Waiting != nil && v.Waiting.For == "doubt":
					s.must("resolve", v.ID+":"+*v.Waiting.Step, "--unknown")
					unknown++
					doubts.Add(1)
				default:
					s.is(v, "completed", "finished")
				}
				if ok && v.Status == "completed" {
					break
				}
				if n > 20 {
					t.Fatalf("it comes to no end: %+v", v)
				}
			}
			s.complete(unknown)
			for _, e := range s.journal("@last") {
				if hash, ok := told[e.Seq]; ok && hash != e.Hash {
					t.Errorf("entry %d is another than the one that was told of", e.Seq)
				}
				delete(told, e.Seq)
			}
			if len(told) > 0 {
				t.Errorf("%d entries were told of and are not there", len(told))
			}
			s.verified()
		})
	}
}

// onward is the command that brings the site's session on, or begins one.
func (s *site) onward() []string {
	s.t.Helper()
	if v, ok := s.newest(); ok {
		return []string{"resume", v.ID, "--run", "--json"}
	}
	return []string{"run", "case", "-p", "Go.", "--json"}
}

// newest is the session of the site, if there is one. Who was killed while it forked has a
// child that holds its lock until it executes something, an instant later.
func (s *site) newest() (v shown, ok bool) {
	s.t.Helper()
	if _, err := os.Stat(s.path(filepath.Join(".stint", "stint.db"))); err != nil {
		return v, false
	}
	await(s.t, "end of the lease", func() bool {
		all := s.all()
		if ok = len(all) > 0; ok {
			v = all[len(all)-1]
		}
		return v.Status != "running"
	})
	if ok {
		v = s.show(v.ID)
	}
	return v, ok
}

// told adds the entries that stint printed; what a kill cut off is none.
func (s *site) told(to map[int]string, out string) {
	for l := range strings.Lines(out) {
		var e struct {
			Schema, Hash string
			Seq          int
		}
		if strings.HasSuffix(l, "\n") && json.Unmarshal([]byte(l), &e) == nil && e.Schema == "stint.entry/1" {
			to[e.Seq] = e.Hash
		}
	}
}

// complete checks what the model was sent last, and what took place: every call has one
// result, in order, and what it says is so.
func (s *site) complete(unknown int) {
	s.t.Helper()
	all := s.srv.Requests()
	last := string(all[len(all)-1].Body)
	sent, got := calls(s.t, s.api, last), results(s.t, s.api, last)
	if len(sent) != 2*len(turns()) || len(got) != len(sent) {
		s.t.Fatalf("the model was sent %d calls and %d results, want %d", len(sent), len(got), 2*len(turns()))
	}
	times, keys := map[string]int{}, map[string]string{}
	for _, d := range s.deeds() {
		times[d.args]++
		if was, ok := keys[d.args]; ok && was != d.key {
			s.t.Errorf("%s took place under the keys %s and %s", d.args, was, d.key)
		}
		keys[d.args] = d.key
	}
	marked := 0
	for n, c := range sent {
		i, k := n/2, n%2
		args := turnArgs(i, k)
		if c.Name != turns()[i][k] || c.Args != args || got[n].ID != c.ID {
			s.t.Errorf("call %d is %+v with the result of %s", n, c, got[n].ID)
		}
		text := got[n].Text
		switch {
		case c.Name == "look" && text == args:
		case c.Name == "put" && text == "done" && times[args] >= 1:
		case c.Name == "effect" && text == "done" && times[args] == 1:
		case c.Name == "effect" && strings.Contains(text, "not known") && times[args] <= 1:
			marked++
		default:
			s.t.Errorf("call %d, %s %s, has the result %q, and took place %d times", n, c.Name, args, text, times[args])
		}
	}
	if marked != unknown {
		s.t.Errorf("%d results are not known, want %d", marked, unknown)
	}
}

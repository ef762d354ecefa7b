package view_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a store with sessions that a test writes, in a bubble whose clock
// stands at four in the afternoon of a Sunday.
type world struct {
	t     *testing.T
	store *mem.Store
	n     int
}

func inWorld(t *testing.T, fn func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)))
		fn(&world{t: t, store: mem.New()})
	})
}

func now() time.Time { return time.Now().UTC() }

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

// script is one session while a test writes it.
type script struct {
	w       *world
	s       stint.Session
	lease   stint.Lease
	release func() error
	seed    string
	failed  error
}

// session makes one. What its id ends in follows from the name.
func (w *world) session(name string, change ...func(*journal.Created)) *script {
	w.t.Helper()
	w.n++
	seed := fmt.Sprint(name, w.n)
	sum := sha256.Sum256([]byte(seed))
	id := stint.ID(sum[:16])
	binary.BigEndian.PutUint64(id[:8], uint64(now().UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint16(id[8:10], uint16(w.n))
	c := journal.Created{Family: id, Name: name, Trigger: stint.Trigger{Kind: "prompt"},
		Agent: stint.AgentRef{Name: strings.TrimRight(name, "-0123456789"), Runtime: "exec", Pin: stint.Hash(sum)}}
	for _, fn := range change {
		fn(&c)
	}
	k := &script{w: w, seed: seed, s: stint.Session{ID: id}}
	k.add(journal.Draft{Kind: stint.SessionCreated, Actor: "human:ana", Data: c, Body: []byte("Close what is \"stale\" in acme/api")})
	return k
}

// add appends an entry, or makes the session with it.
func (k *script) add(d journal.Draft) stint.Entry {
	k.w.t.Helper()
	e, err := k.try(d)
	if err != nil {
		k.w.t.Fatal(err)
	}
	return e
}

func (k *script) try(d journal.Draft) (stint.Entry, error) {
	ctx := k.w.t.Context()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", k.seed, k.s.Head))
	d.At, d.Epoch, d.Salt = now(), k.lease.Epoch, [16]byte(sum[:16])
	b := stint.Batch{}
	if len(d.Body) > journal.InlineBytes {
		key, err := k.w.store.FamilyKey(ctx, k.s.Family)
		if err != nil {
			return stint.Entry{}, err
		}
		d.Blob = journal.BlobID(key, d.Body)
		b.Blobs, d.Body = map[stint.BlobRef][]byte{d.Blob: d.Body}, nil
	}
	s, e, err := journal.Next(k.s, d)
	if err != nil {
		return e, err
	}
	b.Session, b.Entries = s, []stint.Entry{e}
	k.s = s
	if e.Seq == 1 {
		_, err = k.w.store.Create(ctx, b, stint.Claim{})
		return e, err
	}
	b.Release = e.Kind == stint.SessionWaiting || e.Kind == stint.SessionEnded || e.Kind == stint.SessionReleased
	k.w.store.Append(ctx, k.lease, b, func(got error) { err = got })
	return e, err
}

// claim makes a runner hold the session.
func (k *script) claim(holder string) *script {
	k.w.t.Helper()
	release, err := k.w.store.Hold(k.w.t.Context(), holder)
	if err != nil {
		k.w.t.Fatal(err)
	}
	k.release = release
	ls, err := k.w.store.Claim(k.w.t.Context(), stint.Claim{Holder: holder, TTL: 30 * time.Second, Max: 1, Session: k.s.ID})
	if err != nil {
		k.w.t.Fatal(err)
	}
	k.lease = ls[0]
	if prior := k.lease.Prior; prior == stint.Died || prior == stint.Expired {
		k.add(journal.Draft{Kind: stint.LeaseLost, Pos: k.at(0, 0), Data: journal.LeaseLost{Prior: prior}})
	}
	return k
}

// die makes the runner vanish.
func (k *script) die() {
	k.w.t.Helper()
	if err := k.release(); err != nil {
		k.w.t.Fatal(err)
	}
}

// doing sets the NOW line and renews the lease.
func (k *script) doing(line string) {
	k.w.t.Helper()
	k.lease.Now, k.lease.NowAt = line, now()
	if _, err := k.w.store.Renew(k.w.t.Context(), 30*time.Second, []stint.Lease{k.lease}); err != nil {
		k.w.t.Fatal(err)
	}
}

func (k *script) at(step, sub int) stint.Position {
	return stint.Position{Loop: k.s.At.Loop, Attempt: k.s.At.Attempt, Step: step, Sub: sub}
}

// loop begins the next loop, or the open one again.
func (k *script) loop(why string) {
	k.w.t.Helper()
	pos := stint.Position{Loop: k.s.Checkpoint.Loop + 1, Attempt: 1}
	if at := k.s.At; at.Open {
		pos = stint.Position{Loop: at.Loop, Attempt: at.Attempt + 1}
		if at.Parked {
			pos.Attempt--
		}
	}
	k.add(journal.Draft{Kind: stint.LoopStarted, Pos: pos, Data: journal.LoopStarted{Why: why}})
}

// intend records that a once step begins.
func (k *script) intend(n int, name, input string) journal.StepRequested {
	k.w.t.Helper()
	r := journal.StepRequested{Name: name, Kind: stint.Tool, Effect: stint.Once}
	k.add(journal.Draft{Kind: stint.StepRequested, Pos: k.at(n, 0), Actor: stint.ByAgent, Data: r, Body: []byte(input)})
	return r
}

// step records a finished step.
func (k *script) step(n int, d journal.StepDone, result string) {
	k.w.t.Helper()
	k.add(journal.Draft{Kind: stint.StepCompleted, Pos: k.at(n, 0), Actor: stint.ByAgent, Data: d, Body: []byte(result)})
}

// complete ends the loop with a state; empty leaves it as it was.
func (k *script) complete(state, headline string, roll journal.Rollup) {
	k.w.t.Helper()
	ref, body := journal.StateRef{Enc: journal.Same, Size: k.s.Checkpoint.Size}, []byte(nil)
	if state != "" {
		old, err := journal.ReadState(k.s.Checkpoint, k.source)
		if err != nil {
			k.w.t.Fatal(err)
		}
		if ref, body, err = journal.WriteState(k.s.Checkpoint, old, []byte(state), k.source); err != nil {
			k.w.t.Fatal(err)
		}
	}
	k.add(journal.Draft{Kind: stint.LoopCompleted, Pos: k.at(0, 0), Body: body,
		Data: journal.LoopCompleted{Rollup: roll, MS: now().Sub(k.s.At.Since).Milliseconds(), State: ref, Headline: headline}})
}

func (k *script) source(seq stint.Seq) (journal.StateRef, []byte, error) {
	es, err := k.w.store.Entries(k.w.t.Context(), stint.Range{Session: k.s.ID, After: seq - 1, Until: seq})
	if err != nil {
		return journal.StateRef{}, nil, err
	}
	body := es[0].Body
	if !es[0].Blob.IsZero() {
		if body, err = k.w.store.Blob(k.w.t.Context(), k.s.Family, es[0].Blob); err != nil {
			return journal.StateRef{}, nil, err
		}
	}
	if es[0].Kind == stint.LineStarted {
		d, err := journal.Decode[journal.LineStarted](&es[0])
		return d.State, body, err
	}
	d, err := journal.Decode[journal.LoopCompleted](&es[0])
	return d.State, body, err
}

func (k *script) wait(wait stint.Wait) {
	k.w.t.Helper()
	k.add(journal.Draft{Kind: stint.SessionWaiting, Pos: k.at(0, 0), Data: wait})
}

func (k *script) end(outcome stint.Status, reason, result string) {
	k.w.t.Helper()
	k.add(journal.Draft{Kind: stint.SessionEnded, Pos: k.at(0, 0), Data: journal.Ended{Outcome: outcome, Reason: reason}, Body: []byte(result)})
}

func (k *script) row() stint.Row {
	k.w.t.Helper()
	row, err := k.w.store.Session(k.w.t.Context(), k.s.ID)
	if err != nil {
		k.w.t.Fatal(err)
	}
	return row
}

// terminal is a style as on one of 100 columns.
func terminal() term.Style { return term.Style{TTY: true, Width: 100} }

// golden compares got with testdata/NAME.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", path, got, want)
	}
}

// story fills w with sessions in every state of their life and returns the one that
// has most to tell.
func story(w *world) *script {
	ended := w.session("nightly-triage-1129")
	ended.claim("worker-a/100")
	ended.loop("first")
	pass(90 * time.Second)
	ended.complete(`{"closed":9}`, "9 issues closed", journal.Rollup{Steps: 1, Tools: 1, Effects: 1})
	ended.end(stint.Completed, "nothing left to do", `{"closed":9}`)

	broken := w.session("inbox-1129").claim("worker-a/101")
	broken.loop("first")
	broken.add(journal.Draft{Kind: stint.LoopFailed, Pos: broken.at(0, 0), Actor: stint.ByAgent, Data: journal.LoopFailed{Error: "gmail: 401", Final: true}})
	broken.end(stint.Failed, "gmail: 401", "")

	main := deps(w)

	pay := w.session("invoice-recon-1129", func(c *journal.Created) { c.Limits.Cost = 5_000_000_000 }).claim("worker-b/7")
	pay.loop("first")
	pay.intend(1, "erp.post_rows", `{"rows":214}`)
	pay.die()
	pass(time.Second)
	pay.claim("worker-b/8")
	pay.loop("recover")
	pay.wait(stint.Wait{For: stint.ForDoubt, What: "step 1.1 erp.post_rows: did it happen? (no outcome is recorded)", Step: pay.at(1, 0)})

	pass(time.Second)
	budget := w.session("mail-1129").claim("worker-b/9")
	budget.loop("first")
	budget.complete("", "", journal.Rollup{})
	budget.wait(stint.Wait{For: stint.ForBudget, What: "cost: $5.00 of $5.00"})

	pass(time.Second)
	paused := w.session("report-1129").claim("worker-b/10")
	paused.wait(stint.Wait{For: stint.ForOperator, What: "month end", Who: "human:ana"})

	timer := w.session("digest-1129").claim("worker-b/11")
	timer.loop("first")
	timer.complete(`{"n":1}`, "sent the digest", journal.Rollup{})
	timer.wait(stint.Wait{For: stint.ForTime, Until: now().Add(14 * time.Hour)})

	retry := w.session("sync-1129").claim("worker-b/12")
	retry.loop("first")
	retry.add(journal.Draft{Kind: stint.LoopFailed, Pos: retry.at(0, 0), Actor: stint.ByAgent, Data: journal.LoopFailed{Error: "connection refused"}})
	retry.wait(stint.Wait{For: stint.ForRetry, Until: now().Add(4 * time.Minute), What: "connection refused"})

	dead := w.session("pr-review-1129").claim("worker-c/1")
	dead.loop("first")
	dead.doing("reading the diff")
	pass(5 * time.Second)
	dead.die()

	fresh := w.session("docs-1129", func(c *journal.Created) { c.Labels = map[string]string{"team": "platform", "tier": "2"} })
	if err := w.store.Send(w.t.Context(), fresh.s.ID, stint.Message{ID: "m1", Kind: stint.Prompt, From: "human:ana", Body: []byte("hurry")}); err != nil {
		w.t.Fatal(err)
	}
	pass(time.Minute)
	main.doing("go test ./internal/queue/...")
	pass(38 * time.Second)
	main.lease.Now, main.lease.NowAt = "go test ./internal/queue/...", now().Add(-38*time.Second)
	if _, err := w.store.Renew(w.t.Context(), 30*time.Second, []stint.Lease{main.lease}); err != nil {
		w.t.Fatal(err)
	}
	return main
}

// deps is a session with two lines, a message, all kinds of steps, and output.
func deps(w *world) *script {
	k := w.session("deps-bump-1129", func(c *journal.Created) {
		c.Trigger = stint.Trigger{Kind: "schedule", Ref: "deps-bump", Due: now()}
		c.Limits = stint.Limits{Wall: time.Hour, Cost: 5_000_000_000, Loops: 50, Tokens: 200_000}
	})
	pass(time.Second)
	k.claim("worker-a/4121")
	usage := stint.Usage{Input: 2_800, Output: 212, CacheRead: 27_000, Cost: 190_000_000}
	for i := range 3 {
		k.loop([]string{"first", "next", "next"}[i])
		k.step(1, journal.StepDone{StepRequested: journal.StepRequested{Name: "claude-sonnet-5", Kind: stint.Model, Effect: stint.Read}, MS: 9_800, Usage: usage},
			`"I will run the package tests again to confirm."`)
		pass(10 * time.Second)
		r := k.intend(2, "bash", `{"command":"go test ./internal/queue/..."}`)
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Actor: stint.ByAgent, Data: journal.Output{Stream: "stdout"},
			Body: []byte("=== RUN   TestQueueDrain\n--- FAIL: TestQueueDrain (0.50s)\n")})
		pass(41 * time.Second)
		k.step(2, journal.StepDone{StepRequested: r, MS: 41_500}, `{"exit":1}`)
		k.complete([]string{`{"cursor":1,"tries":[]}`, `{"cursor":1,"tries":["2s → 5s"]}`, ""}[i],
			[]string{"queue: drain timeout", "tests: FAIL TestQueueDrain", "tests: FAIL (same)"}[i],
			journal.Rollup{Steps: 2, Models: 1, Tools: 1, Effects: 1, Usage: usage})
	}
	k.loop("next")
	k.add(journal.Draft{Kind: stint.StepFailed, Pos: k.at(1, 0), Actor: stint.ByAgent,
		Data: journal.StepDone{StepRequested: journal.StepRequested{Name: "http.get", Kind: stint.Tool, Effect: stint.Read}, MS: 12, Error: "503 Service Unavailable"}})
	cp, err := journal.CheckpointAt(entriesOf(k), 2)
	if err != nil {
		w.t.Fatal(err)
	}
	k.add(journal.Draft{Kind: stint.MessageTaken, Pos: k.at(0, 0), Actor: "human:ben", Data: journal.Taken{ID: "m7", Kind: stint.Restart, From: "human:ben", At: now(),
		Data: []byte(`{"from":2,"reason":"look at the lease clock"}`)}})
	k.add(journal.Draft{Kind: stint.LineStarted, Pos: stint.Position{Loop: 2}, Actor: "human:ben", Data: journal.LineStarted{From: 2, Checkpoint: cp, Reason: "look at the lease clock"}})
	k.loop("next")
	k.add(journal.Draft{Kind: stint.LimitChanged, Pos: k.at(0, 0), Actor: "human:ben", Data: journal.LimitChanged{
		Limits: stint.Limits{Wall: 2 * time.Hour, Cost: 8_000_000_000, Loops: 50, Tokens: 200_000}}})
	k.step(1, journal.StepDone{StepRequested: journal.StepRequested{Name: "github.comment", Kind: stint.Tool, Effect: stint.Idempotent}, MS: 310,
		Args: []byte(`{"issue":4121}`)}, `{"id":99}`)
	k.intend(2, "bash", `{"command":"go test ./internal/queue/..."}`)
	return k
}

func entriesOf(k *script) []stint.Entry {
	k.w.t.Helper()
	es, err := k.w.store.Entries(k.w.t.Context(), stint.Range{Session: k.s.ID})
	if err != nil {
		k.w.t.Fatal(err)
	}
	return es
}

// noEntries is a reader without a journal.
type noEntries struct {
	stint.Reader
	reads int
}

func (r *noEntries) Entries(context.Context, stint.Range) ([]stint.Entry, error) {
	r.reads++
	return nil, stint.Internal.Errorf("entries", "nobody was to read entries")
}

// names are the names of rows.
func names(rows []stint.Row) []string {
	var all []string
	for i := range rows {
		all = append(all, rows[i].Session.Name)
	}
	return all
}

func listed(t *testing.T, w *world, q view.Query) []string {
	t.Helper()
	rows, _, err := view.Sessions(t.Context(), w.store, q)
	if err != nil {
		t.Fatal(err)
	}
	all := names(rows)
	slices.Sort(all)
	return all
}

package view_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// damaged is a store that gives back something else than it keeps.
type damaged struct {
	*mem.Store
	entries func([]stint.Entry) []stint.Entry
	blob    func([]byte, error) ([]byte, error)
	key     func([]byte, error) ([]byte, error)
	failing error
	reads   int
	page    int // the largest
}

func (d *damaged) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if d.failing != nil {
		return nil, d.failing
	}
	all, err := d.Store.Entries(ctx, stint.Range{Session: r.Session, Limit: 1 << 30})
	all = slices.Clone(all)
	if d.entries != nil {
		all = d.entries(all)
	}
	var got []stint.Entry
	for _, e := range all {
		if e.Seq > r.After && (r.Until == 0 || e.Seq <= r.Until) && (r.Limit == 0 || len(got) < r.Limit) {
			got = append(got, e)
		}
	}
	d.reads++
	d.page = max(d.page, len(got))
	return got, err
}

func (d *damaged) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	b, err := d.Store.Blob(ctx, family, ref)
	if d.blob != nil {
		return d.blob(b, err)
	}
	return b, err
}

func (d *damaged) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	k, err := d.Store.FamilyKey(ctx, family)
	if d.key != nil {
		return d.key(k, err)
	}
	return k, err
}

// long is a session with states in every form, bodies outside, and three lines.
func long(w *world) *script {
	k := w.session("long-1129").claim("worker/1")
	for i := range 140 {
		k.loop("next")
		if i%40 == 5 {
			r := k.intend(1, "report", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 3000+i)))
			k.step(1, journal.StepDone{StepRequested: r}, fmt.Sprintf("%q", strings.Repeat("y", 4000+i)))
		}
		if i == 90 {
			noise := ""
			for j := range 40 {
				noise += stint.Hash(sha256.Sum256([]byte{byte(j)})).String()
			}
			k.complete(fmt.Sprintf(`{"n":%d,"pad":%q}`, i, noise), "", journal.Rollup{}) // a snapshot outside
			continue
		}
		k.complete(fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("z", 1500)), "", journal.Rollup{})
	}
	cp, err := journal.CheckpointAt(entriesOf(k), 70)
	if err != nil {
		w.t.Fatal(err)
	}
	state := []byte(`{"n":"edited"}`)
	ref, body, err := journal.WriteState(stint.Checkpoint{}, nil, state, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	k.add(journal.Draft{Kind: stint.LineStarted, Pos: stint.Position{Loop: 70}, Actor: "human:ben", Data: journal.LineStarted{From: 70, Checkpoint: cp}})
	k.loop("next")
	k.complete(`{"n":"on another line"}`, "", journal.Rollup{})
	k.add(journal.Draft{Kind: stint.LineStarted, Actor: "human:ben", Data: journal.LineStarted{State: ref}, Body: body})
	k.loop("next")
	k.complete(`{"n":"edited twice"}`, "", journal.Rollup{})
	k.loop("next")
	return k
}

func verify(t *testing.T, src view.Source, row stint.Row, opt view.VerifyOptions) view.Report {
	t.Helper()
	r, err := view.VerifySession(t.Context(), src, row, opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK != (len(r.Problems) == 0) {
		t.Errorf("ok is %v with %d problems", r.OK, len(r.Problems))
	}
	return r
}

func TestVerifySound(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		k := long(w)
		rows, _, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if r := verify(t, w.store, row, view.VerifyOptions{States: true}); !r.OK {
				t.Errorf("%s: %+v", row.Session.Name, r.Problems)
			}
		}
		var progress []int64
		src := &damaged{Store: w.store}
		r := verify(t, src, k.row(), view.VerifyOptions{States: true, Page: 100, Progress: func(n int64) { progress = append(progress, n) }})
		if r.States != 143 || r.Bodies != 9 || r.Entries != int64(k.s.Head) || r.Head != k.s.Head || r.HeadHash != k.s.HeadHash || !r.OK {
			t.Errorf("%d states, %d bodies, %d entries: %+v", r.States, r.Bodies, r.Entries, r.Problems)
		}
		if src.page > 100 || !slices.Equal(progress, []int64{100, 200, int64(k.s.Head)}) {
			t.Errorf("read in pages of %d, with the progress %v", src.page, progress)
		}
		if src.reads > 25 {
			t.Errorf("%d reads for 143 states: chains were read again", src.reads)
		}
		if r := verify(t, w.store, k.row(), view.VerifyOptions{}); r.States != 1 || !r.OK {
			t.Errorf("without States %d states were read: %+v", r.States, r.Problems)
		}
	})
}

// Any entry that is not the one that was written is found, and named.
func TestVerifyEveryByte(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := deps(w)
		k.doing("x")
		row := k.row()
		for name, damage := range map[string]func(*stint.Entry){
			"data":     func(e *stint.Entry) { e.Data = flip(e.Data) },
			"body":     func(e *stint.Entry) { e.Body = flip(e.Body) },
			"hash":     func(e *stint.Entry) { e.Hash[31] ^= 1 },
			"salt":     func(e *stint.Entry) { e.Salt[0] ^= 0x80 },
			"kind":     func(e *stint.Entry) { e.Kind += "x" },
			"actor":    func(e *stint.Entry) { e.Actor = "human:eve" },
			"time":     func(e *stint.Entry) { e.At = e.At.Add(time.Microsecond) },
			"epoch":    func(e *stint.Entry) { e.Epoch++ },
			"loop":     func(e *stint.Entry) { e.Pos.Loop++ },
			"step":     func(e *stint.Entry) { e.Pos.Step++ },
			"cause":    func(e *stint.Entry) { e.Cause++ },
			"version":  func(e *stint.Entry) { e.Version++ },
			"erased":   func(e *stint.Entry) { e.Erased, e.Data, e.Body = true, nil, nil },
			"outside":  func(e *stint.Entry) { e.Blob.Size++ },
			"session":  func(e *stint.Entry) { e.Session[0]++ },
			"sequence": func(e *stint.Entry) { e.Seq += 1 << 20 },
		} {
			for i := range row.Session.Head {
				src := &damaged{Store: w.store, entries: func(es []stint.Entry) []stint.Entry { damage(&es[i]); return es }}
				r := verify(t, src, row, view.VerifyOptions{})
				if r.OK {
					t.Errorf("another %s of entry %d is not found", name, i+1)
				} else if at := r.Problems[0].Seq; at != i+1 && name != "sequence" {
					t.Errorf("another %s of entry %d is found at entry %d: %s", name, i+1, at, r.Problems[0].What)
				}
			}
		}
		for i := range row.Session.Head {
			for name, change := range map[string]func([]stint.Entry) []stint.Entry{
				"missing": func(es []stint.Entry) []stint.Entry { return slices.Delete(es, int(i), int(i)+1) },
				"twice":   func(es []stint.Entry) []stint.Entry { return slices.Insert(es, int(i), es[i]) },
				"cut off": func(es []stint.Entry) []stint.Entry { return es[:i] },
			} {
				if r := verify(t, &damaged{Store: w.store, entries: change}, row, view.VerifyOptions{}); r.OK {
					t.Errorf("an entry %d that is %s is not found", i+1, name)
				}
			}
		}
	})
}

func flip(b []byte) []byte {
	if len(b) == 0 {
		return []byte("x")
	}
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

func TestVerifyBodiesAndStates(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := long(w)
		row := k.row()
		notFound := func([]byte, error) ([]byte, error) { return nil, stint.NotFound.Errorf("blob", "gone") }
		for _, c := range []struct {
			name        string
			src         *damaged
			check, what string
		}{
			{"bodies that are gone", &damaged{blob: notFound}, "body", "not there"},
			{"bodies that changed", &damaged{blob: func(b []byte, err error) ([]byte, error) { return flip(b), err }}, "body", "not those that it names"},
			{"bodies that cannot be read", &damaged{blob: func([]byte, error) ([]byte, error) { return nil, stint.Corrupt.Errorf("blob", "torn") }}, "body", "torn"},
			{"another key", &damaged{key: func([]byte, error) ([]byte, error) { return make([]byte, 32), nil }}, "body", "not those that it names"},
			{"no key", &damaged{key: func([]byte, error) ([]byte, error) { return nil, stint.NotFound.Errorf("key", "no keys file") }}, "body", "no keys file"},
		} {
			c.src.Store = w.store
			r := verify(t, c.src, row, view.VerifyOptions{})
			if r.OK || r.Problems[0].Check != c.check || !strings.Contains(r.Problems[0].What, c.what) || r.Problems[0].Seq == 0 {
				t.Errorf("%s: %+v", c.name, r.Problems)
			}
		}
		r := verify(t, &damaged{Store: w.store, blob: notFound}, row, view.VerifyOptions{States: true})
		if !slices.ContainsFunc(r.Problems, func(p view.Problem) bool { return p.Check == "state" }) {
			t.Errorf("a state whose snapshot is gone is not found: %+v", r.Problems)
		}

		// A journal that a faulty engine would write: sound but for the bytes of a state.
		bad := w.session("bad-1129").claim("worker/2")
		bad.loop("first")
		bad.complete(`{"n":1}`, "", journal.Rollup{})
		bad.loop("next")
		ref, body, err := journal.WriteState(bad.s.Checkpoint, []byte(`{"n":1}`), []byte(`{"n":2}`), bad.source)
		if err != nil {
			t.Fatal(err)
		}
		ref.Sum[0]++
		bad.add(journal.Draft{Kind: stint.LoopCompleted, Pos: bad.at(0, 0), Data: journal.LoopCompleted{State: ref}, Body: body})
		seq := bad.s.Head
		if r := verify(t, w.store, bad.row(), view.VerifyOptions{}); r.OK || r.Problems[0].Seq != seq || r.Problems[0].Check != "state" {
			t.Errorf("the newest state is not what its sum says: %+v", r.Problems)
		}
		bad.loop("next")
		bad.add(journal.Draft{Kind: stint.LoopCompleted, Pos: bad.at(0, 0), Data: journal.LoopCompleted{State: full(`{"n":3}`)}, Body: []byte(`{"n":3}`)})
		if r := verify(t, w.store, bad.row(), view.VerifyOptions{}); !r.OK {
			t.Errorf("the newest state is sound: %+v", r.Problems)
		}
		if r := verify(t, w.store, bad.row(), view.VerifyOptions{States: true}); r.OK || r.Problems[0].Seq != seq {
			t.Errorf("an older state is not what its sum says: %+v", r.Problems)
		}
	})
}

// full refers to a snapshot.
func full(state string) journal.StateRef {
	ref, _, err := journal.WriteState(stint.Checkpoint{}, nil, []byte(state), nil)
	if err != nil {
		panic(err)
	}
	return ref
}

func TestVerifyRow(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := deps(w)
		k.doing("x")
		ended := w.session("ended-1129").claim("worker/2")
		ended.end(stint.Completed, "", "")
		for _, c := range []struct {
			name   string
			of     *script
			change func(*stint.Row)
			what   string
		}{
			{"another name", k, func(r *stint.Row) { r.Session.Name = "x" }, `add up to name "deps-bump-1129", the row has "x"`},
			{"another total", k, func(r *stint.Row) { r.Session.Totals.Steps++ }, "totals"},
			{"another checkpoint", k, func(r *stint.Row) { r.Session.Checkpoint.Sum[0]++ }, "checkpoint"},
			{"labels from nowhere", k, func(r *stint.Row) { r.Session.Labels = map[string]string{"a": "b"} }, "no labels"},
			{"a label lost", k, func(r *stint.Row) { r.Session.Limits.Loops = 0 }, "limits"},
			{"stored as running", k, func(r *stint.Row) { r.Session.Status = stint.Running }, "stored as running"},
			{"waiting for nothing", k, func(r *stint.Row) { r.Session.Status = stint.Waiting }, "what it waits for"},
			{"ended without an end", k, func(r *stint.Row) { r.Session.Status = stint.Failed }, "time of its end"},
			{"a short id that is none", k, func(r *stint.Row) { r.Short = "zzzz" }, "short id"},
			{"a lease of another", k, func(r *stint.Row) { r.Lease.Session[0]++ }, "its lease is one of session"},
			{"an old lease", k, func(r *stint.Row) { r.Lease.Epoch = 0 }, "epoch 0"},
			{"live without a lease", k, func(r *stint.Row) { r.Lease = stint.Lease{} }, "there is no lease"},
			{"a lease that was not given back", ended, func(r *stint.Row) { r.Lease = stint.Lease{Session: r.Session.ID, Epoch: 1, Holder: "x"} }, "not given back"},
			{"a head too far", k, func(r *stint.Row) { r.Session.Head++ }, "ends with entry 27, the row says 28"},
			{"no head", k, func(r *stint.Row) { r.Session.Head = 0 }, "no head"},
			{"another head hash", k, func(r *stint.Row) { r.Session.HeadHash[3]++ }, "head_hash"},
		} {
			row := c.of.row()
			c.change(&row)
			r := verify(t, w.store, row, view.VerifyOptions{})
			if !slices.ContainsFunc(r.Problems, func(p view.Problem) bool { return strings.Contains(p.What, c.what) }) {
				t.Errorf("%s: %+v, want %q", c.name, r.Problems, c.what)
			}
		}

		// A lease that was claimed after the end, to begin the session again, is sound.
		row := ended.row()
		row.Lease = stint.Lease{Session: row.Session.ID, Epoch: 2, Holder: "x"}
		if r := verify(t, w.store, row, view.VerifyOptions{}); !r.OK {
			t.Errorf("an ended session that is claimed again: %+v", r.Problems)
		}
		// A session that goes on while it is checked is checked as the row has it.
		row = k.row()
		k.step(2, journal.StepDone{StepRequested: journal.StepRequested{Name: "bash", Kind: stint.Tool, Effect: stint.Once}}, `{}`)
		if r := verify(t, w.store, row, view.VerifyOptions{}); !r.OK {
			t.Errorf("a session that is being written: %+v", r.Problems)
		}
		// An entry that no row knows of is none of a session that goes on.
		src := &stale{Store: w.store, row: row}
		if r := verify(t, src, row, view.VerifyOptions{}); r.OK || !strings.Contains(r.Problems[0].What, "there is an entry 28, and the row ends with 27") {
			t.Errorf("an entry after the head: %+v", r.Problems)
		}
	})
}

// stale is a store whose row does not move on.
type stale struct {
	*mem.Store
	row stint.Row
}

func (s *stale) Session(context.Context, stint.ID) (stint.Row, error) { return s.row, nil }

// A store that fails says nothing about a journal.
func TestVerifyUnavailable(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := long(w)
		for _, src := range []*damaged{
			{Store: w.store, failing: stint.Unavailable.Errorf("entries", "the disk is away")},
			{Store: w.store, blob: func([]byte, error) ([]byte, error) { return nil, stint.Unavailable.Errorf("blob", "the disk is away") }},
			{Store: w.store, key: func([]byte, error) ([]byte, error) { return nil, stint.Unavailable.Errorf("key", "the disk is away") }},
		} {
			if _, err := view.VerifySession(t.Context(), src, k.row(), view.VerifyOptions{States: true}); stint.CodeOf(err) != stint.Unavailable {
				t.Errorf("%v, want unavailable", err)
			}
		}
		torn := &damaged{Store: w.store, failing: stint.Corrupt.Errorf("entries", "malformed page")}
		if r := verify(t, torn, k.row(), view.VerifyOptions{}); r.OK || !strings.Contains(r.Problems[0].What, "malformed page") {
			t.Errorf("entries that cannot be read: %+v", r.Problems)
		}
	})
}

func TestWriteReport(t *testing.T) {
	r := view.Report{Name: "deps-1129", Short: "x81d", OK: true, Entries: 61_240, Bodies: 1}
	var out bytes.Buffer
	if err := view.WriteReport(&out, term.Style{TTY: true}, &r); err != nil {
		t.Fatal(err)
	}
	r.OK, r.Problems = false, []view.Problem{{Seq: 13, Check: "journal", What: "entry 13 (step.failed) breaks a rule"}, {Check: "row", What: "it is stored as running"}}
	if err := view.WriteReport(&out, term.Style{}, &r); err != nil {
		t.Fatal(err)
	}
	want := `✓ deps-1129 (x81d) sound: 61,240 entries · 1 body · 0 states
deps-1129 (x81d) NOT SOUND: 61,240 entries · 1 body · 0 states
    entry 13, journal: entry 13 (step.failed) breaks a rule
    session, row: it is stored as running
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// What the store tells of a session stands in its report, also where the row cannot be
// read; and what is of no session, in the verification. Nothing of it drives a terminal.
func TestVerifyKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := deps(w)
		known := []view.Problem{{Check: "table", What: "a column \x1b[2J differs"}}
		r := verify(t, w.store, k.row(), view.VerifyOptions{Known: known})
		if r.OK || len(r.Problems) != 1 || strings.Contains(r.Problems[0].What, "\x1b") || r.Problems[0].Check != "table" {
			t.Errorf("the report is %+v", r)
		}
		id := k.row().Session.ID
		lost := view.Unreadable(id, known, stint.Corrupt.Errorf("session", "the row is damaged"))
		if lost.OK || len(lost.Problems) != 2 || lost.Session != id || !strings.HasSuffix(id.String(), lost.Short) {
			t.Errorf("the report is %+v", lost)
		}
		v := view.NewVerification(time.Now())
		v.Add(lost, false)
		for range 150 {
			v.Fault(view.Problem{Check: "table", What: "a page \x1b[2J is lost"})
		}
		var b bytes.Buffer
		if err := v.WriteFaults(&b, term.Style{}); err != nil || v.OK || len(v.Problems) != 100 || strings.Contains(b.String(), "\x1b") || !strings.HasPrefix(b.String(), "the store NOT SOUND\n") {
			t.Errorf("%v: %d problems\n%s", err, len(v.Problems), b.String())
		}
	})
}

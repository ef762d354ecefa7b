package bench_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
)

func TestRecovery(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stint.db")
	const n, loops = 30, 2
	r, err := bench.MeasureRecovery(t.Context(), self(t), path, n, loops, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if r.StepsAgain != 0 || r.Sessions != n || r.ReadyMS <= 0 || r.AllMS < r.ReadyMS || r.FillS <= 0 {
		t.Errorf("%+v", r)
	}
	st := open(t, path)
	for _, row := range sessions(t, st, n, stint.Completed) {
		if tot := row.Session.Totals; tot.Loops != loops+1 || tot.Steps != 3*(loops+1) || tot.Attempts != loops+2 {
			t.Errorf("%+v", tot)
		}
		if lost, err := st.Entries(t.Context(), stint.Range{Session: row.Session.ID, Kinds: []stint.Kind{stint.LeaseLost}}); err != nil || len(lost) != 1 {
			t.Errorf("%d leases were lost, %v", len(lost), err)
		}
	}
}

func TestWaiters(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stint.db")
	w, err := bench.MeasureWaiters(t.Context(), self(t), bench.WaitersOptions{Dir: dir, Path: path, Sessions: 40, For: 50 * time.Millisecond, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if w.Sessions != 40 || w.FillS <= 0 || w.BytesPerSession < 1024 || w.OverMB != w.RSSMB-w.EmptyMB || w.AfterOverMB != w.AfterMB-w.EmptyMB {
		t.Errorf("%+v", w)
	}
	for _, row := range sessions(t, open(t, path), 40, stint.Waiting) {
		if s := row.Session; s.Wait.For != stint.ForMessage || s.Totals.Loops != 1 || row.Live {
			t.Errorf("%+v waits for %+v", s.Totals, s.Wait)
		}
	}
}

func TestCold(t *testing.T) {
	dir := t.TempDir()
	c, err := bench.MeasureCold(t.Context(), self(t), dir, "", 3)
	if err != nil {
		t.Fatal(err)
	}
	if c.Runs != 3 || c.StoreBytes != 0 || c.ReadyP50ms <= 0 || c.ReadyMaxMS < c.ReadyP50ms || c.FirstP50ms < c.ReadyP50ms || c.FirstMaxMS < c.FirstP50ms {
		t.Errorf("%+v", c)
	}
	path := filepath.Join(dir, "stint.db")
	if c, err = bench.MeasureCold(t.Context(), self(t), dir, path, 2); err != nil || c.StoreBytes == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	sessions(t, open(t, path), 2, stint.Completed)
}

// A child that fails says why, through the one who started it.
func TestChildFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := bench.MeasureCold(t.Context(), self(t), dir, filepath.Join(file, "stint.db"), 1)
	if stint.CodeOf(err) != stint.Unavailable || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a store that cannot be made: %v", err)
	}
	_, err = bench.MeasureCold(t.Context(), bench.Self{Path: filepath.Join(dir, "none")}, dir, "", 1)
	if stint.CodeOf(err) != stint.Unavailable {
		t.Errorf("a program that is not there: %v", err)
	}
	_, err = bench.MeasureRecovery(t.Context(), bench.Self{Path: self(t).Path, Args: []string{"-test.run=^$"}}, filepath.Join(dir, "stint.db"), 1, 1, nil)
	if stint.CodeOf(err) != stint.Unavailable {
		t.Errorf("a program that is no child: %v", err)
	}
}

func TestChildRefuses(t *testing.T) {
	for _, c := range []struct{ arg, in, want string }{
		{"x", "", "invalid character"},
		{`{"path":"` + filepath.ToSlash(filepath.Join(t.TempDir(), "stint.db")) + `"}`, `{"do":"fly"}`, `cannot "fly"`},
		{`{"path":"` + filepath.ToSlash(filepath.Join(t.TempDir(), "stint.db")) + `"}`, `{`, "unexpected EOF"},
	} {
		var out bytes.Buffer
		err := bench.Child(t.Context(), c.arg, strings.NewReader(c.in), &out)
		if stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.arg, c.in, err, c.want)
		}
	}
}

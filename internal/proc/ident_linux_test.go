package proc_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/proc"
)

func TestIdentTellsAStrangerApart(t *testing.T) {
	p := start(t, sh(t, families()["setsid"], token()))
	expect(t, p.Stdout(), "ready")
	id := p.Ident()
	if now, ok := proc.IdentOf(p.Pid()); !ok || now != id || !proc.Alive(id) || id.Start == 0 || id.Boot == "" {
		t.Fatalf("ident %+v, now %+v", id, now)
	}
	for _, stranger := range []proc.Ident{{Pid: id.Pid, Start: id.Start + 1, Boot: id.Boot}, {Pid: id.Pid, Start: id.Start, Boot: "other"}, {}} {
		if n, err := proc.KillTree(stranger); proc.Alive(stranger) || n != 0 || err != nil {
			t.Errorf("%+v: killed %d, %v", stranger, n, err)
		}
	}
	if !proc.Alive(id) {
		t.Fatal("killed as a stranger")
	}
	if n, err := proc.KillTree(id); n != 2 || err != nil {
		t.Errorf("killed %d, %v, want the shell and the sleep", n, err)
	}
	if x := wait(t, p); x != (proc.Exit{Code: -1, Signal: "SIGKILL"}) {
		t.Errorf("exit %+v", x)
	}
	if proc.Alive(id) {
		t.Error("alive after its end")
	}
}

func TestDescends(t *testing.T) {
	p := start(t, sh(t, `( setsid sh -c 'echo $$; sleep $T' & ); sleep $T`, token()))
	lines := proc.Lines(p.Stdout(), 100)
	l, err := lines.Next()
	if err != nil {
		t.Fatal(err)
	}
	orphan := 0
	for _, c := range string(l.Data) {
		orphan = orphan*10 + int(c-'0')
	}
	me, _ := proc.IdentOf(os.Getpid())
	guard, _ := proc.IdentOf(p.Guard().Pid)
	if guard != p.Guard() {
		t.Errorf("guard %+v, want %+v", guard, p.Guard())
	}
	for _, root := range []proc.Ident{me, p.Guard()} {
		if !proc.Descends(orphan, root) || !proc.Descends(p.Pid(), root) {
			t.Errorf("the tree does not descend from %+v", root)
		}
	}
	if !proc.Descends(p.Pid(), p.Ident()) || proc.Descends(os.Getpid(), p.Guard()) {
		t.Error("a process descends from itself, and its caller does not descend from it")
	}
	if proc.Descends(orphan, proc.Ident{Pid: p.Guard().Pid, Start: 1, Boot: me.Boot}) {
		t.Error("descends from a stranger")
	}
	if up := proc.Ancestors(p.Pid()); len(up) < 3 || up[0] != p.Ident() || up[1] != p.Guard() || !slices.Contains(up, me) {
		t.Errorf("ancestors %+v", up)
	}
	if m, ok := proc.MarkerOf(orphan); !ok || m != p.Marker() {
		t.Errorf("marker %q", m)
	}
	if m, ok := proc.MarkerOf(os.Getpid()); ok {
		t.Errorf("marker %q of a process of no tree", m)
	}
}

func TestSweepAndKillTreeRefuse(t *testing.T) {
	for _, m := range []string{"", "x", strings.Repeat("0", 31)} {
		if _, err := proc.Sweep(m); !errors.Is(err, proc.ErrSpec) {
			t.Errorf("sweep %q: %v", m, err)
		}
	}
	me, _ := proc.IdentOf(os.Getpid())
	if _, err := proc.KillTree(me); err == nil {
		t.Error("agreed to kill itself")
	}
}

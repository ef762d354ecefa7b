package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// child is what this binary does as another process; see childVar. "write" begins
// sessions and appends to each until it is killed, and says what is durable: a
// line with the session, the newest entry and its hash. "hold" begins one session,
// says so, and waits. "full" does the same after it met a full disk.
func child(what string) int {
	ctx := context.Background()
	path, holder := os.Getenv("STINT_SQLITE_PATH"), fmt.Sprint("child-", os.Getpid())
	err := func() error {
		s, err := sqlite.Open(ctx, sqlite.Options{Path: path})
		if err != nil {
			return err
		}
		if _, err := s.Hold(ctx, holder); err != nil {
			return err
		}
		if what != "write" {
			c, err := childSession(ctx, s, holder)
			if err == nil && what == "full" {
				err = fillUp(ctx, s, c)
			}
			if err != nil {
				return err
			}
			fmt.Println(c.s.ID, c.s.Head, c.s.HeadHash)
			_, err = io.Copy(io.Discard, os.Stdin)
			return err
		}
		var wg sync.WaitGroup
		errs := make(chan error, 1)
		for range 4 {
			wg.Go(func() {
				c, err := childSession(ctx, s, holder)
				for body := strings.Repeat("x", 1500); err == nil; {
					if err = c.write(s, said(body), said("y")); err == nil {
						fmt.Println(c.s.ID, c.s.Head, c.s.HeadHash)
					}
				}
				errs <- err
			})
		}
		return <-errs
	}()
	fmt.Println("error", err)
	return 1
}

func childSession(ctx context.Context, s *sqlite.Store, holder string) (*course, error) {
	id := newID()
	fold, e, err := journal.Begin(id, journal.Created{Family: id, Name: "child", Agent: stint.AgentRef{Name: "a", Runtime: "exec"}}, journal.Draft{At: time.Now()})
	if err != nil {
		return nil, err
	}
	l, err := s.Create(ctx, stint.Batch{Session: fold, Entries: []stint.Entry{e}}, stint.Claim{Holder: holder, TTL: time.Hour})
	if err != nil {
		return nil, err
	}
	c := &course{s: fold, lease: l}
	return c, c.write(s, journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "first"}, Pos: stint.Position{Loop: 1, Attempt: 1}})
}

// process is a child as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func spawn(t *testing.T, what, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+what, "STINT_SQLITE_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	_, err = cmd.StdinPipe()
	ok(t, err)
	ok(t, cmd.Start())
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// ack is what a child said to be durable.
type ack struct {
	id   stint.ID
	head stint.Seq
	hash string
}

func (p *process) next(t *testing.T) (a ack, more bool) {
	t.Helper()
	if !p.lines.Scan() {
		return a, false
	}
	var id string
	if _, err := fmt.Sscan(p.lines.Text(), &id, &a.head, &a.hash); err != nil {
		if strings.HasPrefix(p.lines.Text(), "error") {
			t.Errorf("a child says: %s", p.lines.Text())
		}
		return a, false // the last line of one that was killed may be cut
	}
	var err error
	a.id, err = stint.ParseID(id)
	ok(t, err)
	return a, true
}

// What a process acknowledged is there after it was killed, its sessions can be
// claimed at once, and another process that writes all the while is not harmed.
func TestKilled(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "parent")
	mine := begin(t, s, "parent")
	for range 2 {
		acked := map[stint.ID]ack{}
		victim, neighbour := spawn(t, "write", path), spawn(t, "write", path)
		for range 100 {
			for _, p := range []*process{victim, neighbour} {
				a, more := p.next(t)
				if !more {
					t.Fatal("a child ended by itself")
				}
				acked[a.id] = a
			}
			ok(t, mine.write(s, said("me too")))
		}
		victim.kill()
		neighbour.kill()
		for id, a := range acked {
			es, err := s.Entries(t.Context(), stint.Range{Session: id, Until: a.head, Last: true, Limit: 1})
			ok(t, err)
			if len(es) != 1 || es[0].Seq != a.head || es[0].Hash.String() != a.hash {
				t.Errorf("entry %d of session %s was acknowledged and is not there", a.head, id)
			}
		}
		ls, err := s.Claim(t.Context(), stint.Claim{Holder: "parent", TTL: time.Minute, Max: 100})
		ok(t, err)
		equal(t, "sessions that can be claimed at once", len(ls), len(acked))
		for _, l := range ls {
			equal(t, "how the lease before ended", l.Prior, stint.Died)
		}
		storetest.Check(t, s)
	}
}

// Two processes that write without a pause get a fair share each, and one that
// writes now and then does not wait long. What is long is told by how often the
// others had their turn meanwhile, since how fast they are depends on the machine.
func TestFair(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	hold(t, s, "parent")
	mine := begin(t, s, "parent")
	var counts [2]atomic.Int64
	var readers sync.WaitGroup
	children := []*process{spawn(t, "write", path), spawn(t, "write", path)}
	for i, p := range children {
		if !p.lines.Scan() { // from now on it writes
			t.Fatal("a child ended by itself")
		}
		readers.Go(func() {
			for p.lines.Scan() {
				counts[i].Add(1)
			}
		})
	}
	counted := func() (x, y int64) { return counts[0].Load(), counts[1].Load() }
	unfair := func() bool {
		x, y := counted()
		return min(x, y)*10 < max(x, y)
	}
	var passed int64
	// A second is enough, unless the machine did not let one of them run in it.
	for began := time.Now(); time.Since(began) < time.Second || unfair() && time.Since(began) < time.Minute; {
		x, y := counted()
		ok(t, mine.write(s, said("now and then")))
		v, w := counted()
		passed = max(passed, v+w-x-y)
	}
	x, y := counted()
	t.Logf("%d and %d appends beside each other; while a third waited for one of its own, they made at most %d", x, y, passed)
	if unfair() {
		t.Errorf("one process made %d appends and the other %d", x, y)
	}
	if passed > 2000 {
		t.Errorf("an append waited for %d others", passed)
	}
	for _, p := range children {
		p.kill()
	}
	readers.Wait()
}

// A commit of another process is told of soon.
func TestChangedByOther(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed := s.Changed(ctx)
	p := spawn(t, "hold", path)
	a, more := p.next(t)
	if !more {
		t.Fatal("the child ended")
	}
	if _, open := <-changed; !open {
		t.Fatal("nobody told of the other process")
	}
	row, err := s.Session(t.Context(), a.id)
	ok(t, err)
	equal(t, "live", row.Live, true)
	_, err = s.Claim(t.Context(), stint.Claim{Holder: "me", TTL: time.Minute, Session: a.id})
	refused(t, err, stint.Conflict, fmt.Sprint("process ", p.cmd.Process.Pid))
	p.kill()
	row, err = s.Session(t.Context(), a.id)
	ok(t, err)
	equal(t, "live after its death", row.Live, false)
}

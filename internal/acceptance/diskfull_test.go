//go:build linux

package acceptance_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leave fills the file system of dir up to so many bytes, and returns the file that
// takes the place.
func leave(t *testing.T, dir string, free int64) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for space(t, dir) > free {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	return ballast
}

// space is how many bytes are free on the file system of dir.
func space(t *testing.T, dir string) int64 {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bfree) * st.Bsize
}

// TestDiskFull fills the disk of the store under a session: steps stop, nobody is
// told anything that is not so, reading works, and once there is space it goes on by
// itself.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if !asRoot(t) {
		return
	}
	disk, _ := mount(t, image(t, filepath.Join(t.TempDir(), "disk"), "ext4", 64))
	agent := "bulk loops=24 size=700000"
	want := undisturbed(t, nil, agent)
	s := newSite(t, nil, agent, "chat").on(filepath.Join(disk, "stint.db"))
	s.went("run", "chat", "--json", "-p", "0;")
	chat := s.list()[0].ID
	ballast := leave(t, disk, 6<<20)
	p := s.start(s.command(bin.stint, "run", "bulk", "--json"))
	eventually(t, "the session has begun", patience, func() bool { return len(s.list()) == 2 })
	id := s.list()[0].ID
	head := s.stuck(id)
	if p.ended() {
		t.Fatalf("it ended on a full disk: %s", p.res)
	}
	for _, args := range [][]string{{"ps"}, {"ps", "-a", "--json"}, {"show", id}, {"logs", id}, {"verify", id}, {"show", chat}} {
		if r := s.run(args...); r.code != 0 || r.took > 5*time.Second {
			t.Errorf("on a full disk: %s", r)
		}
	}
	unread := s.show(chat).Unread
	letter := s.path("letter")
	if err := os.WriteFile(letter, []byte(rand.Text()+strings.Repeat("a long message; ", 400_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	full := s.run("send", chat, "-f", letter)
	if full.code != 11 || !strings.Contains(full.talk, "disk is full") {
		t.Errorf("a message that there is no space for: %s", full)
	}
	if got := s.show(chat).Unread; got != unread {
		t.Errorf("a message that was refused is there: %d, before %d", got, unread)
	}
	if got := s.show(id).Head; got != head {
		t.Errorf("on a full disk the journal went on from entry %d to %d", head, got)
	}
	a := newAcks()
	for range size(8, 80) { // others write what still fits, while this process tries again and again
		r := s.run("start", "chat", "--json")
		if r.code == 0 {
			a.told(r.out)
		} else if r.code != 11 || !strings.Contains(r.talk, "disk is full") {
			t.Errorf("a session that there may be no space for: %s", r)
		}
	}
	if long() { // for longer than a lease lasts, which cannot be renewed meanwhile
		select {
		case <-time.After(40 * time.Second):
		case <-p.done:
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if r := p.wait(2 * patience); r.code != 0 {
		t.Errorf("once there was space: %s", r)
	}
	a.told(p.res.out)
	s.sound(a)
	s.same(s.show(id), want)
}

// stuck waits until a session has not moved for a second, and returns its head.
func (s *site) stuck(id string) int64 {
	s.t.Helper()
	head, since := int64(-1), time.Now()
	eventually(s.t, "the session stands still", patience, func() bool {
		if now := s.show(id).Head; now != head {
			head, since = now, time.Now()
		}
		return time.Since(since) > time.Second
	})
	return head
}

//go:build linux

package acceptance_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// copied is a store that was copied while it was written.
type copied struct {
	db, wal, keys []byte
}

// copyOf reads the files of the store while whoever writes them stands still.
func (s *site) copyOf(writer *proc) (c copied) {
	s.t.Helper()
	s.stop(writer)
	defer writer.signal(syscall.SIGCONT)
	for path, to := range map[string]*[]byte{s.store(): &c.db, s.store() + "-wal": &c.wal, s.store() + ".keys": &c.keys} {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
		*to = b
	}
	c.wal = c.wal[:frames(c.wal)]
	return c
}

// frames is how much of a WAL has been written since it was begun: what follows is
// left from before, or space that was made beforehand. The salts of a frame that
// counts are those of the header, see "WAL File Format" in SQLite's documentation.
func frames(wal []byte) int {
	const header, frame = 32, 24 + 4096
	end := min(header, len(wal))
	for end+frame <= len(wal) && string(wal[end+8:end+16]) == string(wal[16:24]) {
		end += frame
	}
	return end
}

// place writes a copy, with so much of its main file and of its WAL, to a new site.
func (c copied) place(t *testing.T, db, wal int) *site {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := siteAt(t, dir, nil)
	if err := os.MkdirAll(filepath.Dir(s.store()), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{s.store(): c.db[:db], s.store() + "-wal": c.wal[:wal], s.store() + ".keys": c.keys} {
		if b == nil { // it was not there
			continue
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// chains is all journals of a store: by session, the hashes of its entries.
func (s *site) chains() map[string][]string {
	s.t.Helper()
	all := map[string][]string{}
	for i, row := range strings.Split(strings.TrimSpace(s.must("sql", "select session, hash from v_entries order by session, seq", "-o", "csv")), "\n") {
		if id, hash, ok := strings.Cut(strings.TrimSpace(row), ","); ok && i > 0 {
			all[id] = append(all[id], hash)
		}
	}
	return all
}

// invented says what a store has that the whole one does not have.
func invented(part, whole map[string][]string) (problems []string) {
	for id, es := range part {
		if len(es) > len(whole[id]) {
			problems = append(problems, fmt.Sprintf("session %s has %d entries, the whole store %d", id, len(es), len(whole[id])))
			continue
		}
		for i, hash := range es {
			if whole[id][i] != hash {
				problems = append(problems, fmt.Sprintf("entry %d of session %s is another", i+1, id))
			}
		}
	}
	return problems
}

// growingStore makes a store in which many sessions are under way and many have ended,
// all by one process, and nobody else looks at it, so that its WAL grows. It returns
// two copies: the WAL of the second goes on from that of the first.
func growingStore(t *testing.T) (before, after copied) {
	t.Helper()
	s := newSite(t, nil)
	bench := s.start(s.command(bin.stint, "bench", "--store", "sqlite:"+s.store(), "--concurrency", "2", "--sessions", "100000", "--loops", "3"))
	grown := func(by int) func() bool {
		return func() bool {
			b, err := os.ReadFile(s.store() + "-wal")
			return err == nil && frames(b) > len(before.wal)+by
		}
	}
	// Between two copies the WAL may have gone into the file and begun again.
	goesOn := func() bool {
		return len(before.wal) >= 1<<13 && len(after.wal) > len(before.wal) && bytes.HasPrefix(after.wal, before.wal) && bytes.Equal(after.db, before.db)
	}
	for try := 0; !goesOn() && try < 20; try++ {
		before = copied{}
		eventually(t, "the store is written", patience, grown(500_000))
		before = s.copyOf(bench)
		eventually(t, "more of it is written", patience, grown(100_000))
		after = s.copyOf(bench)
	}
	bench.kill()
	bench.wait(patience)
	if !goesOn() {
		t.Fatalf("the WAL of the second copy, %d bytes, does not go on from that of the first, %d bytes", len(after.wal), len(before.wal))
	}
	return before, after
}

// TestC04CutWAL copies a store while it is written and cuts the end of its WAL off, at
// every byte in a long run. All that was complete is kept, and the next write is sound.
func TestC04CutWAL(t *testing.T) {
	t.Parallel()
	before, after := growingStore(t)
	kept := before.place(t, len(before.db), len(before.wal)).chains()
	whole := after.place(t, len(after.db), len(after.wal)).chains()
	if p := invented(kept, whole); len(p) > 0 || len(whole) <= len(kept) {
		t.Fatalf("the second copy has %d sessions, the first %d: %v", len(whole), len(kept), p)
	}
	const tail = 24 + 4096 + 24 // a frame, and the header of the one before it
	if room := len(after.wal) - len(before.wal); room < tail {
		t.Fatalf("only %d bytes were written between the copies", room)
	}
	cuts := numbers(random(t), size(24, tail), tail)
	for i, n := range cuts {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			cutAt(t, after, n, kept, whole, i%8 == 0)
		})
	}
}

// cutAt checks a store whose WAL lost its last n bytes.
func cutAt(t *testing.T, c copied, n int, kept, whole map[string][]string, write bool) {
	s := c.place(t, len(c.db), len(c.wal)-n)
	if r := s.run("verify", "--all"); r.code != 0 {
		t.Fatalf("%s", r)
	}
	have := s.chains()
	for _, p := range invented(have, whole) {
		t.Error(p)
	}
	for _, p := range invented(kept, have) {
		t.Errorf("lost: %s", p)
	}
	if !write {
		return
	}
	s.must("run", "-q", "--", "true")
	all := s.sound(newAcks())
	if all[0].Status != "completed" || len(all) != len(have)+1 {
		t.Errorf("the newest session is %s, and there are %d, before %d\n%s", all[0].Status, len(all), len(have), s.must("ps", "-a"))
	}
}

// TestC04CutFile cuts the main file short. Stint says that it is damaged and what to
// do, and what that saves is part of what was there.
func TestC04CutFile(t *testing.T) {
	t.Parallel()
	before, _ := growingStore(t)
	whole := before.place(t, len(before.db), len(before.wal))
	whole.must("run", "-q", "--", "true") // and with the WAL copied back into the file
	chains := whole.chains()
	db, err := os.ReadFile(whole.store())
	if err != nil {
		t.Fatal(err)
	}
	c := copied{db: db, keys: before.keys}
	r, pages := random(t), len(db)/4096
	saved := 0
	for i := range size(8, 60) {
		at := 4096*(1+r.IntN(pages-1)) + []int{0, r.IntN(4096)}[i%2]
		if i == 0 {
			at = len(db) - 1
		}
		s := c.place(t, at, 0)
		if res := s.run("verify", "--all"); res.code != 10 || !strings.Contains(res.talk, "stint db salvage") && !strings.Contains(res.out, "NOT SOUND") {
			t.Errorf("cut at %d of %d: %s", at, len(db), res)
		}
		to := s.on(s.path("saved.db"))
		res := s.run("db", "salvage", s.store(), to.store())
		if res.code != 0 && res.code != 10 {
			t.Errorf("cut at %d of %d: %s", at, len(db), res)
		}
		if !exists(to.store()) {
			continue
		}
		if res := to.run("verify", "--all"); res.code != 0 {
			t.Errorf("saved of %d of %d bytes: %s", at, len(db), res)
		}
		have := to.chains()
		for _, p := range invented(have, chains) {
			t.Errorf("saved of %d of %d bytes: %s", at, len(db), p)
		}
		saved += len(have)
	}
	if saved == 0 {
		t.Error("salvage saved nothing at all")
	}
}

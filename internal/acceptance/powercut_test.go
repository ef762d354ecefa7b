//go:build linux

package acceptance_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cut is a disk as a power cut would leave it, and how much each writer had been told
// before, in bytes.
type cut struct {
	img  string
	told []int
}

// TestPowerCut takes the disk away at random instants: a session and a stream of
// `stint start` write to a file system in an image, the image is copied while they
// do, and each copy is mounted, which replays its journal, and read.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	if !asRoot(t) {
		return
	}
	lost, told := powerCuts(t, bin.stint, size(20, 200), true)
	for _, l := range lost {
		t.Error(l)
	}
	if told == 0 {
		t.Error("nothing had been acknowledged in any image")
	}
}

// TestPowerCutFindsLoss shows that the rig above can fail: a program that tells before
// the disk has it loses what it told.
func TestPowerCutFindsLoss(t *testing.T) {
	t.Parallel()
	if !asRoot(t) {
		return
	}
	n := size(6, 40)
	lost, told := powerCuts(t, careless(t), n, false)
	t.Logf("a store that does not sync the WAL lost %d of %d things in %d power cuts", len(lost), told, n)
	if len(lost) == 0 {
		t.Errorf("a store that does not sync what it tells lost nothing in %d power cuts: the rig sees nothing", n)
	}
}

// careless builds a stint that does not tell the disk to keep what was written.
func careless(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(bin.root, f), filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	changed := 0
	err := filepath.WalkDir(bin.root, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(bin.root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "dist" || rel == filepath.Join("internal", "acceptance")):
			return filepath.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Dir(rel) == filepath.Join("store", "sqlite") && strings.HasSuffix(rel, ".go") {
			// What SQLite itself would do under synchronous = NORMAL: the WAL is written
			// at each commit, and synced when it is copied back.
			sloppy := bytes.ReplaceAll(src, []byte(`return call[flagFunc](below(file).FxSync)(tls, under(file), flags)`), []byte(`return lib.SQLITE_OK`))
			if !bytes.Equal(sloppy, src) {
				changed++
			}
			src = sloppy
		}
		to := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, src, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if changed != 1 {
		t.Fatalf("the store no longer syncs the WAL where this test makes it careless: %d files changed", changed)
	}
	out := filepath.Join(dir, "careless")
	if err := build(dir, out, "./cmd/stint", ""); err != nil {
		t.Fatal(err)
	}
	return out
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// powerCuts has program write, cuts the power n times, and returns what was lost,
// and how much had been told in all. With starts, sessions are created all the while
// by processes of their own, each of which copies the WAL back as it ends.
func powerCuts(t *testing.T, program string, n int, starts bool) (lost []string, told int) {
	t.Helper()
	disk, _ := mount(t, image(t, filepath.Join(t.TempDir(), "disk"), "xfs", 32<<10)) // sparse
	const rounds = 2
	for round := range rounds {
		img := image(t, filepath.Join(disk, fmt.Sprintf("img%d", round)), "ext4", 8<<10) // sparse, and a slow machine writes for minutes
		dir, undo := mount(t, img)
		cuts, outs := written(t, program, dir, img, n/rounds, starts)
		undo()
		a, read := newAcks(), make([]int, len(outs))
		for _, c := range cuts {
			for i, out := range outs { // what was told before one cut was told before the next
				end := strings.LastIndexByte(out[:c.told[i]], '\n') + 1
				a.told(out[read[i]:end])
				read[i] = end
			}
			l, some := readBack(t, c, a)
			told += some
			lost = append(lost, l...)
			os.Remove(c.img)
		}
		os.Remove(img)
	}
	return lost, told
}

// written has program write to the file system in img and copies that n times. It
// returns all that the writers were told.
func written(t *testing.T, program, dir, img string, n int, starts bool) (cuts []cut, outs []string) {
	t.Helper()
	r := random(t)
	s := siteAt(t, dir, nil, "spin steps=3 class=idempotent", "bulk loops=100000 steps=2 size=4000")
	syscall.Sync() // stint.yaml is not what this is about
	first := s.start(s.command(program, "start", "bulk", "--json")).wait(patience)
	if first.code != 0 {
		t.Fatalf("%s", first)
	}
	writers := []*proc{s.start(s.command(program, "run", "bulk", "--json"))}
	if starts { // this agent syncs its ledger, and the file system other things with it
		writers = append(writers, s.start(s.command(program, "run", "spin", "--json")), s.start(s.command("sh", "-c", "while "+program+" start bulk --json; do :; done")))
	}
	defer func() {
		for _, p := range writers {
			p.kill()
			p.wait(patience)
			outs = append(outs, p.out.String())
		}
		outs = append(outs, first.out)
		s.quiet()
	}()
	eventually(t, "everybody writes", patience, func() bool {
		return !slices.ContainsFunc(writers, func(p *proc) bool { return strings.Count(p.out.String(), "\n") < 3 })
	})
	for i := range n {
		select {
		case <-time.After(time.Duration(5+r.IntN(150)) * time.Millisecond):
		case <-t.Context().Done():
			return cuts, nil
		}
		c := cut{img: fmt.Sprintf("%s.%d", img, i)}
		for _, p := range writers {
			if p.ended() {
				t.Fatalf("a writer has ended: %s", p.res)
			}
			c.told = append(c.told, p.out.Len()) // before the copy begins
		}
		c.told = append(c.told, len(first.out))
		snapshot(t, img, c.img)
		cuts = append(cuts, c)
	}
	return cuts, nil
}

// readBack mounts a copy and says what of a, told before it, is not there.
func readBack(t *testing.T, c cut, a *acks) (lost []string, told int) {
	t.Helper()
	dir, undo := mount(t, c.img)
	defer undo()
	s := &site{t: t, dir: dir}
	if r := s.run("verify", "--all"); r.code != 0 {
		return []string{r.String()}, len(a.sessions)
	}
	for _, es := range a.entries {
		told += len(es)
	}
	return a.missing(s.list(), s.entries), told + len(a.sessions)
}

// TestReflinks says early, and in plain words, if this machine cannot run the rig.
func TestReflinks(t *testing.T) {
	t.Parallel()
	if !asRoot(t) {
		return
	}
	disk, _ := mount(t, image(t, filepath.Join(t.TempDir(), "disk"), "xfs", 512))
	from := filepath.Join(disk, "a")
	if err := os.WriteFile(from, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("cp", "--reflink=always", from, from+"2").CombinedOutput(); err != nil {
		t.Errorf("XFS here cannot share blocks between files, which the power-cut rig needs: %v\n%s", err, b)
	}
}

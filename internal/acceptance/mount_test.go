//go:build linux

package acceptance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tool runs a program that sets up a file system.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil { // where an ordinary PATH does not look
		path = filepath.Join("/usr/sbin", name)
	}
	if b, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, b)
	}
}

// image makes a file of mib MiB with a file system in it.
func image(t *testing.T, path, kind string, mib int64) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(mib << 20); err != nil {
		t.Fatal(err)
	}
	quiet := map[string][]string{"ext4": {"-q", "-F"}, "xfs": {"-q", "-f", "-m", "reflink=1"}}[kind]
	tool(t, "mkfs."+kind, append(quiet, path)...)
	return path
}

// mount mounts an image on a new folder until undo is called or the test ends.
func mount(t *testing.T, img string) (dir string, undo func()) {
	t.Helper()
	dir = t.TempDir()
	tool(t, "mount", "-o", "loop", img, dir)
	mounted := true
	undo = func() {
		t.Helper()
		if !mounted {
			return
		}
		mounted = false
		if !soon(patience, func() bool { return exec.Command("umount", dir).Run() == nil }) {
			t.Errorf("%s cannot be unmounted", dir)
		}
	}
	t.Cleanup(undo)
	return dir, undo
}

// snapshot copies the image of a mounted file system at one instant: what the disk
// holds if the power fails now. The file system that img lies on shares the blocks.
func snapshot(t *testing.T, img, to string) {
	t.Helper()
	if b, err := exec.Command("cp", "--reflink=always", img, to).CombinedOutput(); err != nil {
		t.Fatalf("cp --reflink: %v\n%s", err, b)
	}
}

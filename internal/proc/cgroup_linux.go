package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cgroupMount is one mount of a cgroup v2 hierarchy: root is the part of the hierarchy that is seen at dir.
type cgroupMount struct{ root, dir string }

// cgroupMounts parses proc_pid_mountinfo(5). A machine that still uses version 1 may have version 2 beside it, often at
// /sys/fs/cgroup/unified.
func cgroupMounts(mountinfo string) []cgroupMount {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []cgroupMount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if kind, _, _ := strings.Cut(after, " "); !ok || len(f) < 5 || kind != "cgroup2" {
			continue
		}
		out = append(out, cgroupMount{root: unescape.Replace(f[3]), dir: unescape.Replace(f[4])})
	}
	return out
}

// cgroupParents lists the directories below which a cgroup may be made, best first: our own cgroup, then the top of the
// mount, for machines where the own one is not writable or not visible.
func cgroupParents(mounts []cgroupMount, self string) []string {
	own := ""
	for line := range strings.Lines(self) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = p
		}
	}
	var out []string
	for _, m := range mounts {
		rel, err := filepath.Rel(m.root, own)
		if err == nil && own != "" && rel != "." && rel != ".." && !strings.HasPrefix(rel, "../") {
			out = append(out, filepath.Join(m.dir, rel))
		}
	}
	for _, m := range mounts {
		out = append(out, m.dir)
	}
	return out
}

// makeCgroup makes a cgroup that can be killed as one and opens its directory.
func makeCgroup(name string) (string, *os.File, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil, err
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", nil, err
	}
	errs := []error{fmt.Errorf("%w: no cgroup v2 directory that can be written and has cgroup.kill (Linux 5.14)", ErrUnsupported)}
	for _, parent := range cgroupParents(cgroupMounts(string(mountinfo)), string(self)) {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		f, err := os.Open(dir)
		if err == nil {
			if _, err = os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil {
				return dir, f, nil
			}
			f.Close()
		}
		os.Remove(dir)
		errs = append(errs, err)
	}
	return "", nil, errors.Join(errs...)
}

// killCgroup kills every process in the cgroup and below it, those that are just being forked included.
func killCgroup(dir string) {
	if dir == "" {
		return
	}
	if f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// subgroups lists the directory and all below it, children before parents.
func subgroups(dir string) []string {
	var out []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	slices.Reverse(out)
	return out
}

// removeCgroup removes the cgroup, trying until the deadline: it is busy until its last process has left it.
func removeCgroup(dir string, deadline time.Time) {
	for {
		for _, d := range subgroups(dir) {
			os.Remove(d)
		}
		if _, err := os.Stat(dir); err != nil || time.Now().After(deadline) {
			return
		}
		<-time.After(2 * time.Millisecond)
	}
}

// cgroupMembers returns the pids in the cgroup and below it.
func cgroupMembers(dir string) map[int]bool {
	out := map[int]bool{}
	if dir == "" {
		return out
	}
	for _, d := range subgroups(dir) {
		b, _ := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		for _, w := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(w); err == nil {
				out[pid] = true
			}
		}
	}
	return out
}

// sweepCgroups kills and removes the cgroups of a tree, wherever its guard could make one, and returns how many processes
// were in them.
func sweepCgroups(marker string) int {
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	n := 0
	for _, m := range cgroupMounts(string(mountinfo)) {
		for _, dir := range subgroups(m.dir) {
			name := filepath.Base(dir)
			if strings.HasPrefix(name, "stint-") && strings.HasSuffix(name, "-"+marker) {
				n += len(cgroupMembers(dir))
				killCgroup(dir)
				removeCgroup(dir, time.Now().Add(time.Second))
			}
		}
	}
	return n
}

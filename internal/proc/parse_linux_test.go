package proc

import (
	"os"
	"slices"
	"testing"
)

func TestCgroupParents(t *testing.T) {
	const hybrid = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"38 31 0:35 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	const plain = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const container = `700 690 0:26 /docker/abc /sys/fs/cgroup\040x ro,relatime master:9 - cgroup2 cgroup rw` + "\n"
	for name, c := range map[string]struct {
		mounts, self string
		want         []string
	}{
		"hybrid at the top": {hybrid, "8:pids:/\n0::/\n", []string{"/sys/fs/cgroup/unified"}},
		"hybrid below":      {hybrid, "8:pids:/x\n0::/user/a b\n", []string{"/sys/fs/cgroup/unified/user/a b", "/sys/fs/cgroup/unified"}},
		"session": {plain, "0::/user.slice/user-1000.slice/session-2.scope\n",
			[]string{"/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope", "/sys/fs/cgroup"}},
		"host's path in a container": {container, "0::/docker/abc/sub\n", []string{"/sys/fs/cgroup x/sub", "/sys/fs/cgroup x"}},
		"out of sight":               {container, "0::/docker/other\n", []string{"/sys/fs/cgroup x"}},
		"version 1 only":             {"38 31 0:35 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n", "8:pids:/\n", nil},
		"rubbish":                    {"- - cgroup2\n\n1 2 cgroup2\n", "0:\n", nil},
	} {
		if got := cgroupParents(cgroupMounts(c.mounts), c.self); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestParseStat(t *testing.T) {
	const tail = " 40 30 20 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 4096 1 18446744073709551615\n"
	for in, want := range map[string]entry{
		"7 (a) S" + tail:          {pid: 7, ppid: 40, start: 12345},
		"7 (a) Z 1 (b)) R" + tail: {pid: 7, ppid: 40, start: 12345},
		"7 (a) Z" + tail:          {pid: 7, ppid: 40, start: 12345, zombie: true},
		"7 (a) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 12345 0":    {pid: 7, ppid: 2, start: 12345, kernel: true},
		"7 (a) Z 40 30 20 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 12345 0": {pid: 7, ppid: 40, start: 12345},
	} {
		if got, ok := parseStat(7, []byte(in)); !ok || got != want {
			t.Errorf("%q: %+v, %v", in, got, ok)
		}
	}
	if e, ok := lookup(os.Getpid()); !ok || e.ppid != os.Getppid() || e.zombie {
		t.Errorf("own row %+v", e)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) S 40 30 20 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 4096"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, ok := parseStat(7, b); !ok && e.zombie && e.pid != 7 {
			t.Error("an unreadable row has content")
		}
	})
}

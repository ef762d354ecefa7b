package sqlite

import (
	"bufio"
	"os"
	"strings"
	"syscall"
)

// networkFS returns the kind of file system that dir is on, if it is one of those
// whose locks or shared memory do not work between machines, "" otherwise. The
// numbers are those of statfs(2).
func networkFS(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	switch uint32(st.Type) {
	case 0x6969:
		return "nfs"
	case 0x517b:
		return "smb"
	case 0xff534d42:
		return "cifs"
	case 0xfe534d42:
		return "smb2"
	case 0x01021997:
		return "9p"
	case 0x5346414f, 0x6b414653:
		return "afs"
	case 0x00c36400:
		return "ceph"
	case 0x73757245:
		return "coda"
	case 0x564c:
		return "ncp"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	case 0x786f4256:
		return "vboxsf"
	case 0x65735546: // FUSE: virtiofs and sshfs, but local ones too
		return fuseFS(dir)
	}
	return ""
}

// fuseFS tells file systems in user space apart by their type in the table of
// mounts. Those that only show a local disk are "".
func fuseFS(dir string) string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "fuse"
	}
	defer f.Close()
	kind, longest := "fuse", -1
	for sc := bufio.NewScanner(f); sc.Scan(); {
		// 36 35 98:0 /root /mount/point rw,noatime shared:1 - type source options
		before, after, ok := strings.Cut(sc.Text(), " - ")
		fields, kinds := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kinds) == 0 {
			continue
		}
		at := strings.TrimSuffix(fields[4], "/")
		if len(at) > longest && (dir == at || strings.HasPrefix(dir, at+"/")) {
			kind, longest = kinds[0], len(at)
		}
	}
	switch kind {
	case "fuseblk", "fuse.fuse-overlayfs":
		return ""
	}
	return kind
}

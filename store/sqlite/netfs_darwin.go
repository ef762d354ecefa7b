package sqlite

import "syscall"

// networkFS returns the kind of file system that dir is on, if it is one of those
// whose locks or shared memory do not work between machines, "" otherwise.
func networkFS(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch kind := string(name); kind {
	case "nfs", "smbfs", "afpfs", "webdav", "ftp", "virtiofs", "macfuse", "osxfuse":
		return kind
	}
	return ""
}

//go:build linux

package acceptance_test

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
)

// The operations of the FUSE protocol (linux/fuse.h) that an empty folder needs.
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseStatfs  = 17
	fuseInit    = 26
	fuseOpendir = 27
	fuseReaddir = 28
	fuseRelease = 29
	fuseAccess  = 34
)

// fuse mounts a file system that has one empty folder and answers for it.
func fuse(t *testing.T) string {
	t.Helper()
	// Not an os.File: before it is mounted, the device cannot be polled.
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := syscall.Mount("remote:/share", dir, "fuse.remote", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); serveFuse(fd) }()
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-ended
		_ = syscall.Close(fd)
	})
	return dir
}

// serveFuse answers for a file system of one empty folder until it is unmounted.
func serveFuse(fd int) {
	le := binary.LittleEndian
	for buf := make([]byte, 1<<20); ; {
		n, err := syscall.Read(fd, buf)
		if err == syscall.EINTR || err == syscall.EAGAIN || err == syscall.ENOENT { // that request is gone
			continue
		}
		if err != nil || n < 40 {
			return
		}
		op, unique := le.Uint32(buf[4:]), le.Uint64(buf[8:])
		var body []byte
		errno := syscall.Errno(0)
		switch op {
		case fuseInit:
			body = make([]byte, 64)
			le.PutUint32(body, 7)
			le.PutUint32(body[4:], 31)
			le.PutUint32(body[20:], 128<<10) // the longest write
		case fuseGetattr:
			body = make([]byte, 16+88)
			le.PutUint64(body[16:], 1) // the root's number
			le.PutUint32(body[16+60:], syscall.S_IFDIR|0o777)
			le.PutUint32(body[16+64:], 2)
		case fuseStatfs:
			body = make([]byte, 80)
			le.PutUint32(body[40:], 4096)
			le.PutUint32(body[44:], 255)
		case fuseOpendir:
			body = make([]byte, 16)
		case fuseReaddir, fuseRelease, fuseAccess:
		case fuseForget:
			continue // never answered
		case fuseLookup:
			errno = syscall.ENOENT
		default:
			errno = syscall.ENOSYS
		}
		out := make([]byte, 16, 16+len(body))
		le.PutUint32(out, uint32(16+len(body)))
		le.PutUint32(out[4:], uint32(-int32(errno)))
		le.PutUint64(out[8:], unique)
		_, _ = syscall.Write(fd, append(out, body...)) // it fails if nobody waits for it any more
	}
}

package proc

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Peer returns the process at the other end of a connection from this machine: the one that connected a Unix socket, or one
// that has the other end of a loopback connection now. It returns false for a connection from elsewhere, and for a process
// that has gone or belongs to another user. A TCP connection costs a look at all processes.
func Peer(c net.Conn) (pid int, ok bool) {
	switch c := c.(type) {
	case *net.UnixConn:
		return unixPeer(c)
	case *net.TCPConn:
		return tcpPeer(c)
	}
	return 0, false
}

func unixPeer(c *net.UnixConn) (pid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	if err := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || cred == nil {
		return 0, false
	}
	return int(cred.Pid), cred.Pid > 0
}

func tcpPeer(c *net.TCPConn) (pid int, ok bool) {
	here, err1 := netip.ParseAddrPort(c.LocalAddr().String())
	there, err2 := netip.ParseAddrPort(c.RemoteAddr().String())
	if err1 != nil || err2 != nil || !there.Addr().Unmap().IsLoopback() {
		return 0, false
	}
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 9 && isAddr(f[1], there) && isAddr(f[2], here) {
				return socketHolder(f[9])
			}
		}
	}
	return 0, false
}

// isAddr reports whether the kernel's text of an address and port is a.
func isAddr(text string, a netip.AddrPort) bool {
	host, port, ok := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if !ok || err != nil || len(b)%4 != 0 || port != fmt.Sprintf("%04X", a.Port()) {
		return false
	}
	for i := 0; i < len(b); i += 4 { // words in the order of this machine
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return ok && addr.Unmap() == a.Addr().Unmap()
}

// socketHolder returns a process that has the socket with that inode open.
func socketHolder(inode string) (pid int, ok bool) {
	if inode == "0" { // nobody has it any more
		return 0, false
	}
	want := "socket:[" + inode + "]"
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // another user's, or it has gone
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == want {
				return pid, true
			}
		}
	}
	return 0, false
}

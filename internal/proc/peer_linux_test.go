package proc_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stint-dev/stint/internal/proc"
)

// The other end is found, whoever it is: this process, and a child of it.
func TestPeer(t *testing.T) {
	for _, at := range [][2]string{{"unix", filepath.Join(t.TempDir(), "s")}, {"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}, {"tcp", "localhost:0"}} {
		t.Run(at[0], func(t *testing.T) {
			ln, err := net.Listen(at[0], at[1])
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			out, err := net.Dial(at[0], ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			in, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if pid, ok := proc.Peer(in); !ok || pid != os.Getpid() {
				t.Errorf("got %d, %v, want %d", pid, ok, os.Getpid())
			}
		})
	}
	t.Run("a child", func(t *testing.T) {
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		cmd := exec.Command("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port+"; read -r line <&3")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if pid, ok := proc.Peer(in); !ok || pid != cmd.Process.Pid {
			t.Errorf("got %d, %v, want %d", pid, ok, cmd.Process.Pid)
		}
		_, _ = in.Write([]byte("over\n"))
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if pid, ok := proc.Peer(in); ok {
			t.Errorf("one that has gone is %d", pid)
		}
		_ = in.Close()
		if _, ok := proc.Peer(in); ok {
			t.Error("a closed connection has a peer")
		}
	})
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, ok := proc.Peer(a); ok {
		t.Error("a pipe has a peer")
	}
}

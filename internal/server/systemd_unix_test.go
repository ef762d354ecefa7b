//go:build unix

package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/server"
)

// manager is a service manager that listens.
func manager(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return c
}

// told is the next thing that a service manager was told.
func told(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestSystemd(t *testing.T) {
	c := manager(t)
	s := server.Systemd{Log: quiet()}
	s.Ready()
	s.Status("3 sessions")
	s.Stopping()
	for _, want := range []string{"READY=1", "STATUS=3 sessions", "STOPPING=1"} {
		if got := told(t, c); got != want {
			t.Errorf("it was told %q, want %q", got, want)
		}
	}
	var log bytes.Buffer
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	server.Systemd{Log: slog.New(slog.NewTextHandler(&log, nil))}.Ready()
	if !strings.Contains(log.String(), "READY=1") {
		t.Errorf("nobody was told, and the log says %q", log.String())
	}
	log.Reset()
	t.Setenv("NOTIFY_SOCKET", "")
	server.Systemd{Log: slog.New(slog.NewTextHandler(&log, nil))}.Ready()
	if log.Len() > 0 {
		t.Errorf("without a service manager the log says %q", log.String())
	}
}

// The watchdog is fed as long as the server works, and not while it does not.
func TestWatchdog(t *testing.T) {
	c := manager(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	asked, answers, over := make(chan struct{}), make(chan error), make(chan struct{})
	go func() {
		server.Systemd{Log: quiet()}.Watch(ctx, func(context.Context) error { asked <- struct{}{}; return <-answers })
		close(over)
	}()
	answer := func(err error) { <-asked; answers <- err }
	answer(nil)
	if got := told(t, c); got != "WATCHDOG=1" {
		t.Errorf("it was told %q", got)
	}
	answer(errors.New("the disk is full"))
	answer(errors.New("the disk is full"))
	<-asked
	server.Systemd{Log: quiet()}.Status("behind all that came of these answers")
	if got := told(t, c); !strings.HasPrefix(got, "STATUS=") {
		t.Errorf("a server that does not work says %q", got)
	}
	answers <- nil
	if got := told(t, c); got != "WATCHDOG=1" {
		t.Errorf("it was told %q once it worked again", got)
	}
	<-asked
	cancel()
	answers <- nil
	<-over
}

// Without a watchdog, or with that of another process, nothing is asked.
func TestNoWatchdog(t *testing.T) {
	manager(t)
	never := func(context.Context) error { t.Error("it was asked whether it works"); return nil }
	server.Systemd{Log: quiet()}.Watch(t.Context(), never)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()+1))
	server.Systemd{Log: quiet()}.Watch(t.Context(), never)
}

// That a variable is set does not make standard error journald's.
func TestToJournal(t *testing.T) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(os.Stderr.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]bool{
		"": false, fmt.Sprintf("%d:%d", st.Dev, st.Ino): true, fmt.Sprintf("%d:%d", st.Dev, st.Ino+1): false, "nonsense": false,
	} {
		t.Setenv("JOURNAL_STREAM", stream)
		if got := server.ToJournal(); got != want {
			t.Errorf("JOURNAL_STREAM=%q: %v, want %v", stream, got, want)
		}
	}
}

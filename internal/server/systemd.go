package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Systemd tells the service manager how the server is, by sd_notify(3). Where there is
// none, nothing is told.
type Systemd struct {
	Log *slog.Logger
}

// Ready says that it serves.
func (s Systemd) Ready() { s.tell(daemon.SdNotifyReady) }

// Stopping says that it ends.
func (s Systemd) Stopping() { s.tell(daemon.SdNotifyStopping) }

// Status says in a line what it does.
func (s Systemd) Status(line string) { s.tell("STATUS=" + line) }

func (s Systemd) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.Log.Warn("the service manager was not told", "state", state, "error", err)
	}
}

// Watch shows a sign of life twice in the time that WatchdogSec allows, as long as alive
// finds that the server works, until ctx ends. Without a watchdog it returns at once.
func (s Systemd) Watch(ctx context.Context, alive func(context.Context) error) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within == 0 {
		return
	}
	tick := time.NewTicker(within / 2)
	defer tick.Stop()
	for {
		if err := alive(ctx); err == nil {
			s.tell(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.Log.Error("the server does not work", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

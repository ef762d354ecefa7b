package exec

import (
	"context"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/protocol"
)

// partly ends a loop that is parked: waiting are the steps that the agent waits
// for an answer to. It may take leave; then its process is ended. What it says
// meanwhile, right or wrong, changes nothing.
func (d *driver) partly(ctx context.Context, waiting []*protocol.Call, parked error) error {
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	if len(waiting) == 0 {
		select { // it learns of it when it asks for its next step
		case m := <-d.requests:
			waiting = m.Calls // none: it ended the loop
		case <-d.peer.silent:
		case <-ctx.Done():
		case <-timer.C:
			return parked // it works on something that will be done again; the caller stops it
		}
	}
	d.sendParks(ctx, waiting, parkReason(parked), timer.C)
	d.left = true
	close(d.over)
	d.peer.retire(exitTime)
	return parked
}

// sendParks tells the agent of each step that it must not go on, and closes its
// input behind that.
func (d *driver) sendParks(ctx context.Context, calls []*protocol.Call, reason string, late <-chan time.Time) {
	for i, c := range calls {
		d.settled(c)
		line, err := protocol.Park(c.ID, reason)
		if err != nil {
			return
		}
		o := newOutgoing(line)
		o.last = i == len(calls)-1
		select {
		case d.peer.queue <- o:
		case <-d.peer.silent:
			return
		case <-ctx.Done():
			return
		case <-late:
			return
		}
		if !o.last {
			continue
		}
		select {
		case err := <-o.written:
			if err != nil {
				return // it does not want to know
			}
		case <-d.peer.silent:
		case <-ctx.Done():
		case <-late:
		}
	}
}

func parkReason(err error) string {
	if reason := strings.TrimSuffix(strings.TrimSuffix(err.Error(), stint.ErrParked.Error()), ": "); reason != "" {
		return child.OneLine(reason)
	}
	return "the session stops here"
}

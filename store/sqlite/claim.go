package sqlite

import (
	"fmt"
	"math"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// candidate is a session that may be claimed.
type candidate struct {
	sid, agent, epoch int64
	prior             stint.Prior
}

// lease writes a lease of the session that sid is the number of.
func (w *writer) lease(sid int64, id stint.ID, c *stint.Claim, epoch, now int64, prior stint.Prior) (stint.Lease, error) {
	l := stint.Lease{Session: id, Holder: c.Holder, Epoch: epoch, Claimed: moment(now), Expires: moment(now + c.TTL.Microseconds()), Prior: prior}
	return l, exec(w.c, `INSERT OR REPLACE INTO leases(sid, holder, epoch, expires, claimed, prior, now, now_at)
		VALUES (?, ?, ?, ?, ?, ?, '', ?)`, sid, l.Holder, epoch, micros(l.Expires), now, string(prior), micros(time.Time{}))
}

// claim takes sessions that are ready and that nobody holds.
func (w *writer) claim(o *op) error {
	c, now := &o.claim, micros(clock())
	if !c.Session.IsZero() {
		return w.claimOne(o, now)
	}
	found, err := w.candidates(c, now)
	if err != nil {
		return err
	}
	for _, f := range found {
		if err := w.take(o, f, now); err != nil {
			return err
		}
	}
	return nil
}

// take gives a session to the claimer.
func (w *writer) take(o *op, f candidate, now int64) error {
	var id stint.ID
	var bad error
	found, err := one(w.c, "SELECT id FROM sessions WHERE sid = ?", func(st *sqlite.Stmt) {
		id, bad = stint.ParseID(st.ColumnText(0))
	}, f.sid)
	switch {
	case err != nil:
		return err
	case !found || bad != nil:
		return refuse(stint.Corrupt, "claim", stint.ID{}, salvageHint, "the row of session number %d is missing or has no id", f.sid)
	}
	if err := exec(w.c, "UPDATE heads SET epoch = ?1, held = ?1 WHERE sid = ?2", f.epoch+1, f.sid); err != nil {
		return err
	}
	l, err := w.lease(f.sid, id, &o.claim, f.epoch+1, now, f.prior)
	o.leases = append(o.leases, l)
	return err
}

// candidates returns up to c.Max sessions to claim: first those whose holder died
// or let the lease expire, then those that are ready, oldest first.
func (w *writer) candidates(c *stint.Claim, now int64) ([]candidate, error) {
	pick, err := w.newPick(c, now)
	if err != nil {
		return nil, err
	}
	// Only those of the dead are visited, not all that live.
	for _, holder := range pick.dead {
		if err := pick.add(stint.Died, `SELECT h.sid, h.agent, h.runtime, h.epoch FROM leases l CROSS JOIN heads h ON h.sid = l.sid
			WHERE l.holder = ? AND h.ready <= ?`, holder, now); err != nil {
			return nil, err
		}
	}
	for _, holder := range pick.alive {
		if err := pick.add(stint.Expired, `SELECT h.sid, h.agent, h.runtime, h.epoch FROM leases l INDEXED BY leases_expires CROSS JOIN heads h ON h.sid = l.sid
			WHERE l.expires <= ?2 AND l.holder = ?1 AND h.ready <= ?2`, holder, now); err != nil {
			return nil, err
		}
	}
	err = pick.add(stint.Released, `SELECT sid, agent, runtime, epoch FROM heads
		WHERE ready <= ? AND ready IS NOT NULL AND held = 0 ORDER BY ready, sid`, now)
	return pick.found, err
}

// pick collects candidates.
type pick struct {
	w           *writer
	c           *stint.Claim
	runtimes    []int64
	room        map[int64]int // by agent, and under everyone for all: how many more may be claimed
	dead, alive []string      // holders of leases
	found       []candidate
}

// everyone stands for all agents together where agents are counted.
const everyone = 0

// free is how many sessions of the agent may be claimed.
func (p *pick) free(agent int64) int {
	free := math.MaxInt
	for _, key := range [...]int64{everyone, agent} {
		if n, capped := p.room[key]; capped {
			free = min(free, n)
		}
	}
	return free
}

// use takes up the room of n sessions of the agent.
func (p *pick) use(agent int64, n int) {
	for _, key := range [...]int64{everyone, agent} {
		if left, capped := p.room[key]; capped {
			p.room[key] = left - n
		}
	}
}

func (w *writer) newPick(c *stint.Claim, now int64) (*pick, error) {
	p := &pick{w: w, c: c}
	for _, r := range c.Runtimes {
		if id, ok, err := w.names.lookup(w.c, r); err != nil {
			return nil, err
		} else if ok {
			p.runtimes = append(p.runtimes, id)
		}
	}
	holders, err := holders(w.c)
	if err != nil {
		return nil, err
	}
	for _, h := range holders {
		if w.runners.alive(h) {
			p.alive = append(p.alive, h)
		} else {
			p.dead = append(p.dead, h)
		}
	}
	if len(c.Caps) == 0 {
		return p, nil
	}
	p.room = make(map[int64]int, len(c.Caps))
	for agent, n := range c.Caps {
		if agent == "" {
			p.room[everyone] = n
			continue
		}
		id, ok, err := w.names.lookup(w.c, agent)
		if err != nil {
			return nil, err
		}
		if ok {
			p.room[id] = n
		}
	}
	return p, each(w.c, `SELECT h.agent, l.holder, count(*) FROM leases l JOIN heads h ON h.sid = l.sid
		WHERE l.expires > ? GROUP BY 1, 2`, func(st *sqlite.Stmt) error {
		if slices.Contains(p.alive, st.ColumnText(1)) {
			p.use(st.ColumnInt64(0), st.ColumnInt(2))
		}
		return nil
	}, now)
}

// holders returns the holders of leases. It jumps from one to the next, so that
// it takes as long as there are holders, not leases.
func holders(c *sqlite.Conn) ([]string, error) {
	var all []string
	for last := any(nil); ; {
		var next string
		found, err := one(c, "SELECT holder FROM leases WHERE ?1 IS NULL OR holder > ?1 ORDER BY holder LIMIT 1", func(st *sqlite.Stmt) { next = st.ColumnText(0) }, last)
		if err != nil || !found {
			return all, err
		}
		all, last = append(all, next), next
	}
}

// add collects from the rows of q, until there are enough.
func (p *pick) add(prior stint.Prior, q string, args ...any) error {
	if len(p.found) >= max(p.c.Max, 1) {
		return nil
	}
	st, err := prepare(p.w.c, q, args)
	if err != nil {
		return err
	}
	for len(p.found) < max(p.c.Max, 1) {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		f := candidate{sid: st.ColumnInt64(0), agent: st.ColumnInt64(1), epoch: st.ColumnInt64(3), prior: prior}
		if p.c.Runtimes != nil && !slices.Contains(p.runtimes, st.ColumnInt64(2)) {
			continue
		}
		if p.free(f.agent) <= 0 {
			continue
		}
		p.use(f.agent, 1)
		p.found = append(p.found, f)
	}
	return st.Reset()
}

// claimOne takes one session, or says why it cannot be had.
func (w *writer) claimOne(o *op, now int64) error {
	c, id := &o.claim, o.claim.Session
	row, err := w.rows.session(w.c, id)
	if err != nil {
		return err
	}
	var f candidate
	var runtime, ready int64
	var never bool
	if _, err := one(w.c, "SELECT sid, agent, epoch, runtime, ready, ready IS NULL FROM heads WHERE sid = "+sqlSid, func(st *sqlite.Stmt) {
		f = candidate{sid: st.ColumnInt64(0), agent: st.ColumnInt64(1), epoch: st.ColumnInt64(2), prior: stint.Released}
		runtime, ready, never = st.ColumnInt64(3), st.ColumnInt64(4), st.ColumnBool(5)
	}, id.String()); err != nil {
		return err
	}
	p, err := w.newPick(c, now)
	if err != nil {
		return err
	}
	var why string
	switch s := &row.Session; {
	case row.Live:
		why = "it is held by " + w.runners.describe(row.Lease.Holder)
	case never && s.Wait != nil:
		why = fmt.Sprintf("it waits for %s: %s", s.Wait.For, s.Wait.What)
	case never, ready > now && s.Status.Ended():
		why = fmt.Sprintf("it has ended: %s", s.Status)
	case ready > now && s.Wait != nil:
		why = fmt.Sprintf("it waits for %s until %s: %s", s.Wait.For, moment(ready).Format(time.RFC3339), s.Wait.What)
	case c.Runtimes != nil && !slices.Contains(p.runtimes, runtime):
		why = fmt.Sprintf("it needs a runner that can drive %q", s.Agent.Runtime)
	case p.free(f.agent) <= 0:
		return refuse(stint.Limit, "claim", id, "try again when one of them has ended or waits", "as many sessions run as may, of agent %q or of all", s.Agent.Name)
	default:
		if !row.Lease.Session.IsZero() {
			f.prior = stint.Expired
			if !w.runners.alive(row.Lease.Holder) {
				f.prior = stint.Died
			}
		}
		return w.take(o, f, now)
	}
	return refuse(stint.Conflict, "claim", id, "`stint show "+id.String()+"` tells what would move it", "%s", why)
}

// renew extends leases, and finds those that are lost.
func (w *writer) renew(o *op) error {
	now := micros(clock())
	for i := range o.held {
		l := &o.held[i]
		h, err := w.lookup(l.Session)
		if err != nil {
			return err
		}
		if h != nil && !w.runners.lost(l.Holder) {
			if err := exec(w.c, `UPDATE leases SET expires = ?, now = ?, now_at = ? WHERE sid = ? AND epoch = ?`,
				now+o.ttl.Microseconds(), l.Now, micros(l.NowAt), h.sid, l.Epoch); err != nil {
				return err
			}
			if w.c.Changes() > 0 {
				continue
			}
		}
		o.lost = append(o.lost, l.Session)
	}
	return nil
}

package cases_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// streamed is one event of a stream.
type streamed struct{ name, id, data string }

// follower follows a stream, and comes back with the id of the newest event that it has.
type follower struct {
	path string
	last string
	got  []wrote // entries
}

// ended reports whether the last entry of a session has come.
func (f *follower) ended() bool { return len(f.got) > 0 && f.got[len(f.got)-1].Kind == "session.ended" }

// errEnough ends following.
var errEnough = errors.New("enough")

// once follows over one connection, until it ends, so many bytes have come, or fn is done.
// An id counts once its event is whole.
func (f *follower) once(ctx context.Context, v *server, most int64, fn func(e streamed) error) error {
	ctx, drop := context.WithTimeout(ctx, patience)
	defer drop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+f.path, http.NoBody)
	if err != nil {
		return err
	}
	if f.last != "" {
		req.Header.Set("Last-Event-ID", f.last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s %s", res.Status, b)
	}
	r := bufio.NewReader(io.LimitReader(res.Body, most))
	for e := (streamed{}); ; {
		line, err := r.ReadString('\n')
		if err != nil { // the connection is lost, as it is meant to be
			return ctx.Err()
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		}
		if line != "\n" {
			continue
		}
		if e.id != "" {
			f.last = e.id
		}
		if e.data != "" { // what has none is no event
			if err := fn(e); err != nil {
				return err
			}
		}
		e = streamed{}
	}
}

// disconnects is how often TestH03 loses its connection at a random byte.
func disconnects() int {
	if long() {
		return 1000
	}
	return 100
}

// TestH03Reconnect: who loses his connection, every fifty events, at random bytes, and
// when the server is killed, and comes back with the id that he has, gets every entry once
// and in order while they are written. An id of long ago is answered with all that came
// since, and one that is none with an event that says so, not with silence (anomalyco/opencode#25657,
// athrvk/vayu#21, wildware-uk/agent-dashboard#7, prassanna-ravishankar/repowire#161).
func TestH03Reconnect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("stint.yaml", "agents:\n"+inPython(t, "count", "counts.py", fmt.Sprint(2*disconnects()+400)))
	v := s.serves("--no-run") // the session is run by a process of its own, which no kill of the server ends
	const id = "counting"
	agent := s.start("run", "count", "--name", id, "-q")
	await(t, "session", func() bool {
		return agent.ended() || v.asks(t.Context(), http.MethodGet, "/v1/sessions/"+id, http.NoBody, nil).status == http.StatusOK
	})
	f := &follower{path: "/v1/sessions/" + id + "/events"}
	take := func(e streamed) error {
		switch e.name {
		case "entry":
			f.got = append(f.got, unmarshal[wrote](t, e.data))
			if f.ended() {
				return errEnough
			}
		case "resync", "bye":
			return fmt.Errorf("%s %s", e.name, e.data)
		}
		return nil
	}
	seed := rand.New(rand.NewPCG(1, 2))
	again := func(most int64, fn func(e streamed) error) {
		t.Helper()
		if err := f.once(t.Context(), v, most, fn); err != nil && !errors.Is(err, errEnough) {
			t.Fatalf("behind %q, with %d entries: %v", f.last, len(f.got), err)
		}
	}
	for i := range disconnects() {
		again(seed.Int64N(2500), take)
		if i == disconnects()/2 {
			v.run.kill()
			v = s.serves("--no-run")
		}
	}
	if f.ended() {
		t.Fatalf("all came before the connection was lost %d times", disconnects())
	}
	for !f.ended() {
		n := 0
		again(1<<40, func(e streamed) error {
			if err := take(e); err != nil {
				return err
			}
			if n++; n == 50 {
				return errEnough
			}
			return nil
		})
	}
	agent.ends(0)
	want := s.journal(id)
	if same := slices.EqualFunc(f.got, want, func(a, b wrote) bool { return a.Seq == b.Seq && a.Hash == b.Hash }); !same || len(want) < 600 {
		t.Errorf("%d entries came that are not the %d there are", len(f.got), len(want))
	}
	f.ids(t, v, want)
}

// ids comes back to a session that has ended with ids of long ago, and with some that are
// none.
func (f *follower) ids(t *testing.T, v *server, want []wrote) {
	t.Helper()
	for _, at := range []int{0, 1, 250, len(want) - 1} {
		f.last = fmt.Sprintf("%d-%.16s", want[at].Seq, want[at].Hash)
		next := at + 1
		err := f.once(t.Context(), v, 1<<40, func(e streamed) error {
			if e.name == "ready" {
				if next == len(want) {
					return errEnough
				}
				return nil
			}
			if got := unmarshal[wrote](t, e.data); e.name != "entry" || got.Seq != want[next].Seq {
				return fmt.Errorf("behind %s comes %+v", f.last, e)
			}
			if next++; next == len(want) {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("from the entry no. %d: %v", at, err)
		}
	}
	for _, last := range []string{"7-0000000000000000", "999999-0123456789abcdef", "nonsense", "-1"} { // of another store, or of none
		f.last = last
		if err := f.once(t.Context(), v, 1<<40, func(e streamed) error { return errors.New(e.name) }); err == nil || err.Error() != "resync" {
			t.Errorf("with the id %s: %v", last, err)
		}
	}
	for _, after := range []string{"nonsense", "-1", "7-xyz", "18446744073709551616-0000000000000000"} {
		if a := v.asks(t.Context(), http.MethodGet, f.path+"?after="+after, http.NoBody, nil); a.status != http.StatusBadRequest {
			t.Errorf("after %s: %d %v %s", after, a.status, a.err, a.text)
		}
	}
}

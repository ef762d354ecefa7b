package stream_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/store/sqlite"
)

// Entries come from the beginning on, as stint logs prints them, and those that are
// written then.
func TestSession(t *testing.T) {
	s := memory(t)
	c := begin(t, s, nil)
	ok(t, c.write(said("a\u2028\x1bb"), step(c)))
	_, web := serve(t, stream.Options{Store: s})
	f := follow(t, web.Client(), web.URL+eventsOf(c.s.ID), "")
	equal(t, "the first id", f.expect("ready").id, "0-0000000000000000")
	want := lines(t, s, c.s.ID)
	for _, line := range want {
		equal(t, "an entry", f.expect("entry").data, line)
	}
	other := begin(t, s, nil) // whose entries are not told
	ok(t, other.write(said("x")))
	ok(t, c.write(said("more"), said("and more")))
	for _, line := range lines(t, s, c.s.ID)[len(want):] {
		equal(t, "an entry that came", f.expect("entry").data, line)
	}
}

// Any id of an event is a place to go on from, and so is the number of an entry.
func TestSessionResumes(t *testing.T) {
	for name, ring := range map[string]int{"from the ring": 0, "from the store": 1} {
		t.Run(name, func(t *testing.T) {
			s := memory(t)
			c := begin(t, s, nil)
			_, web := serve(t, stream.Options{Store: s, Ring: ring})
			board := follow(t, web.Client(), web.URL+"/v1/events", "")
			board.expect("ready")
			for range 4 {
				ok(t, c.write(said("x"), step(c)))
			}
			for head := ""; head != fmt.Sprint(c.s.Head); { // then the ring has them
				head = member(t, board.expect("session").data, "head")
			}
			first := follow(t, web.Client(), web.URL+eventsOf(c.s.ID), "")
			ids := []string{first.expect("ready").id}
			want := lines(t, s, c.s.ID)
			for range want {
				ids = append(ids, first.expect("entry").id)
			}
			for n, id := range ids {
				number, _, _ := strings.Cut(id, "-")
				for _, f := range []*follower{
					follow(t, web.Client(), web.URL+eventsOf(c.s.ID), id),
					follow(t, web.Client(), web.URL+eventsOf(c.s.ID)+"?after="+number, ""),
					follow(t, web.Client(), web.URL+eventsOf(c.s.ID)+"?after=0", id), // of a browser that has come back
				} {
					equal(t, "the place", f.expect("ready").id, id)
					for _, line := range want[n:] {
						equal(t, "an entry", f.expect("entry").data, line)
					}
					f.stop()
				}
			}
		})
	}
}

func TestSessionRefuses(t *testing.T) {
	s := memory(t)
	c := begin(t, s, nil)
	_, web := serve(t, stream.Options{Store: s})
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/v1/sessions/0000000000000000000000000z/events": {http.StatusNotFound, "not_found"},
		eventsOf(c.s.ID) + "?after=x":                    {http.StatusBadRequest, "no place in a session"},
		eventsOf(c.s.ID) + "?after=-1":                   {http.StatusBadRequest, "no place in a session"},
		eventsOf(c.s.ID) + "?after=1-00":                 {http.StatusBadRequest, "no place in a session"},
		eventsOf(c.s.ID) + "?after=01":                   {http.StatusBadRequest, "no place in a session"},
		eventsOf(c.s.ID) + "?after=1&after=2":            {http.StatusBadRequest, "comes twice"},
		eventsOf(c.s.ID) + "?status=running":             {http.StatusBadRequest, "no parameter"},
		eventsOf(c.s.ID) + "?%zz":                        {http.StatusBadRequest, "cannot be read"},
		"/v1/sessions/" + c.s.ID.String() + ":1/events":  {http.StatusBadRequest, "whole session"},
		"/v1/events?status=bad":                          {http.StatusBadRequest, "no status"},
		"/v1/events?label=x":                             {http.StatusBadRequest, "key=value"},
		"/v1/events?after=x":                             {http.StatusBadRequest, "no cursor"},
		"/v1/events?agent=a&agent=b":                     {http.StatusBadRequest, "comes twice"},
		"/v1/events?limit=1":                             {http.StatusBadRequest, "no parameter"},
	} {
		f := follow(t, web.Client(), web.URL+path, "")
		equal(t, path, f.res.StatusCode, want.status)
		if text, _ := f.body.ReadString('\n'); !strings.Contains(text, want.text) {
			t.Errorf("%s: %s", path, text)
		}
	}
	for _, path := range []string{eventsOf(c.s.ID), "/v1/events"} {
		res, err := web.Client().Head(web.URL + path)
		ok(t, err)
		ok(t, res.Body.Close())
		equal(t, "the status of a HEAD", res.StatusCode, http.StatusOK)
	}
}

// Who comes with a place that the session does not have is told so, and gets what comes
// from then on.
func TestSessionResyncs(t *testing.T) {
	s := memory(t)
	c := begin(t, s, nil)
	_, web := serve(t, stream.Options{Store: s})
	for _, id := range []string{"2-0123456789abcdef", "1-0123456789abcdef", "99-0123456789abcdef", "99", "what is this", "0-0123456789abcdef"} {
		f := follow(t, web.Client(), web.URL+eventsOf(c.s.ID), id)
		e := f.expect("resync")
		equal(t, "the reason", member(t, e.data, "reason"), "moved")
		equal(t, "the cursor", member(t, e.data, "cursor"), e.id)
		before := c.s.Head
		ok(t, c.write(said("x")))
		equal(t, "the entry behind it", member(t, f.expect("entry").data, "seq"), member(t, lines(t, s, c.s.ID)[before], "seq"))
		f.stop()
		again := follow(t, web.Client(), web.URL+eventsOf(c.s.ID), e.id)
		again.expect("ready")
		equal(t, "the entry behind it, once more", member(t, again.expect("entry").data, "seq"), member(t, lines(t, s, c.s.ID)[before], "seq"))
		again.stop()
	}
}

// A stream goes on where it was when the server and its store were restarted, and says so
// where a backup was put in place meanwhile.
func TestRestarts(t *testing.T) {
	path, backup := dbPath(t), dbPath(t)
	open := func(path string) (*sqlite.Store, *stream.Server, string, func()) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		ok(t, err)
		_, err = s.Hold(t.Context(), "me")
		ok(t, err)
		server, web := serve(t, stream.Options{Store: s})
		return s, server, web.URL, func() {
			server.Close()
			web.Close()
			ok(t, s.Close())
		}
	}
	s, server, url, end := open(path)
	c := begin(t, s, nil)
	one, board := follow(t, http.DefaultClient, url+eventsOf(c.s.ID), ""), follow(t, http.DefaultClient, url+"/v1/events", "")
	board.expect("ready")
	one.expect("ready")
	one.expect("entry")
	ok(t, s.Backup(t.Context(), backup))
	ok(t, c.write(step(c)))
	for range 2 {
		one.expect("entry")
	}
	board.expect("session")
	server.Close()
	equal(t, "the end", member(t, one.expect("bye").data, "reason"), "drain")
	one.over()
	board.expect("bye")
	end()

	s, _, url, end = open(path)
	again, boardAgain := follow(t, http.DefaultClient, url+eventsOf(c.s.ID), one.last), follow(t, http.DefaultClient, url+"/v1/events", board.last)
	equal(t, "the place", again.expect("ready").id, one.last)
	equal(t, "the board's place", boardAgain.expect("ready").id, board.last)
	begin(t, s, nil)
	boardAgain.expect("session")
	end()

	s, _, url, end = open(backup)
	lost := follow(t, http.DefaultClient, url+eventsOf(c.s.ID), one.last)
	equal(t, "why", member(t, lost.expect("resync").data, "reason"), "moved")
	boardLost := follow(t, http.DefaultClient, url+"/v1/events", board.last)
	e := boardLost.expect("resync")
	equal(t, "why, of the board", member(t, e.data, "reason"), "moved")
	boardLost.stop()
	fine := follow(t, http.DefaultClient, url+"/v1/events", e.id)
	fine.expect("ready")
	begin(t, s, nil)
	fine.expect("session")
	end()
	_ = os.Remove(backup)
}

package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// Pages of entries from either end say whether there are more, and bodies are cut where
// a character ends.
func TestLogEntries(t *testing.T) {
	inWorld(t, func(w *world) {
		k := w.session("triage-1").claim("r1")
		k.loop("first")
		bodies := [][]byte{[]byte("short"), []byte(strings.Repeat("é", 1000)), bytes.Repeat([]byte{0xff, 0xfe}, 600), []byte(`{"a":"` + strings.Repeat("x", 1500) + `"}`), []byte(`{"a":1}`)}
		for _, b := range bodies {
			k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: b})
		}
		row := k.row()
		get := func(opt view.LogOptions) (view.Entries, bool) {
			opt.Query.Line = -1
			es, more, err := view.NewLog(w.store, row, term.Style{}, now(), opt).Entries(w.t.Context(), now())
			if err != nil {
				w.t.Fatal(err)
			}
			return es, more
		}
		head := row.Session.Head
		for _, c := range []struct {
			opt         view.LogOptions
			first, last stint.Seq // 0: none
			more        bool
		}{
			{view.LogOptions{}, 1, head, false},
			{view.LogOptions{Limit: 100}, 1, head, false},
			{view.LogOptions{Limit: int(head)}, 1, head, false},
			{view.LogOptions{Limit: 2}, 1, 2, true},
			{view.LogOptions{Tail: 2}, head - 1, head, true},
			{view.LogOptions{Tail: int(head)}, 1, head, false},
			{view.LogOptions{Limit: 2, Query: view.LogQuery{After: head - 1}}, head, head, false},
			{view.LogOptions{Limit: 2, Query: view.LogQuery{After: head}}, 0, 0, false},
			{view.LogOptions{Limit: 2, Query: view.LogQuery{After: head + 9}}, 0, 0, false},
			{view.LogOptions{Query: view.LogQuery{Until: 3}, Tail: 2}, 2, 3, true},
			{view.LogOptions{Limit: 1, Query: view.LogQuery{Kinds: []view.Class{view.ClassOutput}}}, head - 4, head - 4, true},
		} {
			es, more := get(c.opt)
			first, last := stint.Seq(0), stint.Seq(0)
			if n := len(es.Items); n > 0 {
				first, last = es.Items[0].Seq, es.Items[n-1].Seq
			}
			if first != c.first || last != c.last || more != c.more || (es.Cursor == nil) != (last == 0) || es.Cursor != nil && *es.Cursor != last {
				t.Errorf("%+v: entries %d to %d, more %v, cursor %v", c.opt, first, last, more, es.Cursor)
			}
			for _, e := range es.Items {
				if e.Body != nil && (e.Body.JSON != nil || e.Body.Text != nil || e.Body.Base64 != nil) {
					t.Errorf("%+v: entry %d has bytes that nobody asked for", c.opt, e.Seq)
				}
			}
		}
		es, _ := get(view.LogOptions{Tail: 5, Body: 101})
		for i, e := range es.Items {
			b, whole := e.Body, string(bodies[i])
			if b.Size != int64(len(whole)) || b.Cut != (len(whole) > 101) {
				t.Errorf("body %d: size %d, cut %v", i, b.Size, b.Cut)
			}
			switch i {
			case 0:
				if b.Text == nil || *b.Text != whole {
					t.Errorf("a short body is %v", b.Text)
				}
			case 1, 3:
				if b.Text == nil || len(*b.Text) < 98 || !strings.HasPrefix(whole, *b.Text) || !utf8.ValidString(*b.Text) {
					t.Errorf("body %d begins with %v", i, b.Text)
				}
			case 2:
				if b.Base64 == nil || len(*b.Base64) != (101+2)/3*4 {
					t.Errorf("bytes are %v", b.Base64)
				}
			case 4:
				if string(b.JSON) != whole {
					t.Errorf("JSON is %s", b.JSON)
				}
			}
		}
		if es.Session != row.Session.ID || !es.Now.Equal(now().Truncate(time.Microsecond)) {
			t.Errorf("the list is of %s at %s", es.Session, es.Now)
		}
	})
}

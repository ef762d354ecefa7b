package view_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// pretty is v as it is written, indented so that a difference can be read.
func pretty(t *testing.T, v any) []byte {
	t.Helper()
	var line, out bytes.Buffer
	if err := view.WriteJSON(&line, v); err != nil {
		t.Fatal(err)
	}
	if err := json.Indent(&out, line.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The schemas are a contract: see docs/cli-json.md. A change of these files is a
// change of the contract.
func TestSchemas(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		rows, _, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil {
			t.Fatal(err)
		}
		view.Sort(rows, view.ByUrgency, false)
		var deps, doubt stint.Row
		for _, row := range rows {
			switch row.Session.Name {
			case "deps-bump-1129":
				deps = row
			case "invoice-recon-1129":
				doubt = row
			}
		}
		golden(t, "stint.session.1.json", pretty(t, view.NewSession(&deps, now())))
		golden(t, "stint.session.list.1.json", pretty(t, view.NewList([]stint.Row{doubt}, doubt.Session.ID, now())))
		show, err := view.NewShow(t.Context(), w.store, &doubt, view.ShowOptions{Line: -1}, now())
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "show.json", pretty(t, show))
		es, err := w.store.Entries(t.Context(), stint.Range{Session: deps.Session.ID, Until: 4})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "stint.entry.1.json", pretty(t, view.NewEntry(&es[3])))
		q := every()
		q.Until = 3
		text := logOf(t, w, deps, term.Style{}, view.LogOptions{Query: q, Format: view.JSON, Content: true})
		golden(t, "stint.entry.list.1.json", pretty(t, json.RawMessage(text)))
		v := view.NewVerification(now())
		bad := view.Report{Session: deps.Session.ID, Short: deps.Short, Name: deps.Session.Name, Entries: 3, Problems: []view.Problem{{Seq: 3, Check: "journal", What: "entry 3 (step.completed) does not have the hash of its bytes and predecessor"}}}
		v.Add(view.Report{OK: true, Entries: 9}, false)
		v.Add(bad, false)
		golden(t, "stint.verify.1.json", pretty(t, v))
	})
}

// Every member has one shape: what is null in one session is there in all.
func TestSessionsHaveTheSameMembers(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		rows, _, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, row := range rows {
			var m map[string]any
			if err := json.Unmarshal(pretty(t, view.NewSession(&row, now())), &m); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range []string{"schema", "id", "short", "family", "name", "agent", "trigger", "parent", "labels", "status", "reason", "since", "waiting", "now", "at",
				"limits", "totals", "checkpoint", "lease", "unread", "head", "head_hash", "created", "updated", "ended"} {
				if _, ok := m[name]; ok {
					got = append(got, name)
				}
			}
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) || len(got) != len(m) || len(got) != 25 {
				t.Errorf("%s has the members %q of %d", row.Session.Name, got, len(m))
			}
		}
	})
}

func TestBigNumbersAreStrings(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("big-1129", func(c *journal.Created) { c.Limits.Tokens = 1<<62 - 1 }).claim("worker/1")
		k.loop("first")
		k.step(1, journal.StepDone{StepRequested: journal.StepRequested{Name: "m", Kind: stint.Model, Effect: stint.Read}, Usage: stint.Usage{Input: 1<<60 + 1, Cost: 1}}, `{"n":9007199254740993}`)
		row := k.row()
		for path, want := range map[string]string{"totals.tokens.input": "1152921504606846977", "limits.tokens.max": "4611686018427387903", "totals.cost": "0.000000001"} {
			if got, err := view.Field(view.NewSession(&row, now()), path); err != nil || got != want {
				t.Errorf("%s is %s, want %s: %v", path, got, want, err)
			}
		}
		if text := logOf(t, w, row, term.Style{}, view.LogOptions{Query: every(), Format: view.JSONL, Content: true}); !strings.Contains(text, `{"n":9007199254740993}`) {
			t.Errorf("a large number in a body was changed:\n%s", text)
		}
	})
}

// A character that is written as an escape is the same character.
func TestEscapesKeepTheValue(t *testing.T) {
	want := "a\x7fb\u009b2J\u202e\u2028\U000e0041\ufffd<&>é漢"
	var out bytes.Buffer
	if err := view.WriteJSON(&out, map[string]string{want: want}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != term.Escape(got) {
		t.Errorf("not safe to print: %q", got)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[want] != want {
		t.Errorf("%q comes back as %q: %v", want, back, err)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\x7fb\u009b2J\u202e\U000e0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var out bytes.Buffer
		if err := view.WriteJSON(&out, s); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && !strings.Contains(back, "\ufffd") {
			t.Fatalf("%q comes back as %q: %v", s, back, err)
		}
		if got := out.String(); got != term.Escape(got) {
			t.Fatalf("not safe to print: %q", got)
		}
	})
}

// The page of the contract names every member of every schema.
func TestContractNamesEveryMember(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli-json.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[a-z_0-9./]+`).FindAllString(string(page), -1) {
		words[w] = true
	}
	seen := map[reflect.Type]bool{}
	n := 0
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				if n++; !words[name] {
					t.Errorf("docs/cli-json.md does not name the member %q of %s", name, typ)
				}
			}
			look(f.Type)
		}
	}
	for _, v := range []any{view.Show{}, view.List{}, view.Entries{}, view.Verification{}} {
		look(reflect.TypeOf(v))
	}
	if n < 100 {
		t.Errorf("only %d members were looked at", n)
	}
	for _, schema := range []view.Schema{view.SchemaSession, view.SchemaList, view.SchemaEntry, view.SchemaEntries, view.SchemaVerify, view.SchemaExport} {
		if !words[string(schema)] {
			t.Errorf("docs/cli-json.md does not name the schema %s", schema)
		}
	}
}

package exec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/jsonx"
	"pgregory.net/rapid"
)

// FuzzParse feeds lines to the reader of the agent's messages. Whatever it accepts
// is one object with one of the types; whatever it refuses is told in valid text.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`{"type":"step","id":7,"name":"charge","kind":"tool","effect":"once","input":{"a":1}}`,
		`{"type":"steps","steps":[{"id":8,"name":"a"},{"id":9,"name":"b","input":null}]}`,
		`{"type":"result","id":7,"result":1e400,"usage":{"input_tokens":1,"cost":"0.21"}}`,
		`{"type":"result","id":7,"error":"x","definite":true,"retry_after_ms":1500,"final":false}`,
		`{"type":"log","level":"warn","text":"x"}`, `{"type":"progress","text":"x"}`,
		`{"type":"state","patch":{"a":null},"by":"b"}`, `{"type":"state","replace":[]}`,
		`{"type":"end","outcome":"wait","wait":{"for":"time","until":"2026-03-02T10:00:00Z"}}`,
		`{"type":"end","outcome":"fail","retry_after_ms":1}`,
		`{"a":1,"a":2}`, `{"TYPE":"log"}`, "\xef\xbb\xbf{}", "\xff", `"\ud800"`, `[[[[`, `{"type":"\u0000"}`, " {} ", "null", `{"type":null}`,
	} {
		f.Add([]byte(line))
	}
	types := map[string]bool{"step": true, "steps": true, "result": true, "log": true, "progress": true, "state": true, "end": true}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(strings.Trim(string(line), " \t\r")) == 0 {
			return // such a line never comes there
		}
		err := exec.Parse(line)
		if err != nil {
			if text := err.Error(); text == "" || !utf8.ValidString(text) || len(text) > 4096 {
				t.Fatalf("the error is %q", text)
			}
			return
		}
		var m map[string]json.RawMessage
		var kind string
		if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["type"], &kind) != nil || !types[kind] {
			t.Fatalf("%q was accepted", line)
		}
	})
}

// TestWritersProperty compares the bookkeeping of writers with the definition: a
// patch conflicts if, by jsonx.Conflict, one that another wrote before does.
func TestWritersProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type write struct{ patch, by string }
		var done []write
		m := exec.NewMemory(json.RawMessage(`{"a":{"b":{"c":1}},"d":2}`))
		want := m.Value()
		for range rapid.IntRange(1, 8).Draw(t, "writes") {
			w := write{drawObject(t, 3), rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "by")}
			conflict := false
			for _, d := range done {
				path, err := jsonx.Conflict([]byte(d.patch), []byte(w.patch))
				if err != nil {
					t.Fatal(err)
				}
				conflict = conflict || d.by != w.by && path != ""
			}
			err := m.Patch([]byte(w.patch), w.by)
			if (err != nil) != conflict {
				t.Fatalf("after %v the write %v gave %v", done, w, err)
			}
			if err != nil {
				return
			}
			merged, err := jsonx.Merge([]byte(want), []byte(w.patch))
			if err != nil {
				t.Fatal(err)
			}
			if want = string(merged); m.Value() != want {
				t.Fatalf("the state is %s, want %s", m.Value(), want)
			}
			done = append(done, w)
		}
	})
}

func drawObject(t *rapid.T, depth int) string {
	var members []string
	for _, name := range []string{"a", "b", "a/b", "~"} {
		switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			members = append(members, fmt.Sprintf("%q:%s", name, drawObject(t, depth-1)))
		case kind == 1:
			members = append(members, fmt.Sprintf("%q:null", name))
		case kind == 2:
			members = append(members, fmt.Sprintf("%q:%d", name, rapid.IntRange(0, 9).Draw(t, "value")))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestReplaceConflicts(t *testing.T) {
	m := exec.NewMemory(nil)
	for i, w := range []struct {
		value, by string
		whole, ok bool
	}{
		{`{"a":1}`, "", false, true},
		{`[1]`, "", true, true},
		{`{"b":2}`, "", false, true},
		{`{"c":3}`, "x", false, false},
		{`{}`, "x", false, true},
		{`7`, "x", true, false},
	} {
		var err error
		if w.whole {
			err = m.Replace([]byte(w.value), w.by)
		} else {
			err = m.Patch([]byte(w.value), w.by)
		}
		if (err == nil) != w.ok {
			t.Errorf("write %d, %+v, gave %v", i, w, err)
		}
	}
	if m.Value() != `{"b":2}` {
		t.Errorf("the state is %s", m.Value())
	}
}

func TestStateTooLarge(t *testing.T) {
	m := exec.NewMemory(json.RawMessage(`{"a":"` + strings.Repeat("x", 31<<20) + `"}`))
	if err := m.Patch([]byte(`{"b":"`+strings.Repeat("y", 1<<20)+`"}`), ""); err == nil || !strings.Contains(err.Error(), "at most 32 MiB") {
		t.Errorf("a state of more than 32 MiB gave %v", err)
	}
}

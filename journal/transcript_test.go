package journal_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
)

var update = flag.Bool("update", false, "write testdata anew; read the difference before you commit it")

// TestTranscripts plays testdata/*.txt: lines that are not indented are commands
// of the little language in script_test.go, the indented ones below each are what
// came of it.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(src))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(src) {
				t.Errorf("%s: %s", f, firstDifference(string(src), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d is\n  %s\nthe transcript has\n  %s\nIf that is meant: go test ./journal -update", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, the transcript has %d", len(g), len(w))
}

// play runs the commands of src and returns src with the output filled in.
func play(t *testing.T, src string) string {
	s := &script{t: t, chain: newChain(t), intents: map[string]stint.Position{}, questions: map[string]stint.Seq{}}
	s.epoch = 0
	for line := range strings.Lines(src) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue
		}
		fmt.Fprintln(&s.out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.command(line)
	}
	if s.s.Head > 0 {
		s.refold()
		if _, err := s.v.Result(); err != nil {
			t.Errorf("the journal of the transcript is not sound: %v", err)
		}
	}
	return s.out.String()
}

// words splits a command; a word that begins with a double quote ends with one.
func words(line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var w string
		if q := strings.IndexByte(line, '"'); q == 0 || q > 0 && line[q-1] == '=' && !strings.Contains(line[:q], " ") {
			head := line[:q]
			quoted, err := strconv.QuotedPrefix(line[q:])
			if err == nil {
				text, _ := strconv.Unquote(quoted)
				out = append(out, head+text)
				line = line[q+len(quoted):]
				continue
			}
		}
		w, line, _ = strings.Cut(line, " ")
		out = append(out, w)
	}
	return out
}

// printf writes one line of output.
func (s *script) printf(indent int, format string, args ...any) {
	fmt.Fprintf(&s.out, "%s%s\n", strings.Repeat(" ", indent), readable(fmt.Sprintf(format, args...)))
}

// show prints an entry and what it changed in the session.
func (s *script) show(e stint.Entry, before stint.Session) {
	body := ""
	switch {
	case !e.Blob.IsZero():
		body = fmt.Sprintf(" blob %d bytes", e.Blob.Size)
	case len(e.Body) > 60 || strings.ContainsFunc(string(e.Body), func(r rune) bool { return r < ' ' || r > '~' }):
		body = fmt.Sprintf(" body %d bytes", len(e.Body))
	case len(e.Body) > 0:
		body = " body " + string(e.Body)
	}
	by := ""
	if e.Actor != stint.ByEngine {
		by = " by " + string(e.Actor)
	}
	s.printf(2, "%d %d/%s@%d %s%s %s%s #%.8s", e.Seq, e.Pos.Line, e.Pos, e.Pos.Attempt, e.Kind, by, e.Data, body, e.Hash)
	for _, line := range changes(s.t, before, s.s) {
		s.printf(6, "%s", line)
	}
}

func (s *script) refuse(err error) {
	var e *stint.Error
	if !errors.As(err, &e) {
		s.t.Fatalf("%T is not a *stint.Error: %v", err, err)
	}
	s.printf(2, "refused: %s: %v", e.Code, strings.ReplaceAll(e.Error(), " "+s.s.ID.String(), ""))
}

// changes lists the members that differ between two sessions, one line a group.
func changes(t *testing.T, a, b stint.Session) []string {
	was, is := members(t, a), members(t, b)
	var paths []string
	for p := range is {
		paths = append(paths, p)
	}
	for p := range was {
		if _, ok := is[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(a, b) })
	var out []string
	group := "-"
	for _, p := range paths {
		old, hadIt := was[p]
		now, hasIt := is[p]
		if old == now || p == "head" || p == "head_hash" || p == "updated" {
			continue
		}
		text := old + " → " + now
		switch {
		case !hadIt:
			text = now
		case !hasIt:
			text = old + " → gone"
		}
		head, member, nested := strings.Cut(p, ".")
		if nested && head == group {
			out[len(out)-1] += ", " + member + " " + text
			continue
		}
		group = head
		if nested {
			text = member + " " + text
		}
		out = append(out, head+": "+text)
	}
	return out
}

// members flattens a session into its JSON members.
func members(t *testing.T, s stint.Session) map[string]string {
	var v any
	if err := json.Unmarshal(toJSON(t, s), &v); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	flatten("", v, out)
	return out
}

func flatten(path string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, m := range v {
			flatten(strings.TrimPrefix(path+"."+k, "."), m, out)
		}
	case string:
		if v != "" && v != "0001-01-01T00:00:00Z" {
			out[path] = v
		}
	case []any:
		out[path] = fmt.Sprint(v...)
	case float64:
		if v != 0 {
			out[path] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	default:
		out[path] = fmt.Sprint(v)
	}
}

// readable shortens hashes, and gives times as what passed since the beginning.
func readable(s string) string {
	s = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllStringFunc(s, func(h string) string { return h[:8] + "…" })
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`).ReplaceAllStringFunc(s, func(at string) string {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil || t.IsZero() {
			return "0"
		}
		return "+" + t.Sub(base()).String()
	})
}

// report prints any value as JSON, over several lines.
func (s *script) report(v any) {
	b, err := json.MarshalIndent(v, "  ", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	s.printf(2, "%s", b)
}

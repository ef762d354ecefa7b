//go:build linux

package acceptance_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// scripted makes a site whose agents are shell scripts. Each gets the loop's line
// in $loop, has one attempt and one second of grace; settings go before its script,
// parted by a bar: "limits: {wall: 1s} | echo hello".
func scripted(t *testing.T, agents map[string]string) *site {
	t.Helper()
	s := newSite(t, nil)
	var b strings.Builder
	b.WriteString("agents:\n")
	for name, text := range agents {
		settings, script, _ := strings.Cut(text, " | ")
		command, err := json.Marshal([]string{"sh", "-c", "read -r loop\n" + script})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  %s: {kind: exec, retry: {attempts: 1}, grace: 1s, command: %s", name, command)
		if settings != "" {
			fmt.Fprintf(&b, ", %s", settings)
		}
		b.WriteString("}\n")
	}
	s.file("stint.yaml", b.String())
	return s
}

// file writes a file into the site.
func (s *site) file(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// trace is what a refused command must leave as it is: the sessions, all rows of
// the journal and of inboxes, and the files of the site.
func (s *site) trace() string {
	s.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !strings.Contains(path, "stint.db") {
			fmt.Fprintln(&b, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if exists(s.store()) {
		all := decode[struct{ Items json.RawMessage }](s.t, s.must("ps", "-a", "--json")).Items
		b.Write(regexp.MustCompile(`"age_ms":[0-9]+`).ReplaceAll(all, nil))
		b.WriteString(s.must("sql", "select (select count(*) from journal), (select count(*) from inbox), (select count(*) from keys), (select count(*) from blobs)"))
	}
	return b.String()
}

// said checks how a command refused: its status, the cause and the hint, and with
// --json one object of schema stint.error/1.
func (r result) said(t *testing.T, code int, cause string) {
	t.Helper()
	message, hint, _ := strings.Cut(r.talk, "\n  ")
	if r.code != code || !strings.Contains(r.talk, cause) || strings.Contains(r.talk, "goroutine ") {
		t.Errorf("want exit status %d with %q: %s", code, cause, r)
	}
	if bad := driving(r.out + r.talk); bad != "" {
		t.Errorf("%s is printed: %s", bad, r)
	}
	for _, a := range r.args {
		if a != "--json" {
			continue
		}
		var e struct {
			Schema, Code, Error, Hint string
			Exit                      int
		}
		if err := json.Unmarshal([]byte(r.talk), &e); err != nil || strings.Count(r.talk, "\n") != 1 || e.Schema != "stint.error/1" || e.Code == "" || e.Error == "" || e.Hint == "" || e.Exit != code {
			t.Errorf("as JSON (%v): %s", err, r)
		}
		return
	}
	if !strings.HasPrefix(message, "stint: ") || strings.TrimSpace(hint) == "" {
		t.Errorf("without a message or a hint: %s", r)
	}
}

// refuses runs a command, for people and for programs, that must be refused and
// leave no trace.
func (s *site) refuses(code int, cause string, args ...string) {
	s.t.Helper()
	before := s.trace()
	s.run(args...).said(s.t, code, cause)
	s.run(append([]string{"--json"}, args...)...).said(s.t, code, cause)
	after := s.trace()
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] || i == min(len(before), len(after))-1 && len(before) != len(after) {
			s.t.Errorf("stint %.100q was refused, and changed\n%s\nto\n%s", args, clip(before[max(0, i-100):]), clip(after[max(0, i-100):]))
			break
		}
	}
}

// driving names the first character in text that a terminal could act on, or that
// is no character at all; "" if there is none.
func driving(text string) string {
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return fmt.Sprintf("the byte %#02x", text[i])
		case r < 0x20 || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r), r == 0x2028, r == 0x2029, r == 0x200b, r == 0xfeff:
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

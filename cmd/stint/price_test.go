package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/price"
	"github.com/stint-dev/stint/internal/term"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shop is a person with a folder for configuration and nothing else.
type shop struct {
	t    *testing.T
	dir  string
	env  map[string]string
	file string // with the prices
}

func newShop(t *testing.T) *shop {
	t.Helper()
	dir := t.TempDir()
	return &shop{t, dir, map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "config")}, filepath.Join(dir, "config", "stint", "prices.json")}
}

func (s *shop) stint(args ...string) (code int, out, talk string) {
	s.t.Helper()
	var o, e buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e, getenv: func(k string) string { return s.env[k] }, getwd: func() (string, error) { return s.dir, nil }}
	code = a.run(s.t.Context(), args)
	return code, o.String(), e.String()
}

// transcript is what a terminal shows of some command lines.
func (s *shop) transcript(lines ...string) []byte {
	var b bytes.Buffer
	for _, line := range lines {
		code, out, talk := s.stint(strings.Fields(line)...)
		fmt.Fprintf(&b, "$ stint %s\n%s%s", term.Escape(line), out, talk)
		if code != exitOK {
			fmt.Fprintf(&b, "(exit status %d)\n", code)
		}
		b.WriteByte('\n')
	}
	own, err := price.Default()
	if err != nil {
		s.t.Fatal(err)
	}
	_, date := own.Version()
	text := b.String()
	for was, is := range map[string]string{s.file: "PRICES", date: "DATE", time.Now().Format(time.DateOnly): "DATE"} {
		text = strings.ReplaceAll(text, was, is)
	}
	return []byte(text)
}

func TestPrice(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"price.txt": {
			"price ls claude-haiku-5-5 claude-opus-4",
			"price show claude-opus-4-20250514",
			"price set my-model --input 3 --output 15",
			"price set my-model --input 3.00 --output 15 --cache-read 3",
			"price set claude-haiku-5-5 --input 0.0375 --output 4.000000001 --cache-read 0 --cache-write 1",
			"price set my-* --input 0 --output 0",
			"price ls my-* my-model-2 claude-haiku-5-5",
			"price show claude-haiku-5-5",
			"price unset claude-haiku-5-5",
			"price unset my-model",
			"price show my-model",
		},
		"price-json.txt": {
			"price set my-model --input 3 --output 15 --json",
			"price ls my-model claude-haiku-5-5 --json",
			"price set claude-haiku-5-5 --input 1 --output 2 --json",
			"price show claude-haiku-5-5 --json",
			"price unset my-model --json",
			"price unset my-model --json",
		},
		"price-refused.txt": {
			"price nosuch",
			"price show",
			"price show nosuch",
			"price ls claude-opus-4 nosuch-*",
			"price ls --file nosuch.json",
			"price set my-model",
			"price set my-model --input 3",
			"price set my-model --input $3 --output 15",
			"price set my-model --input 1e3 --output 15",
			"price set my-model --input 3 --output -15",
			"price set my-model --input 0.0000000001 --output 15",
			"price set my-model --input 3 --output 15 --cache-read=",
			"price set my\x1b[2Jmodel --input 3 --output 15",
			"price set my-model --input 3 --output 15 --file nosuch/prices.json",
			"price unset my-model",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			got, path := s.transcript(lines...), filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", path, got, want)
			}
			if name != "price-refused.txt" {
				return
			}
			if _, err := os.Stat(filepath.Join(s.dir, "config")); !os.IsNotExist(err) {
				t.Errorf("what was refused left something: %v", err)
			}
		})
	}
}

// Without a name every model of the table is listed once, with what it costs.
func TestPriceListsAll(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	own, err := price.Default()
	if err != nil {
		t.Fatal(err)
	}
	_, out, _ := s.stint("price")
	if _, again, _ := s.stint("price", "ls"); out != again {
		t.Errorf("stint price and stint price ls differ:\n%s\n%s", out, again)
	}
	names := 0
	for _, row := range own.Rows() {
		for _, n := range row.Names {
			names++
			if strings.Count(out, "\n"+n+" ") != 1 {
				t.Errorf("%s is not there once", n)
			}
		}
	}
	if names < 40 {
		t.Errorf("%d models", names)
	}
}

// The file is where the XDG specification and --file say, or nowhere.
func TestPriceFile(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	set := []string{"price", "set", "m", "--input", "1", "--output", "2"}
	there := func(want string) {
		t.Helper()
		if p, err := price.Load(want); err != nil {
			t.Error(err)
		} else if _, _, by := p.Find("m"); by != p {
			t.Errorf("%s does not have it", want)
		}
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"XDG_CONFIG_HOME": filepath.Join(s.dir, "a"), "HOME": filepath.Join(s.dir, "b")}, filepath.Join(s.dir, "a", "stint", "prices.json")},
		{map[string]string{"XDG_CONFIG_HOME": "relative", "HOME": filepath.Join(s.dir, "c")}, filepath.Join(s.dir, "c", ".config", "stint", "prices.json")},
		{map[string]string{"USERPROFILE": filepath.Join(s.dir, "d")}, filepath.Join(s.dir, "d", ".config", "stint", "prices.json")},
	} {
		s.env = c.env
		if code, out, talk := s.stint(set...); code != exitOK {
			t.Errorf("exit status %d\n%s%s", code, out, talk)
		}
		there(c.want)
	}
	s.env = nil
	if code, _, talk := s.stint(set...); code != exitInvalid || !strings.Contains(talk, "\n  set HOME or XDG_CONFIG_HOME, or give --file") {
		t.Errorf("exit status %d\n%s", code, talk)
	}
	if code, out, _ := s.stint("price"); code != exitOK || !strings.Contains(out, "stint's own table") {
		t.Errorf("exit status %d\n%s", code, out)
	}
	file := filepath.Join(s.dir, "p.json")
	if code, _, talk := s.stint(append(set, "--file", file)...); code != exitOK {
		t.Errorf("exit status %d\n%s", code, talk)
	}
	there(file)
	if err := os.WriteFile(file, []byte(`{"version": "1", "prices": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"price", "price ls", "price show m", "price set m --input 1 --output 2", "price unset m"} {
		if code, out, talk := s.stint(append(strings.Fields(line), "--file", file)...); code != exitInvalid || out != "" || !strings.Contains(talk, file) || !strings.Contains(talk, "\n  mend the file") {
			t.Errorf("stint %s: exit status %d\n%s%s", line, code, out, talk)
		}
	}
}

func TestPriceCompletion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if code, _, talk := s.stint("price", "set", "my-model", "--input", "1", "--output", "2"); code != exitOK {
		t.Fatal(talk)
	}
	for line, want := range map[string][]string{
		"price unset ":                {"my-model\tinput 1.00, output 2.00"},
		"price show my":               {"my-model\tinput 1.00, output 2.00"},
		"price show my-model ":        {},
		"price ls my-model my":        {},
		"price set claude-opus-5-":    {"claude-opus-5-5\tinput 4.00, output 20.00"},
		"price set m --input ":        {},
		"price unset --file none.js ": {},
	} {
		code, out, talk := s.stint(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := lines[:len(lines)-1]; code != exitOK || !slices.Equal(got, want) {
			t.Errorf("stint %s offers %q, want %q\n%s", line, got, want, talk)
		}
	}
}

package price_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/price"
)

// rates are input, output, and both of the cache.
func rates(t *testing.T, input, output, read, write string) price.Rates {
	t.Helper()
	var r price.Rates
	for to, s := range map[*stint.Money]string{&r.Input: input, &r.Output: output, &r.CacheRead: read, &r.CacheWrite: write} {
		if err := to.UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func set(t *testing.T, path, model string, r price.Rates, want bool) {
	t.Helper()
	if changed, err := price.Set(path, model, r, "2026-11-30"); err != nil || changed != want {
		t.Errorf("set %s: %v, %v, want %v", model, changed, err, want)
	}
}

func unset(t *testing.T, path, model string, want bool) {
	t.Helper()
	if changed, err := price.Unset(path, model, "2026-11-30"); err != nil || changed != want {
		t.Errorf("unset %s: %v, %v, want %v", model, changed, err, want)
	}
}

func version(t *testing.T, path, want string) *price.Table {
	t.Helper()
	p, err := price.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := p.Version(); v != want {
		t.Errorf("the version is %q, want %q", v, want)
	}
	return p
}

func TestSetAndUnset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	a, b := rates(t, "3", "15", "0.30", "3.75"), rates(t, "0.0375", "4.000000001", "0", "1")
	unset(t, path, "m", false)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what there is not was taken out of a file: %v", err)
	}
	set(t, path, "m", a, true)
	version(t, path, "own-1")
	set(t, path, "m", a, false)
	version(t, path, "own-1")
	set(t, path, "m-*", b, true)
	set(t, path, "gpt-4o", b, true)
	p := version(t, path, "own-3")
	for model, want := range map[string]price.Rates{"m": a, "m-latest": a, "m-2": b, "gpt-4o-2024-08-06": b} {
		if row, _, by := p.Find(model); by == nil || row.Rates != want || by.From() != path {
			t.Errorf("%s: %+v of %+v", model, row, by)
		}
	}
	unset(t, path, "gpt-4o", true)
	unset(t, path, "gpt-4o", false)
	p = version(t, path, "own-4")
	if row, name, by := p.Find("gpt-4o"); by != p.Under() || name != "gpt-4o" || by.From() != "" || row.Rates.Input != 2_500_000_000 {
		t.Errorf("gpt-4o: %+v", row)
	}
	unset(t, path, "m", true)
	unset(t, path, "m-*", true)
	if p = version(t, path, "own-6"); len(p.Rows()) != 0 {
		t.Errorf("rows are left: %v", p.Rows())
	}
	set(t, path, "m", a, true) // other prices never have a version that was there before
	version(t, path, "own-7")
}

// What the file has besides stays: other models of a row, prices of long prompts, the mode,
// and that it is a link.
func TestSetKeeps(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "prices.json"), filepath.Join(dir, "dotfiles.json")
	const text = `{"version":"mine","date":"2026-01-02","models":[
		{"names":["a","b"],"input":"1","output":"2","long":{"over":9,"input":"5","output":"6"}},{"names":["c"],"input":"7","output":"8"}]}`
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	} else if err != nil {
		path = to
	}
	set(t, path, "a", rates(t, "1", "2", "1", "1"), true) // not those of b: they have others for long prompts
	p := version(t, to, "mine-2")
	for model, want := range map[string]string{"a": "10.00", "b": "50.00", "c": "70.00"} {
		if cost, _, _ := p.Cost(model, stint.Usage{Input: 10_000_000}); cost.String() != want {
			t.Errorf("%s: %s, want %s", model, cost, want)
		}
	}
	if info, err := os.Stat(to); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 2 {
		t.Errorf("something is left over: %v, %v", files, err)
	}
}

func TestVersionsFollow(t *testing.T) {
	for before, want := range map[string]string{
		"own-9": "own-10", "mine": "mine-2", "7": "8", "v1.9": "v1.10", "x-99999999999999999999": "x-99999999999999999999-2",
		strings.Repeat("é", 40): strings.Repeat("é", 38) + "-2",
	} {
		path := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(path, []byte(`{"version":"`+before+`","date":"2026-01-02","models":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		set(t, path, "m", price.Rates{}, true)
		version(t, path, want)
	}
}

func TestSetRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	large := filepath.Join(dir, "large")
	for path, text := range map[string]string{bad: `{"version":"1"}`, large: strings.Repeat(" ", 1<<20+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, model string
		code        stint.Code
	}{
		{bad, "m", stint.Invalid},
		{large, "m", stint.Invalid},
		{dir, "m", stint.Invalid},
		{filepath.Join(dir, "none", "p"), "m", stint.Unavailable},
		{filepath.Join(dir, "p"), "", stint.Invalid},
		{filepath.Join(dir, "p"), "a b", stint.Invalid},
		{filepath.Join(dir, "p"), "a\x1b[2J", stint.Invalid},
		{filepath.Join(dir, "p"), "a\xff", stint.Invalid},
		{filepath.Join(dir, "p"), strings.Repeat("a", 201), stint.Invalid},
	} {
		var e *stint.Error
		if changed, err := price.Set(c.path, c.model, price.Rates{}, "2026-11-30"); changed || !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s %q: %v, %v", c.path, c.model, changed, err)
		}
	}
	if _, err := price.Set(filepath.Join(dir, "p"), "m", price.Rates{Input: -1}, "2026-11-30"); !errors.Is(err, stint.Invalid) {
		t.Errorf("a negative price: %v", err)
	}
	if b, err := os.ReadFile(bad); err != nil || string(b) != `{"version":"1"}` {
		t.Errorf("the file that was refused is %q, %v", b, err)
	}
}

// Whatever is set and unset, the file has the last word on each model.
func TestOwnFileHasTheLastWord(t *testing.T) {
	dir := t.TempDir()
	built, _ := table(t).Version()
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(dir, "p")
		_ = os.Remove(path)
		want, versions := map[string]price.Rates{}, map[string]bool{built: true}
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			model := rapid.SampledFrom([]string{"x", "y", "gpt-4o"}).Draw(rt, "model")
			_, had := want[model]
			var changed, must bool
			var err error
			if rapid.Bool().Draw(rt, "set") {
				m := rapid.Custom(func(rt *rapid.T) stint.Money { return stint.Money(rapid.Int64Range(0, 1<<62).Draw(rt, "money")) })
				r := price.Rates{Input: m.Draw(rt, "in"), Output: m.Draw(rt, "out"), CacheRead: m.Draw(rt, "read"), CacheWrite: m.Draw(rt, "write")}
				must = !had || want[model] != r
				want[model] = r
				changed, err = price.Set(path, model, r, "2026-11-30")
			} else {
				must = had
				delete(want, model)
				changed, err = price.Unset(path, model, "2026-11-30")
			}
			if err != nil || changed != must {
				rt.Fatalf("changed: %v, want %v: %v", changed, must, err)
			}
			p, err := price.Open(path)
			if err != nil {
				rt.Fatal(err)
			}
			if v, _ := p.Version(); changed == versions[v] {
				rt.Fatalf("changed: %v, and version %s was there: %v", changed, v, versions[v])
			} else {
				versions[v] = true
			}
			for model, r := range want {
				if row, _, by := p.Find(model); by != p || row.Rates != r {
					rt.Fatalf("%s: %+v, want %+v", model, row, r)
				}
			}
		}
	})
}

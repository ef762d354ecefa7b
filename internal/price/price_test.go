package price_test

import (
	"errors"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/price"
)

func table(t *testing.T) *price.Table {
	t.Helper()
	p, err := price.Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCost(t *testing.T) {
	p := table(t)
	version, date := p.Version()
	if version == "" || date == "" || p.Under() != nil || len(p.Rows()) == 0 {
		t.Fatalf("version %q, date %q", version, date)
	}
	for _, c := range []struct {
		model string
		usage stint.Usage
		want  string // "" for unknown
	}{
		{"claude-opus-5-5", stint.Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}, "29.20"},
		{"claude-sonnet-4-5-20250929", stint.Usage{Input: 1000, Output: 100}, "0.0045"},
		{"claude-sonnet-4-20250514", stint.Usage{Input: 1}, "0.000003"},
		{"claude-3-5-haiku-latest", stint.Usage{CacheRead: 1}, "0.00000008"},
		{"gpt-4o-mini-2024-07-18", stint.Usage{CacheRead: 1}, "0.000000075"},
		{"gpt-5-nano", stint.Usage{CacheRead: 1}, "0.000000005"},
		{"gpt-5.4", stint.Usage{Input: 272_000, Output: 1_000_000}, "15.68"},
		{"gpt-5.4", stint.Usage{Input: 272_001, Output: 1_000_000}, "23.860005"},
		{"claude-haiku-5-5", stint.Usage{Input: 1, CacheRead: 100_000}, "0.0050005"},
		{"claude-haiku-5-5", stint.Usage{Input: 1, CacheRead: 99_999, Output: 1}, "0.00100059"},
		{"gpt-5.4", stint.Usage{CacheWrite: 1_000_000}, "5.00"},
		{"claude-opus-5-5", stint.Usage{Input: -5, Output: 1}, "0.00002"},
		{"claude-opus-5-5", stint.Usage{Cost: 7}, "0.00"},
		{"gpt-5-pro", stint.Usage{Input: 1}, ""},
		{"gpt-5-mini-2025-13-45", stint.Usage{Input: 1}, ""},
		{"claude-opus-4-99", stint.Usage{Input: 1}, ""},
		{"", stint.Usage{Input: 1}, ""},
	} {
		cost, v, known := p.Cost(c.model, c.usage)
		if known != (c.want != "") || known && (cost.String() != c.want || v != version) {
			t.Errorf("%s %+v: %s, %q, %v, want %s", c.model, c.usage, cost, v, known, c.want)
		}
	}
	if cost, _, _ := p.Cost("claude-opus-5-5", stint.Usage{Input: math.MaxInt64, Output: math.MaxInt64}); cost != math.MaxInt64 {
		t.Errorf("more than Money holds is %s", cost)
	}
}

// The amount is the exact sum, rounded up once.
func TestCostIsExact(t *testing.T) {
	p, err := load(t, `{"version":"1","date":"2026-01-02","models":[{"names":["m"],"input":"0.0375","output":"4.000000001","cache_read":"0.000000007","cache_write":"1"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	count := rapid.Int64Range(0, 1<<40)
	rapid.Check(t, func(rt *rapid.T) {
		u := stint.Usage{Input: count.Draw(rt, "in"), Output: count.Draw(rt, "out"), CacheRead: count.Draw(rt, "read"), CacheWrite: count.Draw(rt, "write")}
		cost, _, _ := p.Cost("m", u)
		exact := new(big.Rat)
		for _, c := range []struct {
			n int64
			p string
		}{{u.Input, "0.0375"}, {u.Output, "4.000000001"}, {u.CacheRead, "0.000000007"}, {u.CacheWrite, "1"}} {
			per, _ := new(big.Rat).SetString(c.p)
			exact.Add(exact, per.Mul(per, new(big.Rat).SetFrac64(c.n, 1_000_000)))
		}
		over := new(big.Rat).Sub(new(big.Rat).SetFrac64(int64(cost), 1_000_000_000), exact)
		if over.Sign() < 0 || over.Cmp(big.NewRat(1, 1_000_000_000)) >= 0 {
			rt.Fatalf("%+v: %s is %s more than exact", u, cost, over)
		}
	})
}

func load(t *testing.T, s string) (*price.Table, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return price.Load(file)
}

func TestOwnFile(t *testing.T) {
	p, err := load(t, `{"version":"mine","date":"2026-01-02","models":[
		{"names":["my-*","*-large"],"input":"1","output":"2"},
		{"names":["my-large*"],"input":"3","output":"2"},
		{"names":["gpt-4o"],"input":"0","output":"0"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	own, _ := table(t).Version()
	for model, want := range map[string]string{"my-model": "1.00", "my-large-2": "3.00", "a/b-large": "1.00", "gpt-4o-2024-08-06": "0.00"} {
		if cost, v, known := p.Cost(model, stint.Usage{Input: 1_000_000}); !known || cost.String() != want || v != "mine" {
			t.Errorf("%s: %s, %s, %v, want %s", model, cost, v, known, want)
		}
	}
	if cost, v, known := p.Cost("gpt-4.1", stint.Usage{Input: 1_000_000}); !known || cost.String() != "2.00" || v != own {
		t.Errorf("a model of the binary's table: %s, %s, %v", cost, v, known)
	}
	if _, _, known := p.Cost("your-model", stint.Usage{}); known {
		t.Error("a model that nobody named is known")
	}
}

func TestLoadRefuses(t *testing.T) {
	const head = `"version":"1","date":"2026-01-02"`
	for s, want := range map[string]string{
		``:                               "EOF",
		`{` + head + `} x`:               "follows",
		`{"date":"2026-01-02"}`:          "version",
		`{"version":"1","date":"today"}`: "date",
		`{` + head + `,"prices":[]}`:     "prices",
		`{` + head + `,"models":[{}]}`:   "no names",
		`{` + head + `,"models":[{"names":["a","a"]}]}`:                                                    "taken",
		`{` + head + `,"models":[{"names":["a"],"input":"-1","output":"1"}]}`:                              "negative",
		`{` + head + `,"models":[{"names":["a"],"input":"1"}]}`:                                            "an output price",
		`{` + head + `,"models":[{"names":["a"],"input":1}]}`:                                              "input",
		`{` + head + `,"models":[{"names":["a"],"input":"1e3"}]}`:                                          "amount",
		`{` + head + `,"models":[{"names":["a"],"input":"0.0000000001"}]}`:                                 "amount",
		`{` + head + `,"models":[{"names":["a"],"input":"1","output":"1","long":{"over":-1}}]}`:            "over",
		`{` + head + `,"models":[{"names":["a"],"input":"1","output":"1","long":{"over":1,"input":"1"}}]}`: "an output price",
	} {
		if _, err := load(t, s); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, stint.Invalid) {
			t.Errorf("%s: %v, want %q", s, err, want)
		}
	}
	if _, err := price.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestFree(t *testing.T) {
	for u, want := range map[string]bool{
		"http://127.0.0.1:11434/v1": true, "http://127.8.9.1": true, "http://[::1]:8080": true, "http://localhost:1": true,
		"http://LOCALHOST.:1": true, "http://llm.localhost": true, "http://[::ffff:127.0.0.1]/": true,
		"": false, "https://api.openai.com/v1": false, "http://192.168.0.2": false, "http://localhost.example.com": false,
		"http://127.0.0.1.example.com": false, "http://0.0.0.0:1": false, "https://example.com/?u=http://127.0.0.1": false,
		"http://127.0.0.1@example.com": false, "%zz": false,
	} {
		if got := price.Free(u); got != want {
			t.Errorf("%q: %v", u, got)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"version":"1","date":"2026-01-02","models":[{"names":["a*b"],"input":"1","output":"2","long":{"over":1,"input":"3","output":"4"}}]}`, "aab")
	f.Fuzz(func(t *testing.T, s, model string) {
		p, err := load(t, s)
		if err != nil {
			return
		}
		if cost, _, _ := p.Cost(model, stint.Usage{Input: 3, Output: 4, CacheRead: 5, CacheWrite: 6}); cost < 0 {
			t.Fatalf("%s", cost)
		}
	})
}

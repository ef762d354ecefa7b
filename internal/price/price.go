package price

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

//go:embed prices.json
var embedded []byte

// Table is prices of models. It does not change once made, and is safe for concurrent use.
type Table struct {
	version string
	date    string
	from    string // path of the file; "" for that of the binary
	rows    []Row
	under   *Table // asked for what this one does not have; may be nil
}

// Row is the prices of one or more models.
type Row struct {
	Names []string
	Rates Rates
	Over  int64  // tokens of a prompt beyond which Long holds; 0 when Long is nil
	Long  *Rates // may be nil
}

// Rates are prices of a million tokens.
type Rates struct {
	Input, Output, CacheRead, CacheWrite stint.Money
}

type file struct {
	Version string    `json:"version"`
	Date    string    `json:"date"`
	Models  []fileRow `json:"models"`
}

type fileRow struct {
	fileRates

	Names []string `json:"names"`
	Long  *struct {
		fileRates

		Over int64 `json:"over"`
	} `json:"long,omitempty"`
}

type fileRates struct {
	Input      *stint.Money `json:"input"`
	Output     *stint.Money `json:"output"`
	CacheRead  *stint.Money `json:"cache_read,omitempty"`
	CacheWrite *stint.Money `json:"cache_write,omitempty"`
}

// Default returns the table of this binary.
func Default() (*Table, error) { return parse(embedded, "", nil) }

// Load returns the table in a file, over that of this binary. The error is [stint.Invalid]
// or says why the file cannot be read; it names the file.
func Load(path string) (*Table, error) {
	under, err := Default()
	if err != nil {
		return nil, err
	}
	b, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(b, path, under)
}

func parse(b []byte, from string, under *Table) (*Table, error) {
	refuse := func(format string, args ...any) error {
		if from != "" {
			format, args = "%s: "+format, append([]any{from}, args...)
		}
		err := stint.Invalid.Errorf("prices", format, args...)
		err.Hint = "mend the file, or move it away and give its prices anew with stint price set"
		return err
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, refuse("%w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse("something follows the object")
	}
	if n := utf8.RuneCountInString(f.Version); n < 1 || n > 40 {
		return nil, refuse("the version has %d characters; it has 1 to 40", n)
	}
	if _, err := time.Parse(time.DateOnly, f.Date); err != nil {
		return nil, refuse("the date %q is not like 2026-11-29", f.Date)
	}
	t := &Table{version: f.Version, date: f.Date, from: from, under: under}
	seen := map[string]bool{}
	for i, r := range f.Models {
		if len(r.Names) == 0 {
			return nil, refuse("models[%d] has no names", i)
		}
		for _, n := range r.Names {
			if n == "" || seen[n] {
				return nil, refuse("models[%d]: the name %q is empty or taken", i, n)
			}
			seen[n] = true
		}
		row, err := r.read()
		if err != nil {
			return nil, refuse("models[%d] (%s): %w", i, r.Names[0], err)
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

func (f *fileRow) read() (Row, error) {
	rates, err := f.rates()
	if err != nil || f.Long == nil {
		return Row{Names: f.Names, Rates: rates}, err
	}
	if f.Long.Over <= 0 {
		return Row{}, errors.New("long needs an \"over\", a number of tokens")
	}
	long, err := f.Long.rates()
	return Row{Names: f.Names, Rates: rates, Over: f.Long.Over, Long: &long}, err
}

func (f *fileRates) rates() (Rates, error) {
	if f.Input == nil || f.Output == nil {
		return Rates{}, errors.New("it needs an input and an output price; 0 is one")
	}
	r := Rates{Input: *f.Input, Output: *f.Output, CacheRead: *f.Input, CacheWrite: *f.Input}
	if f.CacheRead != nil {
		r.CacheRead = *f.CacheRead
	}
	if f.CacheWrite != nil {
		r.CacheWrite = *f.CacheWrite
	}
	if min(r.Input, r.Output, r.CacheRead, r.CacheWrite) < 0 {
		return Rates{}, errors.New("a price is negative")
	}
	return r, nil
}

// Version is what is recorded with the amounts of the table's own rows, and Date when they
// were looked up.
func (t *Table) Version() (version, date string) { return t.version, t.date }

// From is the path of the file that the table was loaded from, "" for that of the binary.
func (t *Table) From() string { return t.from }

// Rows returns the table's own rows, without those of the table under it. They are not
// to be changed.
func (t *Table) Rows() []Row { return t.rows }

// Under is the table that is asked for what t does not have; nil if there is none.
func (t *Table) Under() *Table { return t.under }

// Cost returns what u costs with a model, and the version of the table that says so.
// u.Cost is not looked at. known is false when no table has the model. The arithmetic is
// exact; the sum is rounded up to a billionth of a dollar, once. An amount beyond what
// [stint.Money] holds is the largest one.
func (t *Table) Cost(model string, u stint.Usage) (cost stint.Money, version string, known bool) {
	if r, _, by := t.Find(model); by != nil {
		return r.cost(u), by.version, true
	}
	return 0, "", false
}

// Find returns the row that has the prices of a model, the name in it that fits, and the
// table that it stands in: t, or the one under it. The table is nil when none has the model.
// The row is not to be changed.
func (t *Table) Find(model string) (row *Row, name string, by *Table) {
	for ; t != nil; t = t.under {
		if r, name := t.find(model); r != nil {
			return r, name, t
		}
	}
	return nil, "", nil
}

func (r *Row) cost(u stint.Usage) stint.Money {
	rates := r.Rates
	if r.Long != nil && prompt(u) > r.Over {
		rates = *r.Long
	}
	sum := new(big.Int)
	for _, p := range []struct {
		tokens int64
		price  stint.Money
	}{{u.Input, rates.Input}, {u.Output, rates.Output}, {u.CacheRead, rates.CacheRead}, {u.CacheWrite, rates.CacheWrite}} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(max(p.tokens, 0)), big.NewInt(int64(p.price))))
	}
	million := big.NewInt(1_000_000)
	sum.Add(sum, big.NewInt(999_999)).Quo(sum, million)
	if !sum.IsInt64() {
		return math.MaxInt64
	}
	return stint.Money(sum.Int64())
}

// prompt is the tokens of the prompt, wherever they came from.
func prompt(u stint.Usage) int64 {
	var n int64
	for _, part := range []int64{u.Input, u.CacheRead, u.CacheWrite} {
		if part = max(part, 0); n > math.MaxInt64-part {
			return math.MaxInt64
		}
		n += part
	}
	return n
}

// find returns the row of a model and the name that fits, nil if there is none.
func (t *Table) find(model string) (best *Row, by string) {
	score := -1
	for i := range t.rows {
		for _, name := range t.rows[i].Names {
			if s := match(name, model); s > score {
				best, by, score = &t.rows[i], name, s
			}
		}
	}
	return best, by
}

// Fits reports whether a name as in a table, which may be a pattern, means a model.
func Fits(name, model string) bool { return match(name, model) >= 0 }

// match says how well a name fits a model, -1 for not at all.
func match(name, model string) int {
	switch {
	case name == model:
		return math.MaxInt
	case !strings.Contains(name, "*"):
		if rest, ok := strings.CutPrefix(model, name); ok && dated(rest) {
			return math.MaxInt - 1
		}
		return -1
	}
	parts := strings.Split(name, "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	if ok, err := regexp.MatchString("^(?s:"+strings.Join(parts, ".*")+")$", model); err != nil || !ok {
		return -1
	}
	return len(name) - strings.Count(name, "*")
}

// dated reports whether s is what providers put after a model's name for one of its
// releases: -20260101, -2026-01-01, -latest.
func dated(s string) bool {
	if s == "-latest" {
		return true
	}
	for _, layout := range []string{"-20060102", "-2006-01-02"} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

// Free reports whether calls to a base URL cost nothing because it is on this machine: its
// host is a loopback address, or localhost or a name under it. The vendor's own, "", is not.
func Free(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

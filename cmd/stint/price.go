package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/price"
	"github.com/stint-dev/stint/internal/term"
)

// priceOptions are the flags of stint price.
type priceOptions struct {
	file                                 string
	input, output, cacheRead, cacheWrite string
}

func (a *app) priceCommand() *cobra.Command {
	var o priceOptions
	list := func(_ *cobra.Command, args []string) error { return a.priceList(&o, args) }
	cmd := &cobra.Command{
		Use: "price", Short: "Show and set what models cost",
		Long: `Show what models cost, in US dollars per million tokens, and give a model a price
of your own. stint has a table of prices; a file of yours adds models and replaces
prices: $XDG_CONFIG_HOME/stint/prices.json, or ~/.config/stint/prices.json.`,
		Example: "  stint price\n  stint price ls 'claude-*'\n  stint price show gpt-5.4\n  stint price set my-model --input 3 --output 15 --cache-read 0.30",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return list(cmd, nil)
		},
	}
	cmd.PersistentFlags().StringVar(&o.file, "file", "", "the file with your prices, instead of the usual one")
	cmd.AddCommand(&cobra.Command{
		Use: "ls [MODEL...]", Short: "List the prices", RunE: list,
		Long:    "List the prices of all models, or of those that are named; * stands for anything. FROM is the\nversion of the table that has the price; it is recorded with each amount.",
		Example: "  stint price ls\n  stint price ls 'claude-*' gpt-5.4\n  stint price ls --json",
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeModels(&o, false, args, prefix)
		},
	}, &cobra.Command{
		Use: "show MODEL", Short: "Print what a model costs, and which table says so", Args: exactly(1, "one model"),
		Example: "  stint price show gpt-5.4\n  stint price show claude-sonnet-4-5-20250929 --json",
		RunE:    func(_ *cobra.Command, args []string) error { return a.priceShow(&o, args[0]) },
		ValidArgsFunction: one(func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeModels(&o, false, args, prefix)
		}),
	}, a.priceSetCommand(&o), &cobra.Command{
		Use: "unset MODEL", Short: "Take a price of yours away", Args: exactly(1, "one model"),
		Long:    "Take the price of a model out of your file. If stint's own table has one, that holds again.",
		Example: "  stint price unset my-model\n  stint price unset 'my-*'",
		RunE:    func(_ *cobra.Command, args []string) error { return a.priceUnset(&o, args[0]) },
		ValidArgsFunction: one(func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeModels(&o, true, args, prefix)
		}),
	})
	return cmd
}

func (a *app) priceSetCommand(o *priceOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set MODEL", Short: "Give a model a price of your own", Args: exactly(1, "one model"),
		Long: `Give a model a price of your own, in US dollars per million tokens; it replaces all
prices that the model had. A * in MODEL stands for anything; a name without one also
means the model's dated releases. Amounts that are recorded already do not change.`,
		Example: "  stint price set my-model --input 3 --output 15\n  stint price set my-model --input 3 --output 15 --cache-read 0.30 --cache-write 3.75\n  stint price set 'local/*' --input 0 --output 0 --file prices.json",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.priceSet(cmd, o, args[0]) },
		ValidArgsFunction: one(func(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return a.completeModels(o, false, args, prefix)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.input, "input", "", "US dollars per million tokens of the prompt")
	f.StringVar(&o.output, "output", "", "US dollars per million tokens of the answer")
	f.StringVar(&o.cacheRead, "cache-read", "", "of the prompt, what comes from a cache (default: as --input)")
	f.StringVar(&o.cacheWrite, "cache-write", "", "of the prompt, what goes into a cache (default: as --input)")
	return cmd
}

// pricesPath is the path of the user's file; empty if nothing says where it is.
func (a *app) pricesPath(o *priceOptions) string {
	if o.file != "" {
		return o.file
	}
	if dir := a.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) { // the XDG specification ignores others
		return filepath.Join(dir, "stint", "prices.json")
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := a.getenv(name); filepath.IsAbs(home) {
			return filepath.Join(home, ".config", "stint", "prices.json")
		}
	}
	return ""
}

// prices reads the table that applies. A file that is named has to be there.
func (a *app) prices(o *priceOptions) (*price.Table, error) {
	path, read := a.pricesPath(o), price.Open
	switch {
	case path == "":
		return price.Default()
	case o.file != "":
		read = price.Load
	}
	t, err := read(path)
	var known *stint.Error
	if err == nil || errors.As(err, &known) {
		return t, err
	}
	e := &stint.Error{Code: stint.Unavailable, Err: err, Hint: "check that this user may read the file; --file names another"}
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Hint = stint.NotFound, "stint price set MODEL --input 3 --output 15 --file FILE makes one"
	}
	return nil, e
}

// priceRates are prices as JSON.
type priceRates struct {
	Input      stint.Money `json:"input"`
	Output     stint.Money `json:"output"`
	CacheRead  stint.Money `json:"cache_read"`
	CacheWrite stint.Money `json:"cache_write"`
}

type priceLong struct {
	Over int64 `json:"over,string"`
	priceRates
}

// priceItem is what a model costs.
type priceItem struct {
	Model string `json:"model"`
	Name  string `json:"name"` // in the table
	priceRates
	Long    *priceLong `json:"long"`
	Version string     `json:"version"`
	File    *string    `json:"file"` // null for stint's own table
}

// newPriceItem says what a model costs; nil if no table has it.
func newPriceItem(t *price.Table, model string) *priceItem {
	row, name, by := t.Find(model)
	if by == nil {
		return nil
	}
	it := priceItem{Model: model, Name: name, priceRates: priceRates(row.Rates), File: priceFile(by)}
	it.Version, _ = by.Version()
	if row.Long != nil {
		it.Long = &priceLong{row.Over, priceRates(*row.Long)}
	}
	return &it
}

func priceFile(t *price.Table) *string {
	if from := t.From(); from != "" {
		return &from
	}
	return nil
}

// priceTable is a table without its rows.
type priceTable struct {
	Version string  `json:"version"`
	Date    string  `json:"date"`
	File    *string `json:"file"`
}

// modelNames are the names of all models in t and those under it, each once.
func modelNames(t *price.Table) (names []string) {
	seen := map[string]bool{}
	for ; t != nil; t = t.Under() {
		for _, row := range t.Rows() {
			for _, n := range row.Names {
				if !seen[n] {
					seen[n] = true
					names = append(names, n)
				}
			}
		}
	}
	return names
}

func (a *app) priceList(o *priceOptions, args []string) error {
	t, err := a.prices(o)
	if err != nil {
		return err
	}
	models := args
	if len(args) == 0 {
		models = modelNames(t)
	} else if models, err = chosenModels(t, args); err != nil {
		return err
	}
	items := make([]priceItem, 0, len(models))
	for _, m := range models {
		items = append(items, *newPriceItem(t, m))
	}
	var tables []priceTable
	for ; t != nil; t = t.Under() {
		version, date := t.Version()
		tables = append(tables, priceTable{version, date, priceFile(t)})
	}
	if a.json {
		return a.printJSON(struct {
			Schema string       `json:"schema"`
			Tables []priceTable `json:"tables"`
			Items  []priceItem  `json:"items"`
		}{"stint.price.list/1", tables, items})
	}
	a.priceTable(items)
	a.printf("\nUS dollars per million tokens.\n")
	for _, t := range tables {
		a.printf("%s of %s: %s\n", term.Line(t.Version), t.Date, whose(t.File))
	}
	return nil
}

// chosenModels are the models that somebody named, and those of the table that fit a name
// with a *.
func chosenModels(t *price.Table, args []string) (models []string, err error) {
	for _, arg := range args {
		var fit []string
		if strings.Contains(arg, "*") {
			fit = slices.DeleteFunc(modelNames(t), func(n string) bool { return !price.Fits(arg, n) })
		}
		if len(fit) == 0 {
			if _, _, by := t.Find(arg); by == nil {
				return nil, noPrice(arg)
			}
			fit = []string{arg}
		}
		models = append(models, slices.DeleteFunc(fit, func(n string) bool { return slices.Contains(models, n) })...)
	}
	return models, nil
}

func noPrice(model string) error {
	e := stint.NotFound.Errorf("", "no table has a price for %q", model)
	e.Hint = "stint price set MODEL --input 3 --output 15  gives it one, in US dollars per million tokens; stint price ls lists the models"
	return e
}

// whose says in words whose table a file is.
func whose(file *string) string {
	if file == nil {
		return "stint's own table"
	}
	return term.Line(*file)
}

// priceTable prints prices as a table, those of long prompts on lines of their own.
func (a *app) priceTable(items []priceItem) {
	rows := [][]string{{"MODEL", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "FROM"}}
	add := func(name string, r priceRates, from string) {
		rows = append(rows, []string{term.Line(name), r.Input.String(), r.Output.String(), r.CacheRead.String(), r.CacheWrite.String(), term.Line(from)})
	}
	for i := range items {
		it := &items[i]
		from := it.Version
		if it.Name != it.Model {
			from += " " + it.Name
		}
		add(it.Model, it.priceRates, from)
		if it.Long != nil {
			add(fmt.Sprintf("  prompt over %d", it.Long.Over), it.Long.priceRates, from)
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], term.Width(cell))
		}
	}
	for _, row := range rows {
		last := len(row) - 1
		for i, cell := range row[:last] {
			a.printf("%s  ", term.Pad(cell, widths[i], i > 0))
		}
		a.printf("%s\n", row[last])
	}
}

func (a *app) priceShow(o *priceOptions, model string) error {
	t, err := a.prices(o)
	if err != nil {
		return err
	}
	it := newPriceItem(t, model)
	if it == nil {
		return noPrice(model)
	}
	var under *priceItem
	if it.File != nil {
		under = newPriceItem(t.Under(), model)
	}
	if a.json {
		return a.printJSON(struct {
			Schema string `json:"schema"`
			*priceItem
			Under *priceItem `json:"under"`
		}{"stint.price/1", it, under})
	}
	a.printf("%s · %s in version %s, %s\n", term.Line(it.Model), term.Line(it.Name), term.Line(it.Version), whose(it.File))
	a.priceLines("", it)
	if under != nil {
		a.priceLines("without your price: ", under)
	}
	a.printf("  US dollars per million tokens\n")
	return nil
}

// priceLines prints what a model costs, after a label.
func (a *app) priceLines(label string, it *priceItem) {
	line := func(label string, r priceRates) {
		a.printf("  %sinput %s, output %s, cache read %s, cache write %s\n", label, r.Input, r.Output, r.CacheRead, r.CacheWrite)
	}
	if line(label, it.priceRates); it.Long != nil {
		line(fmt.Sprintf("%sof a prompt over %d tokens: ", label, it.Long.Over), it.Long.priceRates)
	}
}

func (a *app) priceSet(cmd *cobra.Command, o *priceOptions, model string) error {
	var r price.Rates
	for _, f := range []struct {
		name, value string
		to, same    *stint.Money // same: what it is by default; nil if it has to be given
	}{{"input", o.input, &r.Input, nil}, {"output", o.output, &r.Output, nil}, {"cache-read", o.cacheRead, &r.CacheRead, &r.Input}, {"cache-write", o.cacheWrite, &r.CacheWrite, &r.Input}} {
		switch given := cmd.Flags().Changed(f.name); {
		case given:
			if f.to.UnmarshalText([]byte(f.value)) != nil || *f.to < 0 {
				return usage(fmt.Errorf("--%s %q: an amount of dollars per million tokens like 3 or 0.25, with at most nine places", f.name, f.value))
			}
		case f.same == nil:
			return misused(cmd, "%q needs --%s, in US dollars per million tokens; 0 is one", model, f.name)
		default:
			*f.to = *f.same
		}
	}
	return a.priceChange(o, model, func(path, date string) (bool, error) { return price.Set(path, model, r, date) })
}

func (a *app) priceUnset(o *priceOptions, model string) error {
	return a.priceChange(o, model, func(path, date string) (bool, error) {
		changed, err := price.Unset(path, model, date)
		if err == nil && !changed {
			e := stint.NotFound.Errorf("", "%s has no price for %q", path, model)
			e.Hint = "stint price ls shows in FROM which table a price is from"
			err = e
		}
		return changed, err
	})
}

// priceChange changes the user's file and says what is different.
func (a *app) priceChange(o *priceOptions, model string, change func(path, date string) (bool, error)) error {
	path := a.pricesPath(o)
	if path == "" {
		e := stint.Invalid.Errorf("", "nothing says where your prices are")
		e.Hint = "set HOME or XDG_CONFIG_HOME, or give --file FILE"
		return e
	}
	t, err := price.Open(path)
	var before, after *priceItem
	if err == nil {
		before = newPriceItem(t, model)
	}
	var made []string
	if err == nil && o.file == "" {
		made, err = makeFolders(filepath.Dir(path))
	}
	changed := false
	if err == nil {
		changed, err = change(path, time.Now().Format(time.DateOnly))
	}
	if err == nil {
		t, err = price.Open(path)
	}
	if err != nil {
		removeFolders(made)
		var known *stint.Error
		if !errors.As(err, &known) {
			err = &stint.Error{Code: stint.Unavailable, Err: err, Hint: "check that this user may read and write the file; --file names another"}
		}
		return err
	}
	after = newPriceItem(t, model)
	version, _ := t.Version()
	if a.json {
		return a.printJSON(struct {
			Schema  string     `json:"schema"`
			File    string     `json:"file"`
			Version string     `json:"version"`
			Changed bool       `json:"changed"`
			Model   string     `json:"model"`
			Before  *priceItem `json:"before"`
			After   *priceItem `json:"after"`
		}{"stint.price.change/1", path, version, changed, model, before, after})
	}
	line := func(label string, it *priceItem) {
		if it == nil {
			a.printf("  %sno price\n", label)
			return
		}
		a.priceLines(label, it)
	}
	if !changed {
		a.printf("%s has this price already\n", term.Line(model))
		line("", after)
		return nil
	}
	a.printf("%s · version %s in %s\n", term.Line(model), term.Line(version), term.Line(path))
	line("before: ", before)
	line("now: ", after)
	return nil
}

// completeModels offers models with what they cost, or those of the user's file alone.
func (a *app) completeModels(o *priceOptions, own bool, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	t, err := a.prices(o)
	if err != nil {
		return nil, no
	}
	for _, name := range modelNames(t) {
		it := newPriceItem(t, name)
		if strings.HasPrefix(name, prefix) && !slices.Contains(args, name) && (!own || it.File != nil && it.Name == name) {
			out = append(out, cobra.CompletionWithDesc(name, "input "+it.Input.String()+", output "+it.Output.String()))
		}
	}
	return out, no
}

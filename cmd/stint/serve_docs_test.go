package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/server.md has a row for each flag of stint serve, with its variable and default,
// and for no other; the variables are those that the help names.
func TestServerPageHasEachFlag(t *testing.T) {
	b, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ variable, preset string }
	rows := map[string]row{}
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)[^`]*` \\| (?:`(\\w+)`)? *\\| (?:`([^`]*)`)?").FindAllStringSubmatch(string(b), -1) {
		rows[m[1]] = row{m[2], m[3]}
	}
	serve := (&app{}).serveCommand()
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		r, ok := rows[f.Name]
		delete(rows, f.Name)
		if !ok {
			t.Errorf("docs/server.md has no row for --%s", f.Name)
			return
		}
		var o serveOptions
		byEnvironment := &cobra.Command{Use: "serve"}
		o.flags(byEnvironment)
		got := byEnvironment.Flags().Lookup(f.Name)
		if got == nil {
			if r.variable != "" {
				t.Errorf("--%s has no variable, and the page says %s", f.Name, r.variable)
			}
			return
		}
		value := map[string]string{"bool": "true", "duration": "7s"}[f.Value.Type()]
		if value == "" {
			value = "given"
		}
		env := map[string]string{"STINT_TLS_CERT": "c", "STINT_TLS_KEY": "k"} // they belong together
		env[r.variable] = value
		if err := o.environment(byEnvironment, func(k string) string { return env[k] }); err != nil || strings.Trim(got.Value.String(), "[]") != value {
			t.Errorf("%s sets --%s to %s: %v", r.variable, f.Name, got.Value, err)
		}
		if !strings.Contains(serve.Long, r.variable) {
			t.Errorf("the help does not name %s", r.variable)
		}
		if f.DefValue != "[]" && f.DefValue != "" && r.preset != f.DefValue {
			t.Errorf("--%s is %q by default, and the page says %q", f.Name, f.DefValue, r.preset)
		}
	})
	for name := range rows {
		t.Errorf("docs/server.md has --%s, which is no flag", name)
	}
	for _, name := range regexp.MustCompile(`STINT_[A-Z_]+`).FindAllString(serve.Long, -1) {
		if !strings.Contains(string(b), "`"+name+"`") {
			t.Errorf("the help has %s, and the page has not", name)
		}
	}
}

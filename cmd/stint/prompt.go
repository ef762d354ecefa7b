package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/price"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// promptOptions are the flags that make an agent where none is named.
type promptOptions struct {
	model  string
	system string
	tools  []string
}

func (o *promptOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "without AGENT: the model, `PROVIDER/MODEL` (default: $STINT_MODEL)")
	f.StringVar(&o.system, "system", "", "without AGENT: instructions for the model")
	f.StringSliceVar(&o.tools, "tools", nil, "without AGENT: files, files:rw, sleep, ask, mcp:PATH, with commas between them")
}

// given names the first of the flags that is set, empty if none is.
func (o *promptOptions) given(cmd *cobra.Command) string {
	for _, name := range []string{"model", "system", "tools"} {
		if cmd.Flags().Changed(name) {
			return "--" + name
		}
	}
	return ""
}

// promptAgent is the agent that flags make. The providers are those of the stint.yaml in
// reach, which therefore has to be sound: it may say that a key goes elsewhere.
func (a *app) promptAgent(o *promptOptions) (config.Agent, error) {
	dir, err := a.getwd()
	if err != nil {
		return config.Agent{}, &stint.Error{Code: stint.Invalid, Op: "run", Err: err}
	}
	file, err := a.agentsConfig()
	if err != nil {
		return config.Agent{}, err
	}
	name := or(o.model, a.getenv("STINT_MODEL"))
	if name == "" {
		e := stint.Invalid.Errorf("run", "no model is chosen")
		e.Hint = "give --model PROVIDER/MODEL, such as anthropic/claude-sonnet-5 or openai/gpt-5.6, or set STINT_MODEL; the providers here are " + strings.Join(file.Providers(), ", ")
		return config.Agent{}, e
	}
	return config.Prompt(file, dir, name, o.system, o.tools)
}

// modelName is what an agent's model is called, empty where only its script says it.
func modelName(c *config.Agent) string {
	if c.LLM == nil || c.LLM.Provider.API == config.Script {
		return ""
	}
	return c.LLM.ModelName()
}

// runPrompt runs a session of an agent that flags make.
func (a *app) runPrompt(ctx context.Context, o *requestOptions, p *promptOptions, quiet bool) error {
	c, err := a.promptAgent(p)
	if err != nil {
		return err
	}
	return a.runNew(ctx, o, nil, c, manner{quiet: quiet, text: true})
}

// printText prints what the session ended with, and nothing where it ended otherwise. On
// a terminal it is not printed again below where it was shown as it came.
func (f *foreground) printText(row *stint.Row) error {
	if row.Session.Status != stint.Completed {
		return nil
	}
	r, err := view.NewResult(context.Background(), f.site.store, row, -1)
	if err != nil {
		return err
	}
	var said struct{ Text *string }
	text := string(r.Result)
	if json.Unmarshal(r.Result, &said) == nil && said.Text != nil {
		text = *said.Text
	}
	if f.app.style().TTY {
		if f.live != nil && f.live.showed(text) {
			return nil
		}
		text = term.Escape(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err = io.WriteString(f.app.out, text); errors.Is(err, syscall.EPIPE) {
		return nil // who asked has read enough
	}
	return err
}

// vendors are whose models the table of prices names, by how the names begin.
func vendors() map[string]string {
	return map[string]string{"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
}

// completeModel offers models that are known by their price, and the providers of
// stint.yaml, whose models nobody knows.
func (a *app) completeModel(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	file, err := a.agentsConfig()
	if err != nil {
		file = nil
	}
	var out []cobra.Completion
	directive := cobra.ShellCompDirectiveNoFileComp
	if table, err := a.prices(&priceOptions{}); err == nil {
		for t := table; t != nil; t = t.Under() {
			out = append(out, modelsOf(t.Rows(), prefix)...)
		}
	}
	for _, name := range file.Providers() {
		if word := name + "/"; strings.HasPrefix(word, prefix) && !slices.ContainsFunc(out, func(s string) bool { return strings.HasPrefix(s, word) }) {
			out, directive = append(out, word), directive|cobra.ShellCompDirectiveNoSpace
		}
	}
	if strings.HasPrefix(prefix, "script/") { // what follows is a file, which a shell completes from its own word
		return nil, cobra.ShellCompDirectiveDefault
	}
	slices.Sort(out)
	return slices.Compact(out), directive
}

// modelsOf are the models of a table of prices, as --model names them.
func modelsOf(rows []price.Row, prefix string) (out []cobra.Completion) {
	for i := range rows {
		for _, name := range rows[i].Names {
			for begin, provider := range vendors() {
				if word := provider + "/" + name; strings.HasPrefix(name, begin) && strings.HasPrefix(word, prefix) {
					out = append(out, word)
				}
			}
		}
	}
	return out
}

// completeTools offers what can follow the last comma of --tools.
func (a *app) completeTools(_ *cobra.Command, _ []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	before := prefix[:strings.LastIndexByte(prefix, ',')+1]
	given := strings.Split(before, ",")
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	for _, c := range []struct{ word, what string }{
		{"ask", "the model may ask you"}, {"files", "read files below this folder"}, {"files:rw", "and write them"},
		{"mcp:", "the servers of a .mcp.json"}, {"sleep", "the model may wait"},
	} {
		kind, _, _ := strings.Cut(c.word, ":")
		taken := slices.ContainsFunc(given, func(g string) bool { return g == kind || kind == "files" && g == "files:rw" })
		if word := before + c.word; strings.HasPrefix(word, prefix) && !taken {
			out = append(out, cobra.CompletionWithDesc(word, c.what))
		}
	}
	return out, directive
}

// noPrompt refuses flags that make an agent where there is one.
func (o *promptOptions) noPrompt(cmd *cobra.Command, what string) error {
	if flag := o.given(cmd); flag != "" {
		return misused(cmd, "%s is for a session without an agent; %s", flag, what)
	}
	return nil
}

// promptMissing says how a session without an agent is begun.
func promptMissing(cmd *cobra.Command) error {
	return misused(cmd, "give one agent, or -- and a command, or -p TEXT for a model without an agent")
}

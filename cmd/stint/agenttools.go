package main

import (
	"cmp"
	"context"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/tool"
)

func (a *app) agentToolsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tools AGENT", Short: "List the tools of an agent as its model sees them",
		Long: `List the tools that the model of an agent is given: what calling one again means,
whether a person is asked before, whether it may run beside others, whether its output
counts as coming from outside, and where it is from. MCP servers are started for it and
ended. What nobody has accepted of them yet is listed, and not accepted by that.`,
		Example: "  stint agent tools triage\n  stint agent tools triage --json", Args: exactly(1, "one agent"), ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error { return a.agentTools(cmd.Context(), args[0]) },
	}
}

// toolItem is a tool as JSON.
type toolItem struct {
	Name        string       `json:"name"`
	Effect      stint.Effect `json:"effect"`
	Approve     string       `json:"approve"` // always, never, or policy
	Parallel    bool         `json:"parallel"`
	Taints      bool         `json:"taints"`
	Poll        bool         `json:"poll"`
	TimeoutMS   *int64       `json:"timeout_ms"`
	Source      string       `json:"source"`
	Description string       `json:"description"` // its first line
}

func (a *app) agentTools(ctx context.Context, name string) error {
	c, err := a.configured(name)
	if err != nil {
		return err
	}
	if c.Kind != config.KindLLM {
		e := stint.Invalid.Errorf("agent "+name, "it is of kind %s: what tools it has is its own affair", c.Kind)
		e.Hint = "agents of kind llm have tools in stint.yaml; stint agent ls lists the agents"
		return e
	}
	w := &wiring{getenv: os.LookupEnv, look: true}
	defer w.close()
	var set *tool.Set
	if err := w.until(ctx, func() (err error) { set, err = w.tools(&c, &pin{}); return err }); err != nil {
		return err
	}
	items := []toolItem{}
	for _, t := range set.Tools() {
		items = append(items, itemOf(&t))
	}
	if a.json {
		return a.printJSON(struct {
			Schema string     `json:"schema"`
			Agent  string     `json:"agent"`
			Items  []toolItem `json:"items"`
		}{"stint.agent.tools/1", c.Name, items})
	}
	a.printTools(items)
	return nil
}

func itemOf(t *tool.Tool) toolItem {
	it := toolItem{Name: t.Name, Effect: t.Class(), Approve: cmp.Or(string(t.Approve), "policy"), Parallel: t.Parallel, Taints: t.Taints, Poll: t.Poll,
		Source: cmp.Or(t.Source, "stint"), Description: firstLine(t.Description, 200)}
	if t.Timeout > 0 {
		ms := t.Timeout.Milliseconds()
		it.TimeoutMS = &ms
	}
	return it
}

func (a *app) printTools(items []toolItem) {
	if len(items) == 0 {
		a.printf("it has no tools\n")
		return
	}
	rows := [][]string{{"TOOL", "EFFECT", "APPROVE", "PARALLEL", "TAINTS", "FROM", "WHAT"}}
	word := map[bool]string{true: "yes", false: "no"}
	for _, it := range items {
		rows = append(rows, []string{term.Line(it.Name), string(it.Effect), it.Approve, word[it.Parallel], word[it.Taints], term.Line(it.Source), term.Line(it.Description)})
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			width[i] = max(width[i], term.Width(text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, text := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(term.Pad(text, width[i], false))
		}
		a.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
}

// firstLine is the first line of a text that says something, of at most n bytes.
func firstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if s = strings.TrimSpace(s); len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

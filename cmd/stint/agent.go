package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) agentCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "agent", Short: "Look at the agents of stint.yaml",
		Example: "  stint agent ls\n  stint agent show triage\n  stint agent tools triage\n  stint agent validate",
	}, a.agentListCommand(), a.agentShowCommand(), a.agentValidateCommand(), a.agentDiffCommand(), a.agentToolsCommand(), a.agentAcceptCommand())
}

func (a *app) agentListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the agents", Args: noArgs, Example: "  stint agent ls --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			items, err := a.agentList(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Schema view.Schema  `json:"schema"`
					Items  []view.Agent `json:"items"`
				}{view.SchemaAgents, items})
			}
			width := len("AGENT")
			for _, it := range items {
				width = max(width, len(it.Name))
			}
			a.printf("%s  %-5s %-8s  %s\n", term.Pad("AGENT", width, false), "KIND", "SUM", "WHAT")
			for _, it := range items {
				what := it.Description
				if what == "" {
					what = cmp.Or(it.Model, it.URL, strings.Join(it.Command, " "))
				}
				a.printf("%s  %-5s %-8s  %s\n", term.Pad(it.Name, width, false), it.Kind, it.Sum[:8], term.Line(what))
			}
			return nil
		},
	}
}

// agentList are the agents of the stint.yaml here, or of the server that was chosen.
func (a *app) agentList(ctx context.Context) ([]view.Agent, error) {
	far, err := a.chosen()
	if err != nil {
		return nil, err
	}
	if far == nil {
		file, err := a.mustConfig()
		if err != nil {
			return nil, err
		}
		return agentItems(file), nil
	}
	c, err := far.client(a)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []view.Agent }
	err = c.Get(ctx, "/v1/agents", nil, &list)
	return list.Items, err
}

// agentShown is an agent as it would be pinned, and its limit of money.
func (a *app) agentShown(ctx context.Context, name string) (c config.Agent, money *costLimit, err error) {
	far, err := a.chosen()
	if err != nil {
		return c, nil, err
	}
	if far == nil {
		if c, err = a.configured(name); err == nil {
			money, err = a.costLimit(&c)
		}
		return c, money, err
	}
	to, err := far.client(a)
	if err != nil {
		return c, nil, err
	}
	var doc struct {
		Definition json.RawMessage
		Cost       *costLimit `json:"cost_limit"`
	}
	if err = to.Get(ctx, "/v1/agents/"+url.PathEscape(name), nil, &doc); err == nil {
		c, err = config.FromDefinition(doc.Definition)
	}
	return c, doc.Cost, err
}

// agentItems are the agents of a stint.yaml, by name.
func agentItems(file *config.File) []view.Agent {
	items := []view.Agent{}
	for _, name := range slices.Sorted(maps.Keys(file.Agents)) {
		c := file.Agents[name]
		_, sum := c.Definition()
		it := view.Agent{Name: name, Kind: c.Kind, Command: append([]string{}, c.Command...), Sum: sum.String(), Description: c.Description}
		if c.LLM != nil {
			it.Model = c.LLM.Written(filepath.Dir(file.Path))
		}
		if c.HTTP != nil {
			it.URL = c.HTTP.URL
		}
		items = append(items, it)
	}
	return items
}

func (a *app) agentShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Short: "Print an agent as it would be pinned, defaults filled in",
		Example: "  stint agent show triage", Args: exactly(1, "one agent"), ValidArgsFunction: a.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, money, err := a.agentShown(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			def, sum := c.Definition()
			if a.json {
				return a.printJSON(struct {
					Schema     string          `json:"schema"`
					Sum        stint.Hash      `json:"definition_sum"`
					Definition json.RawMessage `json:"definition"`
					Cost       *costLimit      `json:"cost_limit"` // of a session that is started now
				}{"stint.agent/1", sum, def, money})
			}
			a.printf("%s · definition %s\n", c.Name, sum)
			members := c.Members()
			width := 0
			for _, m := range members {
				width = max(width, term.Width(term.Line(m.Name)))
			}
			for _, m := range members[1:] { // the name stands above
				if m.Name == "limits.cost" {
					m.Value = money.line()
				}
				a.printf("  %s  %s\n", term.Pad(term.Line(m.Name), width, false), term.Line(m.Value))
			}
			return nil
		},
	}
}

func (a *app) agentValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate [FILE]", Short: "Check a stint.yaml",
		Long:    "Check a stint.yaml and report everything that is wrong with it, with line, column and what was expected.",
		Example: "  stint agent validate\n  stint agent validate deploy/stint.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			var file *config.File
			var err error
			switch len(args) {
			case 0:
				file, err = a.mustConfig()
			case 1:
				file, err = config.Load(args[0])
			default:
				return misused(cmd, "give one file, or none")
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Schema    string `json:"schema"`
					Path      string `json:"path"`
					Agents    int    `json:"agents"`
					Hooks     int    `json:"hooks"`
					Schedules int    `json:"schedules"`
				}{"stint.validate/1", file.Path, len(file.Agents), len(file.Hooks), len(file.Schedules)})
			}
			more := ""
			if n := len(file.Hooks); n > 0 {
				more += ", " + counted(n, "hook")
			}
			if n := len(file.Schedules); n > 0 {
				more += ", " + counted(n, "schedule")
			}
			a.printf("%s is sound: %s%s\n", term.Escape(file.Path), counted(len(file.Agents), "agent"), more)
			return nil
		},
	}
}

func (a *app) agentDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff SESSION", Short: "Show how an agent differs from the one a session is pinned to",
		Example: "  stint agent diff triage-1129", Args: exactly(1, "one session"), ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.store.Close()
			row, _, err := view.Find(cmd.Context(), s.store, args[0], time.Now())
			if err != nil {
				return err
			}
			was, old, err := s.pinOf(cmd.Context(), row.Session.ID)
			if err != nil {
				return err
			}
			now, err := a.configured(old.Name)
			if err != nil {
				return err
			}
			changes := config.Diff(old, now)
			if spec, _, err := s.wire(nil).spec(old); err == nil {
				for _, name := range drifted(was.Files, spec) {
					changes = append(changes, config.Change{Member: name, From: was.Files[name].String()[:12], To: "changed"})
				}
			}
			return a.printDrift(&row, changes)
		},
	}
}

func (a *app) printDrift(row *stint.Row, changes []config.Change) error {
	if a.json {
		if changes == nil {
			changes = []config.Change{}
		}
		return a.printJSON(struct {
			Schema  string          `json:"schema"`
			Session stint.ID        `json:"session"`
			Changes []config.Change `json:"changes"`
		}{"stint.agent.diff/1", row.Session.ID, changes})
	}
	if len(changes) == 0 {
		a.printf("%s is as %s (%s) has it\n", row.Session.Agent.Name, row.Session.Name, row.Short)
	}
	for _, c := range changes {
		a.printf("%s\n", term.Line(c.String()))
	}
	return nil
}

// mustConfig is agentsConfig for commands that cannot do without.
func (a *app) mustConfig() (*config.File, error) {
	file, err := a.agentsConfig()
	if err == nil && file == nil {
		e := stint.NotFound.Errorf("config", "there is no stint.yaml in this folder or above")
		e.Hint = "stint init makes one"
		return nil, e
	}
	return file, err
}

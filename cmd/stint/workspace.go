package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
)

func (a *app) workspaceCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "workspace", Short: "See the git worktrees of sessions, and remove them",
		Long: `The sessions of an agent with workspace: worktree each work in a git worktree of their
own, with a branch for each of their lines and a commit for each of their loops. A
restart from an earlier loop begins with the files of that loop. docs/workspaces.md
says what is kept, and where.`,
		Example: "  stint workspace ls\n  stint workspace show x81d\n  stint workspace diff x81d 2 5\n  stint workspace rm x81d",
	}, a.workspaceListCommand(), a.workspaceShowCommand(), a.workspaceDiffCommand(), a.workspaceRemoveCommand())
}

// repoOf opens the repository that a session works in; nil: its agent has no workspace.
func (a *app) repoOf(ctx context.Context, s *site, row *stint.Row) (*worktree.Repo, error) {
	_, c, err := s.pinOf(ctx, row.Session.ID)
	if err != nil || c.Workspace == nil {
		return nil, err
	}
	return a.openWorkspace(ctx, &c)
}

func (a *app) openWorkspace(ctx context.Context, c *config.Agent) (*worktree.Repo, error) {
	spec, err := workspaceOf(c, a.getenv)
	if err != nil {
		return nil, err
	}
	return worktree.Open(ctx, spec)
}

// atWork finds a session, and the repository that it works in.
func (a *app) atWork(ctx context.Context, address string, do func(row *stint.Row, place view.Place, r *worktree.Repo) error) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	r, err := a.repoOf(ctx, s, &row)
	if err != nil {
		return err
	}
	if r == nil {
		e := stint.NotFound.Errorf("workspace", "the agent %s has no workspace of its own: its sessions work in its folder", row.Session.Agent.Name)
		e.Session, e.Hint = row.Session.ID, "write workspace: worktree in its stint.yaml; sessions that begin then have one"
		return e
	}
	return do(&row, place, r)
}

// workspaceItem is the worktree of a session in a list.
type workspaceItem struct {
	Session stint.ID     `json:"session"`
	Name    string       `json:"name"`
	Status  stint.Status `json:"status"` // empty: the store does not have the session
	Path    string       `json:"path"`
	Branch  string       `json:"branch"`
	Line    int          `json:"line"`
	Loop    int          `json:"loop"`
	short   string
}

func (a *app) workspaceListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the worktrees of sessions", Args: noArgs, Example: "  stint workspace ls\n  stint workspace ls --json",
		Long: "List the worktrees that are in the repositories which agents of stint.yaml work in.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			file, err := a.agentsConfig()
			if err != nil {
				return err
			}
			s, err := a.look(ctx)
			if err != nil {
				return err
			}
			defer s.store.Close()
			items, err := a.worktrees(ctx, s, file)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, i := range items {
				status := string(i.Status)
				if status == "" {
					status = "unknown"
				}
				rows = append(rows, []string{i.short, i.Name, status, strconv.Itoa(i.Line), strconv.Itoa(i.Loop), i.Path})
			}
			return a.printTable(table{
				doc: struct {
					Schema     string          `json:"schema"`
					Workspaces []workspaceItem `json:"workspaces"`
				}{"stint.workspace.list/1", items},
				none: "no session has a worktree", heads: []string{"ID", "NAME", "STATUS", "LINE", "LOOP", "PATH"}, rows: rows,
			})
		},
	}
}

// worktrees lists the worktrees in the repositories of all agents.
func (a *app) worktrees(ctx context.Context, s *site, file *config.File) ([]workspaceItem, error) {
	items := []workspaceItem{}
	if file == nil {
		return items, nil
	}
	seen := map[stint.ID]bool{}
	for _, name := range slices.Sorted(maps.Keys(file.Agents)) {
		c := file.Agents[name]
		if c.Workspace == nil {
			continue
		}
		r, err := a.openWorkspace(ctx, &c)
		if err != nil {
			return nil, err
		}
		ids, err := r.Sessions()
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if seen[id] { // two agents of one repository
				continue
			}
			seen[id] = true
			info, err := r.Info(ctx, id)
			if err != nil {
				return nil, err
			}
			row, err := s.session(ctx, id)
			if err != nil {
				return nil, err
			}
			item := workspaceItem{Session: id, Name: row.Session.Name, Path: info.Path, Branch: info.Branch, Line: info.Line, Loop: info.Loop, short: row.Short}
			if item.short == "" {
				item.short = id.String()
			} else {
				item.Status, _ = row.Status()
			}
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(x, y workspaceItem) int { return slices.Compare(x.Session[:], y.Session[:]) })
	return items, nil
}

func (a *app) workspaceShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show SESSION", Short: "Show the worktree of a session, and its commits", Args: exactly(1, "one session"),
		Example: "  stint workspace show x81d\n  stint workspace show x81d --json",
		Long: `Show where a session works, the commits of its loops, what was found in the worktree
and is no loop's, and which files differ from those at the newest checkpoint.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.atWork(ctx, args[0], func(row *stint.Row, _ view.Place, r *worktree.Repo) error {
				info, err := r.Info(ctx, row.Session.ID)
				if err != nil {
					return err
				}
				changed, err := r.Since(ctx, row.Session.ID, row.Session.At.Line, row.Session.Checkpoint.Loop)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						Schema string `json:"schema"`
						worktree.Info
						Changed worktree.Changes `json:"changed"`
					}{"stint.workspace/1", info, changed})
				}
				return a.printWorkspace(row, &info, &changed)
			})
		},
	}
}

func (a *app) printWorkspace(row *stint.Row, info *worktree.Info, changed *worktree.Changes) error {
	if info.Path == "" {
		a.printf("%s has no worktree now; its next loop makes one.\n", row.Short)
	} else {
		a.printf("worktree  %s\nbranch    %s\n", info.Path, info.Branch)
	}
	var rows [][]string
	for _, k := range info.Loops {
		rows = append(rows, []string{strconv.Itoa(k.Line), strconv.Itoa(k.Loop), k.Commit[:12], ""})
	}
	for _, k := range info.Left {
		rows = append(rows, []string{strconv.Itoa(k.Line), strconv.Itoa(k.Loop), k.Commit[:12], "left behind: " + k.Ref})
	}
	if len(rows) > 0 {
		a.printf("\n")
		if err := view.WriteTable(a.out, a.style(), []string{"LINE", "LOOP", "COMMIT", ""}, rows); err != nil {
			return err
		}
	}
	if info.Path == "" {
		return nil
	}
	a.printf("\nFiles that differ from those at the end of loop %d", row.Session.Checkpoint.Loop)
	return a.printChanges(changed)
}

// printChanges prints the files behind what was begun to be said of them.
func (a *app) printChanges(c *worktree.Changes) error {
	switch {
	case !c.Known:
		a.printf(": nobody knows, %s.\n", c.Why)
		return nil
	case len(c.Files) == 0:
		a.printf(": none.\n")
		return nil
	}
	a.printf(":\n\n")
	var rows [][]string
	for _, f := range c.Files {
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			lines = "binary"
		}
		rows = append(rows, []string{string(f.Kind), lines, f.Name})
	}
	return view.WriteTable(a.out, a.style(), []string{"", "LINES", "FILE"}, rows)
}

func (a *app) workspaceDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff SESSION [A B]", Short: "List the files that differ: since the newest checkpoint, or between two loops",
		Long: `List the files of a session that differ from those at its newest checkpoint; with two
loops, those that differ between the ends of them. Loop 0 is how the files were when the
session began. SESSION/LINE is for the loops of a line that the session left. What is in
the files git shows: the commits are on the branch stint/ID/LINE.`,
		Example: "  stint workspace diff x81d\n  stint workspace diff x81d 2 5\n  stint workspace diff x81d/0 2 5 --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 3 {
				return misused(cmd, "%s takes one session, and two loops or none", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var loops []int
			for _, arg := range args[1:] {
				n, err := strconv.Atoi(arg)
				if err != nil || n < 0 {
					return misused(cmd, "a loop is a number, not %q", arg)
				}
				loops = append(loops, n)
			}
			return a.atWork(ctx, args[0], func(row *stint.Row, place view.Place, r *worktree.Repo) error {
				line := place.Line
				if line < 0 {
					line = row.Session.At.Line
				}
				var c worktree.Changes
				var err error
				what := fmt.Sprintf("since the end of loop %d", row.Session.Checkpoint.Loop)
				if loops == nil {
					c, err = r.Since(ctx, row.Session.ID, row.Session.At.Line, row.Session.Checkpoint.Loop)
				} else {
					what = fmt.Sprintf("from loop %d to loop %d", loops[0], loops[1])
					c, err = r.Between(ctx, row.Session.ID, line, loops[0], loops[1])
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						Schema  string   `json:"schema"`
						Session stint.ID `json:"session"`
						worktree.Changes
					}{"stint.workspace.diff/1", row.Session.ID, c})
				}
				a.printf("Files that differ %s", what)
				return a.printChanges(&c)
			})
		},
	}
}

func (a *app) workspaceRemoveCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "rm SESSION", Short: "Remove the worktree of a session", Args: exactly(1, "one session"),
		Long: `Remove the worktree of a session that nobody is at work in. What is not committed there
is committed before, but for files that git ignores. The branches and commits stay, and
the next loop of the session, if there is one, makes a worktree again. --all removes the
branches and commits as well, of a session that has ended.`,
		Example: "  stint workspace rm x81d\n  stint workspace rm x81d --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.atWork(ctx, args[0], func(row *stint.Row, _ view.Place, r *worktree.Repo) error {
				if err := removable(row, all); err != nil {
					return err
				}
				if err := r.Remove(ctx, row.Session.ID, all); err != nil {
					return err
				}
				info, err := r.Info(ctx, row.Session.ID)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(struct {
						Schema string `json:"schema"`
						worktree.Info
					}{"stint.workspace/1", info})
				case all:
					a.printf("%s has no worktree, branch or commit any more.\n", row.Short)
				default:
					a.printf("%s has no worktree any more; its %d commits stay.\n", row.Short, len(info.Loops)+len(info.Left))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the branches and commits too; the session can then go back to its beginning only")
	return cmd
}

// removable refuses what would take files away under a session.
func removable(row *stint.Row, all bool) error {
	var e *stint.Error
	switch {
	case row.Live:
		e = stint.Conflict.Errorf("workspace", "a runner is at work in it")
		e.Hint = "stint pause " + row.Short + "  makes it wait"
	case all && !row.Session.Status.Ended():
		e = stint.Conflict.Errorf("workspace", "the session has not ended, and could not go on without its commits")
		e.Hint = "leave --all out, or end it: stint stop " + row.Short
	default:
		return nil
	}
	e.Session = row.Session.ID
	return e
}

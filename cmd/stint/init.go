package main

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

//go:embed presets
var presets embed.FS

// preset is an agent that stint init can write, with what has to be done before it runs.
type preset struct {
	name    string // of --agent
	agent   string // what it is called in the file
	program string // that has to be installed; empty: none
	login   string // how it gets its key
}

func allPresets() []preset {
	return []preset{
		{"codex", "codex", "codex", "codex login, or set CODEX_API_KEY"},
		{"claude", "claude", "claude", "log in once in claude itself, or set ANTHROPIC_API_KEY"},
		{"opencode", "opencode", "opencode", "opencode auth login"},
		{"gemini", "gemini", "gemini", "log in once in gemini itself, or set GEMINI_API_KEY"},
		{"llm", "assistant", "", "set ANTHROPIC_API_KEY, or change model in the file"},
	}
}

func presetNames() (names []string) {
	for _, p := range allPresets() {
		names = append(names, p.name)
	}
	return names
}

func (a *app) initCommand() *cobra.Command {
	var with string
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Write a stint.yaml with a working agent",
		Long: `Write a stint.yaml with one agent that works as it is, and a folder .stint for the
store that git ignores. What is there is left alone.

--agent writes another one: codex, claude, opencode or gemini is that command-line
agent, unmodified; llm is a model with tools. Comments in the file say what to change.`,
		Example: "  stint init && stint run hello\n  stint init --agent llm && stint run assistant -p \"what is in this folder?\"\n  stint init --agent codex work",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			switch len(args) {
			case 0:
			case 1:
				dir = args[0]
			default:
				return misused(cmd, "give one folder, or none")
			}
			p := preset{agent: "hello"}
			if cmd.Flags().Changed("agent") {
				i := slices.IndexFunc(allPresets(), func(p preset) bool { return p.name == with })
				if i < 0 {
					return misused(cmd, "--agent is one of %s, not %q", strings.Join(presetNames(), ", "), with)
				}
				p = allPresets()[i]
			}
			return a.init(dir, p)
		},
	}
	cmd.Flags().StringVar(&with, "agent", "", "the agent to write: "+strings.Join(presetNames(), ", "))
	return cmd
}

// text is the stint.yaml that has the agent.
func (p *preset) text() (string, error) {
	if p.name == "" {
		return config.Example(), nil
	}
	b, err := presets.ReadFile("presets/" + p.name + ".yaml")
	return string(b), err
}

func (a *app) init(dir string, p preset) error {
	if !filepath.IsAbs(dir) {
		wd, err := a.getwd()
		if err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "init", Err: err, Hint: "name the folder as an absolute path"}
		}
		dir = filepath.Join(wd, dir)
	}
	path := filepath.Join(dir, config.FileName)
	if _, err := os.Lstat(path); err == nil {
		e := stint.Exists.Errorf("init", "%s is there already", path)
		e.Hint = "stint agent validate checks it"
		return e
	}
	text, err := p.text()
	if err != nil {
		return err
	}
	if err := initFiles(dir, path, text); err != nil {
		return err
	}
	if _, err := config.Load(path); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema string `json:"schema"`
			Path   string `json:"path"`
		}{"stint.init/1", path})
	}
	a.printf("wrote %s\n", path)
	if p.program != "" {
		if _, err := exec.LookPath(p.program); err != nil {
			a.printf("  %s is not in PATH: install it, or name its path under command\n", p.program)
		}
	}
	if p.login != "" {
		a.printf("  %s\n  stint run %s -p \"what is in this folder?\"\n", p.login, p.agent)
		return nil
	}
	a.printf("  stint run %s\n", p.agent)
	return nil
}

// initFiles makes the folder, what git ignores in it, and stint.yaml; or nothing.
func initFiles(dir, path, text string) error {
	ignore := filepath.Join(dir, ".stint", ".gitignore")
	folders, err := makeFolders(filepath.Dir(ignore))
	files := []string{}
	for _, f := range []struct{ path, text string }{{ignore, "*\n"}, {path, text}} {
		if err != nil {
			break
		}
		if err = writeNew(f.path, f.text); err == nil {
			files = append(files, f.path)
		} else if f.path == ignore && errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		return nil
	}
	var known *stint.Error
	if !errors.As(err, &known) {
		err = &stint.Error{Code: stint.Unavailable, Op: "init", Err: err, Hint: "choose a folder that this user may write to, on a disk with room"}
	}
	for _, f := range files {
		err = errors.Join(err, removeNew(f))
	}
	removeFolders(folders)
	return err
}

// writeNew writes a file that must not be there.
func writeNew(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, removeNew(path))
	}
	return nil
}

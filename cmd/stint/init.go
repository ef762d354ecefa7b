package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init [DIR]", Short: "Write a stint.yaml with a working agent",
		Long: `Write a stint.yaml with one agent that works as it is, and a folder .stint for the
store that git ignores. What is there is left alone.`,
		Example: "  stint init && stint run hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			switch len(args) {
			case 0:
			case 1:
				dir = args[0]
			default:
				return misused(cmd, "give one folder, or none")
			}
			return a.init(dir)
		},
	}
}

func (a *app) init(dir string) error {
	if !filepath.IsAbs(dir) {
		wd, err := a.getwd()
		if err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "init", Err: err}
		}
		dir = filepath.Join(wd, dir)
	}
	path := filepath.Join(dir, config.FileName)
	if err := os.MkdirAll(filepath.Join(dir, ".stint"), 0o700); err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "init", Err: err}
	}
	if err := writeNew(filepath.Join(dir, ".stint", ".gitignore"), "*\n"); err != nil && !errors.Is(err, fs.ErrExist) {
		return &stint.Error{Code: stint.Unavailable, Op: "init", Err: err}
	}
	err := writeNew(path, config.Example())
	if errors.Is(err, fs.ErrExist) {
		e := stint.Exists.Errorf("init", "%s is there already", path)
		e.Hint = "stint agent validate checks it"
		return e
	}
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "init", Err: err}
	}
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema string `json:"schema"`
			Path   string `json:"path"`
		}{"stint.init/1", path})
	}
	a.printf("wrote %s\n", path)
	for name := range file.Agents {
		a.printf("  stint run %s\n", name)
	}
	return nil
}

// writeNew writes a file that must not be there.
func writeNew(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

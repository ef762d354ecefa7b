package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
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
	if err := initFiles(dir, path); err != nil {
		return err
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
	a.printf("wrote %s\n", term.Escape(path))
	for name := range file.Agents {
		a.printf("  stint run %s\n", name)
	}
	return nil
}

// initFiles makes the folder, what git ignores in it, and stint.yaml; or nothing.
func initFiles(dir, path string) error {
	ignore := filepath.Join(dir, ".stint", ".gitignore")
	folders, err := makeFolders(filepath.Dir(ignore))
	files := []string{}
	for _, f := range []struct{ path, text string }{{ignore, "*\n"}, {path, config.Example()}} {
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

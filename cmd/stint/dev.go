package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/internal/config"
)

func (a *app) devCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "dev [DIR]", Short: "Serve a folder on your own machine, with an example if it has no stint.yaml",
		Long: `Serve the folder as stint serve does, with a log that is made for a terminal, and print
what to try next. Where there is no stint.yaml, neither in the folder nor above it, one is
written: an agent that needs nothing, and a schedule that begins a session of it every
30 seconds. A folder that is not there is made.

The flags are those of stint serve, and so are the variables of the environment.`,
		Example: "  stint dev\n  stint dev /tmp/try --addr 127.0.0.1:0",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misused(cmd, "give one folder, or none")
			}
			if err := o.environment(cmd, a.getenv); err != nil {
				return err
			}
			return a.dev(cmd, args, &o)
		},
	}
	o.flags(cmd)
	format := cmd.Flags().Lookup("log-format")
	format.DefValue, o.logFormat = logTerminal, logTerminal
	return cmd
}

func (a *app) dev(cmd *cobra.Command, args []string, o *serveOptions) error {
	if _, err := a.logger(o); err != nil { // before anything is written
		return err
	}
	if len(args) == 1 {
		wd, err := a.getwd()
		if err != nil {
			return err
		}
		dir := absolute(wd, args[0])
		a.getwd = func() (string, error) { return dir, nil }
	}
	if err := a.devExample(); err != nil {
		return err
	}
	o.ready = a.devNext
	return a.serve(cmd.Context(), o)
}

// devExample writes a stint.yaml where there is none.
func (a *app) devExample() error {
	path, err := a.configPath()
	if err != nil || path != "" {
		return err
	}
	dir, err := a.getwd()
	if err != nil {
		return err
	}
	text, err := presets.ReadFile("presets/dev.yaml")
	if err != nil {
		return err
	}
	path = filepath.Join(dir, config.FileName)
	if err := initFiles(dir, path, string(text)); err != nil {
		return err
	}
	if !a.json {
		a.printf("wrote %s\n", path)
	}
	return nil
}

// devNext prints what to try. With --json nothing is said: who asks for that reads the
// log.
func (a *app) devNext(v *serving) {
	if a.json {
		return
	}
	tries := [][2]string{
		{"stint ps -a", "what every session is doing, or did"},
		{"stint logs -f @last", "follow the newest one"},
		{"stint schedule ls", "when the next ones begin"},
	}
	file := v.now.Load().file
	for _, name := range slices.Sorted(maps.Keys(file.Schedules)) {
		tries = append(tries, [2]string{"stint schedule fire " + name, "begin one now"})
		break
	}
	url, curl := v.url(), "curl "
	if path, only := strings.CutPrefix(url, "unix:"); only {
		url, curl = "http://localhost", "curl --unix-socket "+path+" "
	}
	tries = append(tries, [2]string{curl + url + "/v1/sessions", "the same over HTTP; /openapi.json says what there is"})
	where := "in this folder"
	if file.Path != "" {
		where = "in " + filepath.Dir(file.Path)
	}
	a.printf("\nThe server is at %s. In another terminal, %s:\n\n", v.url(), where)
	wide := 0
	for _, t := range tries {
		wide = max(wide, len(t[0]))
	}
	for _, t := range tries {
		a.printf("  %s%s  %s\n", t[0], strings.Repeat(" ", wide-len(t[0])), t[1])
	}
	a.printf("\nCtrl-C ends it.\n\n")
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/importer"
)

// maxCrontab bounds a crontab, in bytes.
const maxCrontab = 1 << 20

// importOptions are the flags of stint schedule import.
type importOptions struct {
	zone         string
	zoned, write bool
}

func (a *app) scheduleImportCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Print what stint.yaml would say of a crontab", Args: exactly(1, "one crontab, or - for standard input"),
		Long: `Print the agents and schedules of a stint.yaml that stand for a user's crontab, and
change nothing. Each line of it becomes an agent that runs its command, by a shell only
if the line needs one, and a schedule. What is not taken over is named by its line, on
standard error.

--write appends them to the stint.yaml, unless it has one of the names already.`,
		Example: "  crontab -l | stint schedule import -\n  stint schedule import old.crontab --tz Europe/Berlin --write",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.zoned = cmd.Flags().Changed("tz")
			return a.scheduleImport(args[0], &o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.zone, "tz", "UTC", "the time zone of lines above which no CRON_TZ stands")
	f.BoolVar(&o.write, "write", false, "append them to the stint.yaml")
	return cmd
}

func (a *app) scheduleImport(file string, o *importOptions) error {
	text, err := a.crontab(file)
	if err != nil {
		return err
	}
	p, err := importer.Crontab(text, importer.Options{Zone: o.zone, Home: a.getenv("HOME")})
	if err != nil {
		return err
	}
	written := ""
	if o.write && len(p.Jobs) > 0 {
		if written, err = a.writeImport(p); err != nil {
			return err
		}
	}
	if err := a.printImport(p, o, written); err != nil {
		return err
	}
	if len(p.Jobs) > 0 {
		return nil
	}
	e := stint.Invalid.Errorf("import", "%s has no line that can be taken over", file)
	e.Hint = "a line is five fields and a command, like 0 6 * * MON-FRI ./digest"
	return e
}

// crontab reads the file, or standard input for -.
func (a *app) crontab(file string) (string, error) {
	in := a.in
	if file != "-" {
		dir, err := a.getwd()
		if err != nil {
			return "", &stint.Error{Code: stint.Invalid, Op: "import", Err: err, Hint: "name the file by an absolute path"}
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", &stint.Error{Code: stint.NotFound, Op: "import", Err: err, Hint: "crontab -l | stint schedule import - reads your own"}
		}
		if err != nil {
			return "", &stint.Error{Code: stint.Invalid, Op: "import", Err: err, Hint: "it must be a file that this user may read"}
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxCrontab+1))
	if err == nil && len(b) > maxCrontab {
		err = fmt.Errorf("%s is larger than 1 MiB", file)
	}
	if err != nil {
		return "", &stint.Error{Code: stint.Invalid, Op: "import", Err: err, Hint: "give a crontab, or - for standard input"}
	}
	return string(b), nil
}

// writeImport appends the plan to the stint.yaml that applies, and returns its path.
func (a *app) writeImport(p *importer.Plan) (string, error) {
	was, err := a.mustConfig()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(was.Path)
	if err != nil {
		return "", &stint.Error{Code: stint.Invalid, Op: "import", Err: err, Hint: "it must be a file that this user may read"}
	}
	clashes := p.Clashes(was)
	if len(clashes) > 0 {
		e := stint.Exists.Errorf("import", "%s has %s already; nothing was written", was.Path, strings.Join(clashes, ", "))
		e.Hint = "leave out the lines that are there, or add what is printed without --write by hand, under other names"
		return "", e
	}
	text, err := importer.Insert(string(b), "agents", p.Agents())
	if err != nil {
		return "", err
	}
	if text, err = importer.Insert(text, "schedules", p.Schedules()); err != nil {
		return "", err
	}
	is, err := config.ParseWith(was.Path, []byte(text), os.ReadFile)
	if err == nil {
		err = p.Check(was, is)
	}
	if err != nil {
		return "", err
	}
	return was.Path, rewrite(was.Path, text)
}

// rewrite replaces the content of a file, all of it or nothing. A link to it stays one.
func rewrite(path, text string) error {
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		to = path
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(to); err == nil {
		mode = info.Mode().Perm()
	}
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err == nil {
		_, err = part.WriteString(text)
		err = errors.Join(err, part.Chmod(mode), part.Sync(), part.Close())
		if err == nil {
			err = os.Rename(part.Name(), to)
		}
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "import", Err: err, Hint: "make the folder of " + path + " writable"}
	}
	return nil
}

// importedJob is a line of a crontab as stint schedule import --json prints it.
type importedJob struct {
	Line        int           `json:"line"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Cron        *string       `json:"cron"`  // null: it is every
	Every       *string       `json:"every"` // null: it is cron
	Zone        *string       `json:"zone"`  // null: it is every
	Words       string        `json:"words"`
	JitterMS    int64         `json:"jitter_ms"`
	Prompt      string        `json:"prompt"`
	Agent       importedAgent `json:"agent"`
}

type importedAgent struct {
	Command []string          `json:"command"`
	Shell   *string           `json:"shell"` // null: none runs it
	Dir     *string           `json:"dir"`   // null: not known
	Env     map[string]string `json:"env"`
	Pass    []string          `json:"pass"`
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (a *app) printImport(p *importer.Plan, o *importOptions, written string) error {
	if a.json {
		jobs := make([]importedJob, len(p.Jobs))
		for i := range p.Jobs {
			j := &p.Jobs[i]
			jobs[i] = importedJob{
				Line: j.Line, Name: j.Name, Description: j.Description, Cron: orNull(j.Cron), Every: orNull(j.Every), Zone: orNull(j.Zone),
				Words: j.Words, JitterMS: j.Jitter.Milliseconds(), Prompt: j.Prompt,
				Agent: importedAgent{j.Command, orNull(j.Shell), orNull(j.Dir), j.Env, append([]string{}, j.Pass...)},
			}
		}
		return a.printJSON(struct {
			Schema   string          `json:"schema"`
			Items    []importedJob   `json:"items"`
			NotTaken []importer.Note `json:"not_taken"`
			Notes    []importer.Note `json:"notes"`
			YAML     string          `json:"yaml"`
			Written  *string         `json:"written"` // null: nothing was
		}{"stint.schedule.import/1", jobs, append([]importer.Note{}, p.NotTaken...), append([]importer.Note{}, p.Notes...), importedYAML(p), orNull(written)})
	}
	switch {
	case written != "":
		a.printf("wrote %s and %s to %s\n", counted(len(p.Jobs), "agent"), counted(len(p.Jobs), "schedule"), written)
	case len(p.Jobs) > 0:
		fmt.Fprint(a.out, importedYAML(p)) // what could drive a terminal is escaped in it
	}
	a.noteImport(p, o)
	return nil
}

// importedYAML is what a stint.yaml would say; empty for nothing.
func importedYAML(p *importer.Plan) string {
	if len(p.Jobs) == 0 {
		return ""
	}
	return "agents:\n" + p.Agents() + "\nschedules:\n" + p.Schedules()
}

// noteImport says what is not as in the crontab.
func (a *app) noteImport(p *importer.Plan, o *importOptions) {
	for _, n := range p.NotTaken {
		a.notef("line %d is not taken over: %s\n", n.Line, n.Text)
		if n.Hint != "" {
			a.notef("  %s\n", n.Hint)
		}
	}
	for _, n := range p.Notes {
		hint := ""
		if n.Hint != "" {
			hint = "; " + n.Hint
		}
		a.notef("line %d: %s%s\n", n.Line, n.Text, hint)
	}
	lines := p.Zoneless()
	if o.zoned || len(lines) == 0 {
		return
	}
	all := make([]string, len(lines))
	for i, n := range lines {
		all[i] = fmt.Sprint(n)
	}
	what := "line "
	if len(all) > 1 {
		what = "lines "
	}
	a.notef("%s%s: no CRON_TZ says the time zone: it is %s; --tz names another\n", what, strings.Join(all, ", "), o.zone)
}

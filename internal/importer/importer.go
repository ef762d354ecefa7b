package importer

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/config"
)

// Options are what a crontab does not say.
type Options struct {
	Zone string // of lines above which no CRON_TZ stands
	Home string // the folder in which cron runs commands; empty: not known
}

// Plan is what stint would be told of a crontab.
type Plan struct {
	Jobs     []Job
	NotTaken []Note // lines that are not taken over, and why
	Notes    []Note // what else is not as cron has it
}

// Note is what is said of a line.
type Note struct {
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
	Hint string `json:"hint"` // what to do about it; may be empty
}

// Job is one line of the crontab: an agent and a schedule, both of one name.
type Job struct {
	Line        int
	Name        string
	Description string // one line, of the comment above; may be empty

	// When it runs: an expression in a zone, or a length.
	Cron, Zone, Every string
	Words             string        // the same in words
	Jitter            time.Duration // of RANDOM_DELAY

	Command []string
	Shell   string // what in the line a shell has to read; empty: the command is none of a shell
	Prompt  string // the standard input
	Dir     string // empty: not known
	Env     map[string]string
	Pass    []string

	zoned bool // the line has a CRON_TZ
}

// Crontab reads a crontab in the form that users have. It fails, with [stint.Invalid],
// for a zone that is none; what is wrong with a line is in the plan.
func Crontab(text string, o Options) (*Plan, error) {
	tab, err := cron.ReadCrontab(text, cron.Options{Zone: o.Zone})
	if err != nil {
		return nil, err
	}
	p, taken := &Plan{}, map[string]bool{}
	for _, problem := range tab.Problems {
		p.NotTaken = append(p.NotTaken, note(problem.Line, problem.Err))
	}
	p.settings(tab.Settings)
	for i := range tab.Jobs {
		j, err := newJob(&tab.Jobs[i], o)
		if err == nil {
			j.Name = unique(nameOf(tab.Jobs[i].Command), taken)
			err = j.check()
		}
		if err != nil {
			p.NotTaken = append(p.NotTaken, note(tab.Jobs[i].Line, err))
			continue
		}
		if c := tab.Jobs[i].Env; delay(c["RANDOM_DELAY"]) > j.Jitter {
			p.Notes = append(p.Notes, Note{j.Line, "RANDOM_DELAY is not taken over: it is longer than the time between two runs", ""})
		}
		if j.Dir == "" {
			p.Notes = append(p.Notes, Note{j.Line, "cron runs commands in the home folder, and HOME does not say which that is", "add dir to the agent " + j.Name})
		}
		p.Jobs = append(p.Jobs, j)
	}
	sortNotes(p.NotTaken)
	sortNotes(p.Notes)
	return p, nil
}

// Zoneless returns the numbers of the lines whose zone is that of the [Options].
func (p *Plan) Zoneless() (lines []int) {
	for i := range p.Jobs {
		if !p.Jobs[i].zoned && p.Jobs[i].Cron != "" {
			lines = append(lines, p.Jobs[i].Line)
		}
	}
	return lines
}

// note is what an error says of a line. Of a problem of a stint.yaml it is the problem
// alone: the file is one that nobody wrote.
func note(line int, err error) Note {
	var problems *config.Problems
	if errors.As(err, &problems) {
		first := problems.List[0]
		return Note{line, first.Text, first.Hint}
	}
	n := Note{Line: line, Text: strings.TrimPrefix(err.Error(), "schedule: ")}
	var e *stint.Error
	if errors.As(err, &e) {
		n.Hint = e.Hint
	}
	return n
}

// settings notes the variables that are not taken over as they are.
func (p *Plan) settings(all []cron.Setting) {
	for _, s := range all {
		n := Note{Line: s.Line}
		switch {
		case ofMail(s.Name) && s.Value != "":
			n.Text, n.Hint = s.Name+" is not taken over: stint mails nothing", "stint logs NAME shows what a run wrote"
		case ofMail(s.Name):
			continue
		case s.Name == "RANDOM_DELAY" && s.Value != "0" && delay(s.Value) == 0:
			n.Text, n.Hint = "RANDOM_DELAY is not taken over: it is no number of minutes from 1 to 1440", "add jitter to the schedules"
		case s.Name == "START_HOURS_RANGE":
			n.Text = "START_HOURS_RANGE is not taken over: it is for anacron"
		case isSecret(s.Name, s.Value):
			n.Text, n.Hint = "the value of "+s.Name+" is not taken over: stint.yaml holds no secrets", "set "+s.Name+" where stint runs, or name a file: file:PATH"
		default:
			continue
		}
		p.Notes = append(p.Notes, n)
	}
}

// ofMail reports whether a variable says how cron mails what a command wrote.
func ofMail(name string) bool {
	switch name {
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		return true
	}
	return false
}

// isSecret reports whether a variable is likely to be a secret: by its name, or because
// a stint.yaml may not have the value. A reference is none.
func isSecret(name, value string) bool {
	if value == "" || config.IsReference(value) {
		return false
	}
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	if slices.ContainsFunc(parts, func(p string) bool {
		return slices.Contains([]string{"token", "key", "apikey", "secret", "password", "passwd", "credential", "credentials", "auth"}, p)
	}) {
		return true
	}
	j := Job{Name: "x", Command: []string{"x"}, Env: map[string]string{"X": value}}
	_, err := config.Parse(config.FileName, []byte("agents:\n"+j.agent()))
	return err != nil
}

// delay reads RANDOM_DELAY, whole minutes; 0 for none, and for what is no delay.
func delay(value string) time.Duration {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 24*60 {
		return 0
	}
	return time.Duration(n) * time.Minute
}

// newJob makes a job of a line; it has no name yet.
func newJob(c *cron.Job, o Options) (Job, error) {
	j := Job{
		Line: c.Line, Description: oneLine(c.Comment), Prompt: c.Stdin, Words: c.Schedule.Describe(),
		Jitter: delay(c.Env["RANDOM_DELAY"]), Env: map[string]string{}, Dir: o.Home, zoned: c.Zone != "",
	}
	if first, ok := c.Schedule.Next(time.Unix(0, 0)); ok {
		if second, ok := c.Schedule.Next(first); ok && second.Sub(first) < j.Jitter {
			j.Jitter = 0
		}
	}
	if length, ok := strings.CutPrefix(c.Schedule.String(), "@every "); ok {
		j.Every = length
	} else {
		j.Cron, j.Zone = c.Schedule.String(), c.Schedule.Zone().String()
	}
	if home := c.Env["HOME"]; home != "" {
		j.Dir = home
	}
	if j.Dir != "" {
		j.Dir = filepath.Clean(j.Dir)
	}
	if err := j.setEnv(c.Env); err != nil {
		return Job{}, err
	}
	j.command(c.Command, c.Env["SHELL"])
	return j, nil
}

// setEnv takes the variables that cron would give the command.
func (j *Job) setEnv(env map[string]string) error {
	for name, value := range maps.All(env) {
		switch {
		case ofMail(name), name == "RANDOM_DELAY", name == "START_HOURS_RANGE":
		case config.IsReference(value):
			e := stint.Invalid.Errorf("", "the value of %s begins like a reference to a secret", name)
			e.Hint = "set " + name + " within the command"
			return e
		case isSecret(name, value):
			j.Env[name] = "env:" + name
		default:
			j.Env[name] = value
		}
	}
	for _, name := range []string{"LOGNAME", "USER"} { // which cron sets
		if _, set := j.Env[name]; !set {
			j.Pass = append(j.Pass, name)
		}
	}
	return nil
}

// command sets what is run: the command itself, or the shell that has to read it.
func (j *Job) command(line, shell string) {
	var why string
	j.Command, why = split(line)
	known := shell == "" || isShell(shell)
	if why == "" && known {
		return
	}
	if shell == "" {
		shell = "sh"
	}
	j.Command, j.Shell = []string{shell, "-c", line}, "the line has "+why
	if !known {
		j.Shell = "SHELL is " + written(path.Base(shell))
	}
}

// oneLine makes a description of a comment.
func oneLine(comment string) string {
	const most = 200
	runes := []rune(strings.Join(strings.Fields(comment), " "))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}

// check reads what would be written of the job, and compares.
func (j *Job) check() error {
	f, err := config.Parse(config.FileName, []byte("agents:\n"+j.agent()+"schedules:\n"+j.schedule()))
	if err != nil {
		return err
	}
	if !j.in(f) {
		return fmt.Errorf("it cannot be written into a %s", config.FileName)
	}
	return nil
}

package cron

import (
	"regexp"
	"strings"

	"github.com/stint-dev/stint"
)

// Crontab is what a user's crontab says.
type Crontab struct {
	Jobs []Job

	// Env are the variables that hold at the end of the file. CRON_TZ is none of them.
	Env map[string]string

	// Settings are the lines that set a variable, CRON_TZ among them, in their order.
	Settings []Setting

	// Problems are the lines that say nothing that stint could do, in their order. None
	// of them keeps another line from being read.
	Problems []LineError
}

// Setting is one line of a crontab that sets a variable. Its value is without quotation
// marks; nothing in it is expanded.
type Setting struct {
	Line        int // from 1
	Name, Value string
}

// Job is one line of a crontab that runs a command.
type Job struct {
	Line     int    // from 1
	Comment  string // the lines of comment right above it, without their #
	Expr     string // as it is written
	Zone     string // of the CRON_TZ above it; empty: no line says one
	Schedule *Schedule
	Command  string            // for sh -c
	Stdin    string            // what the command reads; lines end with a newline
	Env      map[string]string // the variables that are set above it
}

// LineError is what is wrong with a line of a crontab. It unwraps to a [stint.Error].
type LineError struct {
	Line int // from 1
	Text string
	Err  error
}

// Error returns what is wrong, without the line.
func (e LineError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e LineError) Unwrap() error { return e.Err }

// ReadCrontab reads a crontab in the form that users have, without a column for a user.
// o.Zone is the zone of the jobs above which no CRON_TZ stands. It fails, with
// [stint.Invalid], for options that are wrong; what is wrong with a line is told in
// [Crontab].Problems.
//
// As in cron, a comment has a line of its own, a variable holds for the lines below it,
// the first % of a command ends it, and what follows is its standard input, in which
// each further % is a new line; \% is a percent sign.
func ReadCrontab(text string, o Options) (*Crontab, error) {
	if _, err := Zone(o.Zone); err != nil {
		return nil, err
	}
	r := crontabReader{options: o, tab: &Crontab{Env: map[string]string{}}, assignment: regexp.MustCompile(assignment)}
	for line := range strings.SplitSeq(text, "\n") {
		r.number++
		if err := r.line(strings.TrimSuffix(line, "\r")); err != nil {
			r.tab.Problems = append(r.tab.Problems, LineError{r.number, line, err})
		}
	}
	return r.tab, nil
}

// assignment is a line that sets a variable: the name, then the value. No schedule looks
// like it: none begins with a letter.
const assignment = `^(?:([A-Za-z_][A-Za-z0-9_]*)|"([A-Za-z_][A-Za-z0-9_]*)"|'([A-Za-z_][A-Za-z0-9_]*)')[ \t]*=[ \t]*(.*?)[ \t]*$`

type crontabReader struct {
	options    Options
	assignment *regexp.Regexp
	tab        *Crontab
	number     int      // of the line
	comment    []string // right above it
	zone       string   // of the newest CRON_TZ
	zoneErr    error    // the newest CRON_TZ names none
}

func (r *crontabReader) line(line string) error {
	line = strings.TrimLeft(line, " \t")
	comment := r.comment
	r.comment = nil
	switch {
	case strings.HasPrefix(line, "#"):
		r.comment = append(comment, strings.TrimSpace(strings.TrimLeft(line, "#")))
		return nil
	case strings.Trim(line, " \t") == "":
		return nil
	case strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return refuse("line", line, "it has a control character", "write the line anew")
	}
	if m := r.assignment.FindStringSubmatch(line); m != nil {
		return r.set(m[1]+m[2]+m[3], m[4])
	}
	return r.job(line, comment)
}

// set takes a variable.
func (r *crontabReader) set(name, value string) error {
	if value != "" && strings.ContainsAny(value[:1], `"'`) {
		if len(value) < 2 || value[len(value)-1] != value[0] {
			return refuse(name, value, "the quotation mark is not closed", "end the value with the mark that it begins with")
		}
		value = value[1 : len(value)-1]
	}
	r.tab.Settings = append(r.tab.Settings, Setting{r.number, name, value})
	if name != "CRON_TZ" {
		r.tab.Env[name] = value
		return nil
	}
	r.zone, r.zoneErr = value, nil
	if value == "" {
		return nil // from here on no line says a zone
	}
	_, r.zoneErr = Zone(value)
	return r.zoneErr
}

// job takes a line with a schedule and a command.
func (r *crontabReader) job(line string, comment []string) error {
	fields := 5
	if line[0] == '@' {
		fields = 1
		if word, _ := cut(line, 1); strings.EqualFold(word, "@every") {
			fields = 2
		}
	} else if r.options.Seconds {
		fields = 6
	}
	expr, command := cut(line, fields)
	j := Job{Line: r.number, Comment: strings.Join(comment, "\n"), Expr: expr, Zone: r.zone, Env: map[string]string{}}
	o := r.options
	if r.zone != "" {
		o.Zone = r.zone
	}
	if r.zoneErr != nil {
		e := stint.Invalid.Errorf("schedule", "the CRON_TZ above this line names no time zone")
		e.Hint = "mend CRON_TZ: the command would run at another time"
		return e
	}
	var err error
	if j.Schedule, err = Parse(expr, o); err != nil {
		return err
	}
	if j.Command, j.Stdin = commandAndInput(command); j.Command == "" {
		return refuse("command", command, "there is none", "write the command after the schedule")
	}
	for name, value := range r.tab.Env {
		j.Env[name] = value
	}
	r.tab.Jobs = append(r.tab.Jobs, j)
	return nil
}

// cut takes n words off the beginning of a line.
func cut(line string, n int) (words, rest string) {
	rest = line
	for range n {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		rest = rest[end:]
	}
	return strings.TrimRight(line[:len(line)-len(rest)], " \t"), strings.TrimLeft(rest, " \t")
}

// commandAndInput separates a command from what it reads: see [ReadCrontab].
func commandAndInput(text string) (command, stdin string) {
	var parts [2]strings.Builder
	part := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '%':
			i++
			parts[part].WriteByte('%')
		case c == '%' && part == 0:
			part = 1
		case c == '%':
			parts[part].WriteByte('\n')
		default:
			parts[part].WriteByte(c)
		}
	}
	if part == 1 {
		parts[1].WriteByte('\n')
	}
	return parts[0].String(), parts[1].String()
}

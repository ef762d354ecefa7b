package importer

import (
	"reflect"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

// Clashes returns the names of jobs that a stint.yaml has already, as an agent or as a
// schedule.
func (p *Plan) Clashes(f *config.File) (names []string) {
	for i := range p.Jobs {
		name := p.Jobs[i].Name
		_, agent := f.Agents[name]
		_, schedule := f.Schedules[name]
		if agent || schedule {
			names = append(names, name)
		}
	}
	return names
}

// Insert adds entries, indented by two, to a section of a stint.yaml: at the end of the
// section, or as a new one at the end of the file. What is in the file stays as it is,
// with its comments. A section that is written in braces is refused with [stint.Invalid].
//
// It looks at lines and not at YAML: read the outcome before it is used.
func Insert(text, section, entries string) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, section+":") })
	if at < 0 {
		return strings.Join(lines, "") + "\n" + section + ":\n" + entries, nil
	}
	rest, _, _ := strings.Cut(strings.TrimPrefix(lines[at], section+":"), "#")
	if strings.TrimSpace(rest) != "" {
		e := stint.Invalid.Errorf("import", "%s stands in one line, and nothing can be added below it", section)
		e.Hint = "write it with one entry a line, or add what is printed by hand"
		return "", e
	}
	end, indent, filled := at+1, "", false
	for i := at + 1; i < len(lines); i++ {
		blanks := len(lines[i]) - len(strings.TrimLeft(lines[i], " "))
		switch {
		case strings.TrimSpace(lines[i]) == "":
			continue
		case blanks == 0:
			i = len(lines)
			continue
		case indent == "" && lines[i][blanks] != '#':
			indent, filled = lines[i][:blanks], true
		}
		end = i + 1
	}
	if filled {
		entries = "\n" + indented(entries, indent)
	}
	return strings.Join(lines[:end], "") + entries + strings.Join(lines[end:], ""), nil
}

// indented moves entries from an indentation of two to another one.
func indented(entries, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(entries) {
		if rest, ok := strings.CutPrefix(line, "  "); ok {
			line = indent + rest
		}
		b.WriteString(line)
	}
	return b.String()
}

// Check reports, with [stint.Invalid], a file that is not what another was and the jobs
// of the plan besides.
func (p *Plan) Check(was, is *config.File) error {
	e := stint.Invalid.Errorf("import", "the entries cannot be added to the file as it is written")
	e.Hint = "add what is printed by hand"
	same := was.Store == is.Store && was.Concurrency == is.Concurrency && len(was.Hooks) == len(is.Hooks) &&
		len(was.Agents)+len(p.Jobs) == len(is.Agents) && len(was.Schedules)+len(p.Jobs) == len(is.Schedules)
	for name, old := range was.Agents {
		a := is.Agents[name]
		_, before := old.Definition()
		_, after := a.Definition()
		same = same && before == after
	}
	for name, old := range was.Schedules {
		same = same && reflect.DeepEqual(old, is.Schedules[name])
	}
	for i := range p.Jobs {
		same = same && p.Jobs[i].in(is)
	}
	if same {
		return nil
	}
	return e
}

package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint/internal/config"
)

// Agents returns the agents as they stand below agents: in a stint.yaml, indented by two.
func (p *Plan) Agents() string {
	var all []string
	for i := range p.Jobs {
		all = append(all, p.Jobs[i].agent())
	}
	return "  # From a crontab. A run that was cut off in the middle waits for your word, since nobody\n" +
		"  # knows what it did; with effect: idempotent it is done again.\n" + strings.Join(all, "\n")
}

// Schedules returns the schedules as they stand below schedules:, indented by two.
func (p *Plan) Schedules() string {
	var all []string
	for i := range p.Jobs {
		all = append(all, p.Jobs[i].schedule())
	}
	return "  # From a crontab. As in cron, a run begins while the one before it still runs, and what\n" +
		"  # was due while nothing ran is not made up for: see overlap and catchup.\n" + strings.Join(all, "\n")
}

// in reports whether a stint.yaml has the agent and the schedule of the job.
func (j *Job) in(f *config.File) bool {
	a, hasAgent := f.Agents[j.Name]
	s, hasSchedule := f.Schedules[j.Name]
	return hasAgent && hasSchedule && j.isAgent(&a) && j.isSchedule(&s)
}

func (j *Job) isAgent(a *config.Agent) bool {
	return a.Kind == config.KindExec && a.Protocol == config.None && slices.Equal(a.Command, j.Command) && (a.Dir == j.Dir || j.Dir == "") &&
		maps.Equal(a.Env, j.Env) && slices.Equal(a.Pass, j.Pass) && a.Bounds.Wall == 0 && a.Description == j.Description
}

func (j *Job) isSchedule(s *config.Schedule) bool {
	expr, zone := j.Cron, j.Zone
	if length, err := time.ParseDuration(j.Every); err == nil {
		expr, zone = "@every "+length.String(), "UTC"
	}
	return s.Agent == j.Name && s.Cron == expr && s.Zone == zone && !s.Seconds && s.Prompt == j.Prompt && s.Jitter == j.Jitter && s.Overlap == "allow" && s.Window == 0
}

// agent writes the agent.
func (j *Job) agent() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	fmt.Fprintf(&b, "  %s:\n", written(j.Name))
	if j.Description != "" {
		line("description: %s", written(j.Description))
	}
	line("kind: exec")
	line("protocol: none")
	if j.Shell != "" {
		line("# a shell runs it: %s", j.Shell)
	}
	line("command: %s", writtenList(j.Command))
	if j.Dir != "" {
		line("dir: %s", written(j.Dir))
	}
	if len(j.Env) > 0 {
		line("env:")
		for _, name := range slices.Sorted(maps.Keys(j.Env)) {
			line("  %s: %s", written(name), written(j.Env[name]))
		}
	}
	if len(j.Pass) > 0 {
		line("pass: %s", writtenList(j.Pass))
	}
	line("effect: once")
	line("limits: {wall: none}")
	return b.String()
}

// schedule writes the schedule.
func (j *Job) schedule() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "    "+format+"\n", args...) }
	fmt.Fprintf(&b, "  %s:\n", written(j.Name))
	line("# line %d: %s", j.Line, j.Words)
	line("agent: %s", written(j.Name))
	if j.Every != "" {
		line("every: %s", j.Every)
	} else {
		line("cron: %s", written(j.Cron))
		line("zone: %s", written(j.Zone))
	}
	line("overlap: allow")
	line("catchup: none")
	if j.Jitter > 0 {
		line("jitter: %dm", int(j.Jitter.Minutes()))
	}
	if j.Prompt != "" {
		line("prompt: %s", written(j.Prompt))
	}
	return b.String()
}

// written is a text as YAML reads it back: plain where any YAML takes it for a text.
func written(s string) string {
	other := func(r rune) bool {
		return r != '_' && r != '/' && r != '-' && r != '.' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}
	begins := s != "" && (s[0] == '/' || s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
	special := slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"}, strings.ToLower(s))
	if !begins || special || strings.ContainsFunc(s, other) {
		return strconv.Quote(s)
	}
	return s
}

func writtenList(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = written(s)
		if s != "" && s[0] == '-' && written(s[1:]) == s[1:] {
			out[i] = s // an option, like -c
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func sortNotes(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
}

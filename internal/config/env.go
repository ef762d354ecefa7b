package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// What a value under env begins with when it is a reference.
const (
	fromEnv  = "env:"
	fromFile = "file:"
)

// ResolveEnv returns the environment of the agent's program: what pass names and
// lookup has, and the values under env with references replaced by what they
// refer to, read now. One line end at the end of a file is left out. What cannot
// be resolved is [stint.Invalid]; the error names all of it, and no value.
//
// The result holds secrets: hand it to the program and keep it nowhere.
func (a *Agent) ResolveEnv(lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range a.Pass {
		if v, ok := lookup(name); ok {
			out[name] = v
		}
	}
	var missing, hints []string
	fail := func(name, why, hint string) {
		missing = append(missing, "env."+name+": "+why)
		if !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		value := a.Env[name]
		if from, ok := strings.CutPrefix(value, fromEnv); ok {
			if value, ok = lookup(from); !ok {
				fail(name, "the variable "+from+" is not set", "set "+from+" where stint runs")
				continue
			}
		} else if path, ok := strings.CutPrefix(value, fromFile); ok {
			b, err := readFile(path)
			if err != nil {
				fail(name, err.Error(), "make "+path+" readable for stint")
				continue
			}
			value = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
			if why := badText(value); why != "" {
				fail(name, "the content of "+path+" "+why, "put the value alone into "+path)
				continue
			}
		}
		out[name] = value
	}
	if len(missing) > 0 {
		return nil, &stint.Error{Code: stint.Invalid, Op: "config", Hint: strings.Join(hints, "; "),
			Err: fmt.Errorf("the environment of agent %s: %s", a.Name, strings.Join(missing, "; "))}
	}
	return out, nil
}

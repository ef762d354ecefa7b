package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// What a value begins with when it is a reference.
const (
	fromEnv  = "env:"
	fromFile = "file:"
)

// IsReference reports whether a value is "env:NAME" or "file:PATH" and so stands for
// a secret, and not for itself.
func IsReference(value string) bool {
	return strings.HasPrefix(value, fromEnv) || strings.HasPrefix(value, fromFile)
}

// Resolve returns what a value stands for: what a reference refers to, read now, and
// any other value itself. One line end at the end of a file is left out. What cannot be
// resolved is [stint.Invalid]; the error holds no value.
func Resolve(value string, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (string, error) {
	out, why, hint := resolve(value, lookup, readFile)
	if why != "" {
		return "", &stint.Error{Code: stint.Invalid, Op: "config", Hint: hint, Err: fmt.Errorf("%s: %s", value, why)}
	}
	return out, nil
}

// resolve is Resolve with its error in words.
func resolve(value string, lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (out, why, hint string) {
	if from, ok := strings.CutPrefix(value, fromEnv); ok {
		out, ok := lookup(from)
		if !ok {
			return "", "the variable " + from + " is not set", "set " + from + " where stint runs"
		}
		return out, "", ""
	}
	path, ok := strings.CutPrefix(value, fromFile)
	if !ok {
		return value, "", ""
	}
	b, err := readFile(path)
	if err != nil {
		return "", err.Error(), "make " + path + " readable for stint"
	}
	out = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if bad := badText(out); bad != "" {
		return "", "the content of " + path + " " + bad, "put the value alone into " + path
	}
	return out, "", ""
}

// resolver resolves several values and keeps what is wrong with them.
type resolver struct {
	lookup         func(string) (string, bool)
	readFile       func(string) ([]byte, error)
	missing, hints []string
}

// one resolves a value, and an empty one to itself.
func (r *resolver) one(name, value string) (string, bool) {
	out, why, hint := resolve(value, r.lookup, r.readFile)
	if why == "" {
		return out, true
	}
	r.missing = append(r.missing, name+": "+why)
	if !slices.Contains(r.hints, hint) {
		r.hints = append(r.hints, hint)
	}
	return "", false
}

// all resolves the values of a map into out.
func (r *resolver) all(name string, values, out map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if v, ok := r.one(name+"."+k, values[k]); ok {
			out[k] = v
		}
	}
}

// err says all that is missing of what.
func (r *resolver) err(what string) error {
	if len(r.missing) == 0 {
		return nil
	}
	return &stint.Error{Code: stint.Invalid, Op: "config", Hint: strings.Join(r.hints, "; "),
		Err: fmt.Errorf("%s: %s", what, strings.Join(r.missing, "; "))}
}

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
	r := resolver{lookup: lookup, readFile: readFile}
	r.all("env", a.Env, out)
	if err := r.err("the environment of agent " + a.Name); err != nil {
		return nil, err
	}
	return out, nil
}

// Resolve returns the key, empty where there is none, and the headers with references
// replaced as [Agent.ResolveEnv] does it. Errors and the result are as there.
func (p *Provider) Resolve(lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (key string, headers map[string]string, err error) {
	r, headers := resolver{lookup: lookup, readFile: readFile}, map[string]string{}
	key, _ = r.one("key", p.Key)
	r.all("headers", p.Headers, headers)
	if err := r.err("the provider " + p.Name); err != nil {
		return "", nil, err
	}
	return key, headers, nil
}

// Resolve returns what requests are signed with, empty for nothing, and the headers,
// as [Provider.Resolve] does it.
func (h *HTTP) Resolve(lookup func(string) (string, bool), readFile func(string) ([]byte, error)) (secret string, headers map[string]string, err error) {
	r, headers := resolver{lookup: lookup, readFile: readFile}, map[string]string{}
	secret, _ = r.one("secret", h.Secret)
	r.all("headers", h.Headers, headers)
	if err := r.err("the agent behind " + h.URL); err != nil {
		return "", nil, err
	}
	return secret, headers, nil
}

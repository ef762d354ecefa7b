package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// requestOptions are the flags of the verbs that create a session.
type requestOptions struct {
	prompt string
	file   string
	name   string
	labels []string
	dedupe string
	bounds control.Limits
}

func (o *requestOptions) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.prompt, "prompt", "p", "", "the input: text or JSON")
	f.StringVarP(&o.file, "file", "f", "", "read the input from a file, - for standard input")
	f.StringVar(&o.name, "name", "", "the session's name (default: the agent's and the day)")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "a label, `key=value`; repeatable")
	f.StringVar(&o.dedupe, "dedupe", "", "a `key`: the same key again leads to the session that it made first")
	limitFlags(f, &o.bounds)
	f.Lookup("cost").Usage += " (default: the agent's, and 5.00 for models with prices)"
}

// request makes a session's request of the flags; base is the agent's limits.
func (o *requestOptions) request(a *app, agent engine.Agent) (engine.Request, error) {
	r := engine.Request{Agent: agent, Name: o.name, Actor: a.starter(), Dedupe: o.dedupe}
	var err error
	if r.Input, err = o.input(a); err != nil {
		return r, err
	}
	if r.Labels, err = o.labelled(agent.Labels); err != nil {
		return r, err
	}
	r.Limits, err = o.limits(agent)
	return r, err
}

// labelled returns the labels of a session: its agent's, and over them its own. nil
// leaves the agent's as they are.
func (o *requestOptions) labelled(agent map[string]string) (map[string]string, error) {
	own, err := o.ownLabels()
	if err != nil || own == nil {
		return nil, err
	}
	return control.Labels(own, agent)
}

// ownLabels are those that the flags give; nil: none.
func (o *requestOptions) ownLabels() (map[string]string, error) { return labelsOf(o.labels) }

// labelsOf reads labels as --label gives them; nil: none.
func labelsOf(given []string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	own := map[string]string{}
	for _, l := range given {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, usage(fmt.Errorf("--label %q is not key=value", l))
		}
		if _, twice := own[k]; twice {
			return nil, usage(fmt.Errorf("--label %s is given twice", k))
		}
		own[k] = v
	}
	return own, nil
}

// start is the request to a server. Where no key is given it gets one of its own, so that
// it can be repeated when an answer is lost.
func (o *requestOptions) start(a *app, agent string) (client.Start, error) {
	s := client.Start{Agent: agent, Name: o.name, Key: o.dedupe}
	if s.Key == "" {
		s.Key = ident.New().String()
	}
	if _, err := o.limits(engine.Agent{}); err != nil { // in words of the flags
		return s, err
	}
	input, err := o.input(a)
	if err != nil {
		return s, err
	}
	s.Prompt = string(input)
	s.Limits = client.Limits(o.bounds)
	s.Labels, err = o.ownLabels()
	return s, err
}

func (o *requestOptions) limits(agent engine.Agent) (*stint.Limits, error) {
	now := time.Now()
	var lim stint.Limits
	if agent.Limits != nil {
		lim = agent.Limits(now)
	}
	if err := o.bounds.Apply(&lim, now); err != nil {
		return nil, usage(fmt.Errorf("--%w", err))
	}
	return &lim, nil
}

// inputHint is what --file takes.
const inputHint = "--file takes a file that you may read, or - for standard input"

// input reads the session's input, at most as much as a message may carry.
func (o *requestOptions) input(a *app) ([]byte, error) {
	if o.prompt != "" && o.file != "" {
		return nil, usage(fmt.Errorf("--prompt and --file exclude each other"))
	}
	if o.file == "" {
		return []byte(o.prompt), nil
	}
	in := a.in
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, &stint.Error{Code: stint.Invalid, Op: "input", Err: err, Hint: inputHint}
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, journal.MaxBody+1))
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "input", Err: err, Hint: inputHint}
	}
	if len(b) > journal.MaxBody {
		err := stint.Limit.Errorf("input", "it is longer than %d bytes", journal.MaxBody)
		err.Hint = "keep large content in a file and name it in the input"
		return nil, err
	}
	return b, nil
}

// starter is who asks for a session: the session that this process descends from, else
// the person who gave the command.
func (a *app) starter() stint.Actor {
	if from, _ := a.startedBy(); len(from) > 0 {
		return stint.Actor("session:" + from[0].String())
	}
	return a.actor()
}

// actor is the person who gave the command.
func (a *app) actor() stint.Actor {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return stint.Actor("human:" + u.Username)
	}
	return "human:" + stint.Actor(a.getenv("USER"))
}

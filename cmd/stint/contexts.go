package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/internal/jsonx"
)

// contexts is contexts.json: servers by name, and the one that is in use.
type contexts struct {
	Schema   string                   `json:"schema"`
	Use      string                   `json:"use,omitempty"`
	Contexts map[string]serverContext `json:"contexts"`

	dir string // of the file
}

// serverContext is a server, and where the token for it is. The token itself is not in it.
type serverContext struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"` // env:NAME, or file:PATH, seen from the folder of the file
}

const (
	schemaContexts = "stint.contexts/1"
	contextsFile   = "contexts.json"
	noContext      = "none" // the store of this machine
)

// contextDir is where contexts are kept.
func (a *app) contextDir() (string, error) {
	dir := a.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &stint.Error{Code: stint.Invalid, Op: "context", Err: err, Hint: "set XDG_CONFIG_HOME"}
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "stint"), nil
}

// contexts reads contexts.json; where there is none, there are no contexts.
func (a *app) contexts() (*contexts, error) {
	dir, err := a.contextDir()
	if err != nil {
		return nil, err
	}
	c := &contexts{}
	path := filepath.Join(dir, contextsFile)
	b, err := os.ReadFile(path)
	if err == nil {
		err = jsonx.Decode(b, c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &stint.Error{Code: stint.Invalid, Op: "context", Err: fmt.Errorf("%s cannot be read: %w", path, err), Hint: "mend it, or remove it and add the contexts anew; --context none does without"}
	}
	if c.Contexts == nil {
		c.Contexts = map[string]serverContext{}
	}
	c.Schema, c.dir = schemaContexts, dir
	return c, nil
}

// save writes contexts.json, whole or not at all, for this user alone.
func (c *contexts) save() error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = c.write(contextsFile, append(b, '\n'))
	}
	return err
}

// write makes a file of the folder, for this user alone.
func (c *contexts) write(name string, b []byte) error {
	path := filepath.Join(c.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(filepath.Dir(path), ".*") // mode 0600
	}
	if err == nil {
		_, err = f.Write(b)
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "context", Err: err, Hint: "contexts are kept in " + c.dir + ": make it a folder that you may write to"}
	}
	return nil
}

// storedToken is where the token of a context is that was asked for.
func storedToken(name string) string { return filepath.Join("tokens", name) }

// checkContextName refuses what could not be a file's name everywhere.
func checkContextName(name string) error {
	if name != noContext && regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`).MatchString(name) {
		return nil
	}
	e := stint.Invalid.Errorf("context", "%.100q is no name of a context", name)
	e.Hint = "use small letters, digits, dashes and dots, at most 63; none means the store of this machine"
	return e
}

// find returns a context by its name.
func (c *contexts) find(name string) (serverContext, error) {
	s, ok := c.Contexts[name]
	if !ok {
		e := stint.NotFound.Errorf("context", "there is no context %q", name)
		e.Hint = "stint context ls lists them; stint context add NAME URL makes one"
		return s, e
	}
	return s, nil
}

// token reads the token that a context refers to.
func (c *contexts) token(a *app, ref string) (string, error) {
	kind, what, _ := strings.Cut(ref, ":")
	switch {
	case ref == "":
		return "", nil
	case kind == "env":
		if text := a.getenv(what); text != "" {
			return text, nil
		}
		e := stint.Invalid.Errorf("context", "the token is to be in %s, which is not set", what)
		e.Hint = "set it, or say anew where the token is: stint context add NAME URL --token"
		return "", e
	case kind == "file":
		if !filepath.IsAbs(what) {
			what = filepath.Join(c.dir, what)
		}
		b, err := os.ReadFile(what)
		if err != nil {
			return "", &stint.Error{Code: stint.Invalid, Op: "context", Err: fmt.Errorf("the token cannot be read: %w", err), Hint: "say anew where it is: stint context add NAME URL --token"}
		}
		return string(bytes.TrimSpace(b)), nil
	}
	return "", badTokenRef()
}

func badTokenRef() error {
	e := stint.Invalid.Errorf("context", "a token is named by where it is, and not written on a command line, where others see it")
	e.Hint = "write --token env:NAME or --token file:PATH, or --token ask and give it then"
	return e
}

// farServer is one that commands ask instead of a store of this machine.
type farServer struct {
	name  string // of its context; empty: the environment names it
	from  string // what chose it, for people
	url   string
	token string // where it is; empty: nowhere
	all   *contexts
}

// chosen returns the server that commands ask; nil: the store of this machine. What is
// said on the command line counts before the environment, and that before the context in
// use.
func (a *app) chosen() (*farServer, error) {
	if a.storeFlag != "" && a.contextFlag != "" {
		return nil, usage(errors.New("--store and --context exclude each other"))
	}
	name, from := a.contextFlag, "--context"
	switch {
	case a.storeFlag != "":
		return nil, nil
	case name != "":
	case a.getenv("STINT_CONTEXT") != "":
		name, from = a.getenv("STINT_CONTEXT"), "STINT_CONTEXT"
	case a.getenv("STINT_SERVER") != "":
		s := &farServer{from: "STINT_SERVER", url: a.getenv("STINT_SERVER"), all: &contexts{}}
		if a.getenv("STINT_TOKEN") != "" {
			s.token = "env:STINT_TOKEN"
		}
		return s, nil
	case a.getenv("STINT_STORE") != "":
		return nil, nil
	}
	if name == noContext {
		return nil, nil
	}
	all, err := a.contexts()
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, from = all.Use, "stint context use"; name == "" {
			return nil, nil
		}
	}
	c, err := all.find(name)
	return &farServer{name: name, from: from, url: c.URL, token: c.Token, all: all}, err
}

// String names a server for people.
func (s *farServer) String() string {
	if s.name == "" {
		return s.url
	}
	return s.name + " (" + s.url + ")"
}

// client makes a client of a server.
func (s *farServer) client(a *app) (*client.Client, error) {
	token, err := s.all.token(a, s.token)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{URL: s.url, Token: token})
}

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Options are what a [Server] needs besides its Spec. The zero value is usable.
type Options struct {
	// Lookup finds variables; nil is os.LookupEnv.
	Lookup func(name string) (string, bool)
	// Pinned is what was accepted of the server; nil accepts what it says first, for as
	// long as the Server lives.
	Pinned *Pin
	// Log gets what the server writes that is no message: its error stream, and noise on
	// its output. Secrets are taken out, a line has at most 4 KiB. It is called from
	// several goroutines and must not block.
	Log func(server, line string)
	// StartTimeout bounds a start and the listing of the tools; 0: 30 s.
	StartTimeout time.Duration
}

const (
	defaultStart = 30 * time.Second
	maxTools     = 5000
	maxPages     = 500
	maxPause     = time.Minute
)

// Server is a server of tools. It is started when it is first needed and again when it
// died; its methods may be called from many goroutines.
type Server struct {
	spec    Spec // variables not put in
	ready   Spec // put in
	secrets map[string]string
	opts    Options
	life    context.Context // ends the server
	stop    context.CancelFunc

	mu       sync.Mutex
	link     *link         // takes calls; nil: there is none
	starting chan struct{} // closed when the start that runs is over; nil: none runs
	links    sync.WaitGroup
	deaths   int       // since the last call that was answered
	next     time.Time // not started before
	accepted *Pin
	closed   bool
}

// link is one connection: a process, or a session over HTTP.
type link struct {
	session *mcp.ClientSession
	program *program        // nil: HTTP
	base    *http.Transport // nil: stdio
	gone    chan struct{}   // closed when the connection is

	// The rest is under the server's mutex.
	calls   int
	retired bool // takes no more calls
	stale   bool // the server said that its tools changed
	tools   map[string]Definition
}

// Open prepares a server and starts nothing. The server lives until ctx ends or Close is
// called. [stint.Invalid] for a Spec that cannot be started, and for a variable that is
// not set, by name.
func Open(ctx context.Context, spec Spec, opts Options) (*Server, error) {
	if opts.Lookup == nil {
		opts.Lookup = os.LookupEnv
	}
	if opts.Log == nil {
		opts.Log = func(string, string) {}
	}
	if opts.StartTimeout <= 0 {
		opts.StartTimeout = defaultStart
	}
	invalid := func(err error) error {
		return &stint.Error{Code: stint.Invalid, Op: "mcp server " + spec.Name, Err: err, Hint: "mend the server's configuration"}
	}
	if err := spec.check(); err != nil {
		return nil, invalid(err)
	}
	ready, secrets, err := spec.expand(opts.Lookup)
	if err != nil {
		return nil, err
	}
	if ready.Transport == HTTP {
		if _, _, err := remote(ready); err != nil {
			return nil, invalid(err)
		}
	}
	s := &Server{spec: spec, ready: ready, secrets: secrets, opts: opts, accepted: opts.Pinned}
	s.life, s.stop = context.WithCancel(ctx)
	return s, nil
}

// Name returns the name of the Spec.
func (s *Server) Name() string { return s.spec.Name }

// Tools returns the server's tools, named NAME__tool, in the order of their names. It
// starts the server if that is necessary. The error is [Changed] in a [stint.Denied]
// error if the server is not what was accepted, and [stint.Unavailable] if it cannot be
// started.
func (s *Server) Tools(ctx context.Context) ([]tool.Tool, error) {
	now, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.accepted == nil {
		s.accepted = &now
	}
	accepted := *s.accepted
	s.mu.Unlock()
	return s.tools(accepted, now, s.spec.Trust)
}

// ToolsFor is Tools for one of several users of the server, whatever the Spec and the
// Options say: one who has accepted this, and trusts the hints or does not. A change after
// that is refused at the calls of these tools.
func (s *Server) ToolsFor(ctx context.Context, accepted Pin, trust bool) ([]tool.Tool, error) {
	now, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.tools(accepted, now, trust)
}

func (s *Server) tools(accepted, now Pin, trust bool) ([]tool.Tool, error) {
	if err := s.compare(accepted, now); err != nil {
		return nil, err
	}
	return toolsOf(s.spec, now, trust, func(name string) tool.Caller { return &caller{server: s, name: name, accepted: accepted} }), nil
}

// PinnedTools returns the tools of a server as it was when was was made, without starting
// it: for those who look at them and call none. A call is [stint.Invalid].
func PinnedTools(spec Spec, was Pin) []tool.Tool {
	return toolsOf(spec, was, spec.Trust, func(string) tool.Caller {
		return tool.CallerFunc(func(context.Context, tool.Call) (tool.Output, error) {
			return tool.Output{}, &stint.Error{Code: stint.Invalid, Op: "mcp server " + spec.Name, Err: errors.New("it was not started"), Hint: "run the session; these tools are only looked at"}
		})
	})
}

// toolsOf are the tools of a server that is as now says.
func toolsOf(spec Spec, now Pin, trust bool, call func(name string) tool.Caller) []tool.Tool {
	tools := make([]tool.Tool, 0, len(now.Tools))
	for _, name := range slices.Sorted(maps.Keys(now.Tools)) {
		d := now.Tools[name]
		one := tool.Tool{
			Name: tool.Join(spec.Name, name), Description: d.Description, Schema: d.Schema,
			Timeout: spec.Timeout, Approve: spec.Approve[name], Source: "mcp " + spec.Name,
			Taints: true, Caller: call(name),
		}
		if trust {
			one.Effect = d.Hints.effect()
			one.Parallel = one.Effect == stint.Read
			one.Taints = d.Hints.OpenWorld == nil || *d.Hints.OpenWorld
		}
		tools = append(tools, one)
	}
	slices.SortFunc(tools, func(a, b tool.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// effect is what hints mean, where they are trusted.
func (h Hints) effect() stint.Effect {
	switch {
	case h.ReadOnly:
		return stint.Read
	case h.Idempotent:
		return stint.Idempotent
	}
	return stint.Once
}

// Pin returns what the server is now, whatever was accepted. Keep it, and give it as
// [Options.Pinned] the next time.
func (s *Server) Pin(ctx context.Context) (Pin, error) { return s.look(ctx) }

func (s *Server) compare(accepted, now Pin) error {
	if diff := accepted.Compare(now); len(diff) > 0 {
		return (&Changed{Server: s.spec.Name, Was: accepted.Hash(), Is: now.Hash(), Diff: diff}).wrapped()
	}
	return nil
}

// look returns the pin of the server as it is now.
func (s *Server) look(ctx context.Context) (Pin, error) {
	l, err := s.take(ctx)
	if err != nil {
		return Pin{}, err
	}
	defer s.giveBack(l, false)
	tools, err := s.current(ctx, l)
	if err != nil {
		return Pin{}, s.unavailable(err)
	}
	return pinOf(s.spec, tools), nil
}

// current returns the tools of a link, listed again if the server said that they changed.
func (s *Server) current(ctx context.Context, l *link) (map[string]Definition, error) {
	s.mu.Lock()
	tools, stale := l.tools, l.stale
	l.stale = false
	s.mu.Unlock()
	if !stale {
		return tools, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.StartTimeout)
	defer cancel()
	tools, err := list(ctx, l.session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		l.stale = true
		return nil, err
	}
	l.tools = tools
	return tools, nil
}

// list reads all pages of a server's list of tools.
func list(ctx context.Context, session *mcp.ClientSession) (map[string]Definition, error) {
	tools := map[string]Definition{}
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, fmt.Errorf("its tools cannot be listed: %w", err)
		}
		for _, t := range page.Tools {
			if _, twice := tools[t.Name]; twice {
				return nil, fmt.Errorf("it lists the tool %q twice", t.Name)
			}
			tools[t.Name] = definition(t)
		}
		switch cursor = page.NextCursor; {
		case cursor == "":
			return tools, nil
		case seen[cursor]:
			return nil, errors.New("its list of tools goes in a circle")
		case len(tools) > maxTools || len(seen) > maxPages:
			return nil, fmt.Errorf("it lists more than %d tools or %d pages", maxTools, maxPages)
		}
		seen[cursor] = true
	}
}

func definition(t *mcp.Tool) Definition {
	d := Definition{Description: t.Description}
	if raw, ok := t.Meta[metaSchema].(string); ok {
		d.Schema = compact(raw)
	} else if b, err := json.Marshal(t.InputSchema); err == nil && t.InputSchema != nil {
		d.Schema = b
	}
	if a := t.Annotations; a != nil {
		d.Hints = Hints{ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint, Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
	}
	return d
}

// compact takes out the spaces, so that a server may write them otherwise the next time.
func compact(raw string) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, []byte(raw)) != nil {
		return json.RawMessage(raw)
	}
	return buf.Bytes()
}

// unavailable is an error of the server for those who called; no secret is in it.
func (s *Server) unavailable(err error) error {
	var known *stint.Error
	if errors.As(err, &known) {
		return err
	}
	return &stint.Error{Code: stint.Unavailable, Op: "mcp server " + s.spec.Name, Err: clean{tool.Redact(err.Error(), s.secrets), err},
		Hint: "look at what the server wrote, and whether its command or URL is right"}
}

// clean is an error with another text. What is in its tree stays findable.
type clean struct {
	text string
	err  error
}

// Error returns the text.
func (c clean) Error() string { return c.text }

// Is reports what the cause is.
func (c clean) Is(target error) bool { return errors.Is(c.err, target) }

// log hands on a line of the server.
func (s *Server) log(line []byte) {
	text, _ := tool.Clean(line)
	s.opts.Log(s.spec.Name, tool.Redact(text, s.secrets))
}

// errClosed is why what still runs ends.
var errClosed = errors.New("the server was closed")

// Close ends the server and all that it started, and waits for that: at most five
// seconds. Open calls have no outcome. Its error is nil.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	l := s.link
	running := s.starting
	if l != nil {
		s.retire(l)
	}
	s.mu.Unlock()
	s.stop()
	if running != nil {
		<-running // what it started is gone, or retired
	}
	s.links.Wait()
	return nil
}

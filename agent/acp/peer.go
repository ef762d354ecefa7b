package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/proc"
)

// peer is one agent process with its session.
type peer struct {
	spec  *Spec
	proc  *proc.Proc
	conn  *acp.Connection
	feed  *feed
	log   *child.Log
	tail  child.Tail
	out   *locked // to the agent
	words words
	read  chan struct{} // a message was taken: what was said after it may follow
	old   chan struct{} // has room for one: an update came while no turn was under way
	gone  chan struct{} // closed once the whole tree has ended and all it wrote has been read

	loads, resumes bool
	login          []string // ways to log in, as the agent names them
	session        string
	turn           atomic.Bool // one is under way, so that what it says counts
	prompted       chan struct{}
}

// exit is how a process ended.
type exit struct {
	code   int
	signal string
	killed bool
	stderr []string
}

func (x *exit) how() string {
	switch {
	case x.killed:
		return "was told to end"
	case x.signal != "":
		return "was ended by signal " + x.signal
	case x.code < 0:
		return "ended, nobody knows how"
	}
	return fmt.Sprintf("exited with %d", x.code)
}

// words are the last line of its standard error that says something.
func (x *exit) words() string {
	for i := len(x.stderr) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(clean(x.stderr[i])); s != "" {
			return s
		}
	}
	return ""
}

// words are what the model says, piece by piece, on their way to the log: whole lines.
type words struct {
	mu          sync.Mutex
	level, line string
}

func (w *words) add(log *child.Log, level, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if level != w.level {
		w.rest(log)
	}
	w.level = level
	w.line += text
	if i := strings.LastIndexByte(w.line, '\n'); i >= 0 {
		log.Text(level, w.line[:i+1])
		w.line = w.line[i+1:]
	}
	if len(w.line) > child.MaxLine {
		w.rest(log)
	}
	log.Progress(w.line)
}

// flush logs the line that is not at its end.
func (w *words) flush(log *child.Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest(log)
}

// rest is flush under the lock.
func (w *words) rest(log *child.Log) {
	if w.line != "" {
		log.Text(w.level, w.line)
	}
	w.line = ""
}

// locked lets the library and this package write whole messages to one stream.
type locked struct {
	mu     sync.Mutex
	w      io.WriteCloser
	broken atomic.Bool // a message could not be written
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.w.Write(p)
	if err != nil {
		l.broken.Store(true)
	}
	return n, err
}

// start starts the agent. The process outlives ctx; whoever has it ends it.
func start(ctx context.Context, spec *Spec, env []string, name string, log *child.Log) (*peer, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	pr, err := proc.Start(context.WithoutCancel(ctx), proc.Spec{
		Argv: spec.Command, Dir: spec.Dir, Env: env, Name: name, Grace: spec.grace(),
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		return nil, child.StartFailure(spec.Dir, spec.Command[0], err)
	}
	faultpoint.Hit(faultpoint.EffectSent)
	p := &peer{spec: spec, proc: pr, feed: newFeed(), log: log, out: &locked{w: pr.Stdin()},
		read: make(chan struct{}), old: make(chan struct{}, 1), gone: make(chan struct{})}
	r, w := io.Pipe()
	p.conn = acp.NewConnection(p.handle, p.out, r)
	p.conn.SetLogger(slog.New(slog.DiscardHandler))
	var streams sync.WaitGroup
	streams.Go(func() { p.pass(w) })
	streams.Go(func() {
		child.Pump(pr.Stderr(), nil, func(line []byte, size int64) {
			p.tail.Add(line)
			logLine(log, child.Stderr, line, size)
		})
	})
	go func() {
		<-pr.Done()
		streams.Wait()
		x := pr.Wait()
		how := &exit{code: x.Code, signal: strings.TrimPrefix(x.Signal, "SIG"), killed: x.Killed, stderr: p.tail.Last()}
		if p.turn.Load() && !x.Killed {
			log.Notef("%s %s in its turn", spec.name(), how.how())
		}
		p.feed.put(event{kind: evExit, exit: how})
		close(p.gone)
	}()
	return p, nil
}

// logLine logs a line, cleaned; size is its full length.
func logLine(log *child.Log, stream string, line []byte, size int64) {
	text := clean(string(line))
	log.Line(stream, []byte(text), size-int64(len(line))+int64(len(text)))
}

// pass hands the messages of the agent to the library, one after the other: the next one
// only when the last one was taken, so that they are taken in the order that they were
// sent in. Lines that are no message are logged.
func (p *peer) pass(w *io.PipeWriter) {
	defer w.Close()
	lines := proc.Lines(p.proc.Stdout(), maxMessage)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		if line.Truncated() {
			p.oversized(line.Data, line.Size)
			continue
		}
		if len(strings.TrimSpace(string(line.Data))) == 0 {
			continue
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line.Data, &m) != nil || m.Method == "" && len(m.ID) == 0 {
			logLine(p.log, child.Stdout, line.Data[:min(len(line.Data), child.MaxLine)], line.Size)
			continue
		}
		if m.Method == acp.ClientMethodSessionUpdate && p.quiet() {
			select { // what was said before, told again as the session is loaded
			case p.old <- struct{}{}:
			default:
			}
			continue
		}
		if !forward(w, line.Data) {
			break
		}
		if m.Method == "" || m.Method == "$/cancel_request" && len(m.ID) == 0 {
			continue
		}
		select {
		case <-p.read:
		case <-p.conn.Done():
		}
	}
	timer := time.NewTimer(silentTime)
	defer timer.Stop()
	select {
	case <-p.proc.Done():
	case <-timer.C:
		p.proc.Terminate(p.spec.grace())
	}
}

// forward writes a line.
func forward(w io.Writer, line []byte) bool {
	if _, err := w.Write(line); err != nil {
		return false
	}
	_, err := w.Write([]byte("\n"))
	return err == nil
}

// took tells that a message was taken.
func (p *peer) took() {
	select {
	case p.read <- struct{}{}:
	case <-p.conn.Done():
	}
}

// quiet reports that no turn is under way.
func (p *peer) quiet() bool { return !p.turn.Load() }

// oversized does with a message that is too large to be read what can be done with it:
// a request is refused, an answer fails the turn, news are left out.
func (p *peer) oversized(begin []byte, size int64) {
	id, method := envelope(begin)
	switch {
	case method != "" && id != nil:
		m := map[string]any{"jsonrpc": "2.0", "id": id, "error": &acp.RequestError{Code: -32600, Message: fmt.Sprintf("the message has %d bytes; at most %d are read", size, maxMessage)}}
		if b, err := json.Marshal(m); err == nil {
			_, _ = p.out.Write(append(b, '\n'))
		}
	case id != nil:
		p.feed.put(event{kind: evFail, err: fmt.Errorf("its answer has %d bytes; at most %d are read", size, maxMessage)})
	}
	p.log.Notef("a message of %d bytes is left out: at most %d are read", size, maxMessage)
}

// envelope reads the id and the method of a message as far as it is there.
func envelope(begin []byte) (id json.RawMessage, method string) {
	dec := json.NewDecoder(strings.NewReader(string(begin)))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, ""
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		switch key {
		case "id":
			id = v
		case "method":
			_ = json.Unmarshal(v, &method)
		}
	}
	return id, method
}

// handle takes one message of the agent. Each way through it calls took once.
func (p *peer) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	switch method {
	case acp.ClientMethodSessionUpdate:
		defer p.took()
		return nil, p.updated(params)
	case acp.ClientMethodSessionRequestPermission:
		return p.permissionAsked(ctx, params)
	case acp.ClientMethodFsReadTextFile, acp.ClientMethodFsWriteTextFile:
		return p.fileAsked(ctx, params, method == acp.ClientMethodFsWriteTextFile)
	}
	defer p.took()
	return nil, acp.NewMethodNotFound(method)
}

// updated takes news of the session.
func (p *peer) updated(params json.RawMessage) *acp.RequestError {
	var n notification
	if err := json.Unmarshal(params, &n); err != nil {
		p.log.Notef("an update is left out: %s", oneLine(err.Error()))
		return acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	u := &n.Update
	if n.Session != p.session { // of an agent within the agent
		return nil
	}
	switch u.What {
	case "agent_message_chunk", "agent_thought_chunk":
		var b block
		_ = json.Unmarshal(u.Content, &b)
		text := clean(b.text())
		if u.What == "agent_thought_chunk" {
			p.words.add(p.log, "thought", text)
			return nil
		}
		p.words.add(p.log, "info", text)
		p.feed.put(event{kind: evText, text: text})
	case "tool_call", "tool_call_update":
		if u.ID == "" {
			p.log.Notef("an update of a call without an id is left out")
			return nil
		}
		u.Blocks = u.Content
		p.words.flush(p.log)
		if u.Title != nil {
			p.log.Progress(clean(*u.Title))
		}
		p.feed.told(u.toolCall)
	case "plan":
		p.words.flush(p.log)
		for _, e := range u.Entries {
			p.log.Text("info", fmt.Sprintf("plan: [%s] %s", oneLine(e.Status), oneLine(e.Content)))
			if e.Status == "in_progress" {
				p.log.Progress(clean(e.Content))
			}
		}
	case "usage_update":
		if u.Cost != nil && u.Cost.Currency == "USD" {
			p.feed.costs(dollars(u.Cost.Amount))
		}
	}
	return nil
}

// dollars is an amount that an agent reports as a number.
func dollars(f float64) stint.Money {
	if math.IsNaN(f) || f <= 0 || f > 1e9 {
		return 0
	}
	return stint.Money(math.Round(f * 1e9))
}

func (f *feed) costs(m stint.Money) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cost = m
}

// permissionAsked waits for the answer to what the agent asks.
func (p *peer) permissionAsked(ctx context.Context, params json.RawMessage) (any, *acp.RequestError) {
	var r permissionRequest
	err := json.Unmarshal(params, &r)
	if err == nil && r.Call.ID == "" {
		err = errors.New("toolCall.toolCallId is required")
	}
	if err != nil {
		p.took()
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	perm := &permission{options: r.Options, answer: make(chan acp.RequestPermissionResponse, 1)}
	if p.quiet() {
		p.took()
		perm.cancel()
		return <-perm.answer, nil
	}
	r.Call.Blocks = r.Call.Content
	r.Call.Status = nil
	p.feed.asked(r.Call.toolCall, perm)
	p.took()
	select {
	case <-ctx.Done():
		perm.cancel()
	case a := <-perm.answer:
		p.feed.answered(perm)
		return a, nil
	}
	p.feed.answered(perm)
	return <-perm.answer, nil
}

// ready brings the agent to where it takes a prompt in session id, or in a new one where
// that is empty or where it cannot load one. fresh tells which it is.
func (p *peer) ready(ctx context.Context, id string, calm time.Duration) (fresh bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it was not ready for a prompt within %v", startTime))
	defer cancel()
	hello, err := acp.SendRequest[greeting](p.conn, ctx, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "stint", Version: "1"},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true},
		},
	})
	if err != nil {
		return false, p.refused(ctx, "initialize", err)
	}
	if hello.Version != acp.ProtocolVersionNumber {
		return false, stint.Fail(&stint.Error{Code: stint.Invalid, Err: fmt.Errorf("%s speaks version %d of the protocol", p.spec.name(), hello.Version),
			Hint: fmt.Sprintf("version %d is needed: install another version of the agent", acp.ProtocolVersionNumber)})
	}
	p.loads, p.resumes = hello.Agent.Load, len(hello.Agent.Session.Resume) > 0 && string(hello.Agent.Session.Resume) != "null"
	for _, m := range hello.Login {
		p.login = append(p.login, m.describe(p.spec))
	}
	dir, err := filepath.Abs(p.spec.Dir)
	switch {
	case err != nil:
		return false, err
	case id != "" && p.resumes:
		_, err = acp.SendRequest[json.RawMessage](p.conn, ctx, acp.AgentMethodSessionResume, acp.ResumeSessionRequest{SessionId: acp.SessionId(id), Cwd: dir, McpServers: []acp.McpServer{}})
	case id != "" && p.loads:
		_, err = acp.SendRequest[json.RawMessage](p.conn, ctx, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{SessionId: acp.SessionId(id), Cwd: dir, McpServers: []acp.McpServer{}})
	default:
		return true, p.begin(ctx)
	}
	if err != nil {
		return false, p.refused(ctx, "load", err)
	}
	p.session = id
	if !p.resumes {
		p.calm(ctx, calm)
	}
	return false, nil
}

// calm waits until a loaded session is not told again any more. The protocol has that
// before the answer to session/load; Gemini goes on with it for a while.
func (p *peer) calm(ctx context.Context, quiet time.Duration) {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-p.old:
			timer.Reset(quiet)
		case <-timer.C:
			return
		case <-p.gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

// begin makes a new session.
func (p *peer) begin(ctx context.Context) error {
	dir, err := filepath.Abs(p.spec.Dir)
	if err != nil {
		return err
	}
	s, err := acp.SendRequest[struct {
		ID string `json:"sessionId"`
	}](p.conn, ctx, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
	if err != nil {
		return p.refused(ctx, "new", err)
	}
	p.session = s.ID
	return nil
}

// greeting is the agent's answer to initialize.
type greeting struct {
	Version int `json:"protocolVersion"`
	Agent   struct {
		Load    bool `json:"loadSession"`
		Session struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Login []loginWay `json:"authMethods"`
}

// prompt begins a turn. Its end comes as an event.
func (p *peer) prompt(ctx context.Context, text string) {
	ctx = context.WithoutCancel(ctx)
	p.turn.Store(true)
	p.prompted = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		r, err := acp.SendRequest[struct {
			Stop  string     `json:"stopReason"`
			Usage *acp.Usage `json:"usage"`
		}](p.conn, ctx, acp.AgentMethodSessionPrompt, acp.PromptRequest{
			SessionId: acp.SessionId(p.session), Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		if !p.cut() && !p.out.broken.Load() {
			p.turn.Store(false)
		}
		p.words.flush(p.log)
		switch {
		case err == nil:
			p.feed.put(event{kind: evDone, stop: r.Stop, usage: used(r.Usage)})
		case p.cut(): // its end says more
		case p.out.broken.Load():
			p.proc.Terminate(p.spec.grace())
		default:
			p.feed.put(event{kind: evFail, err: p.refused(ctx, "prompt", err)})
		}
	}(p.prompted)
}

// cut reports that nothing more comes from the agent.
func (p *peer) cut() bool {
	select {
	case <-p.conn.Done():
		return true
	default:
		return false
	}
}

// used is what a turn used.
func used(u *acp.Usage) stint.Usage {
	if u == nil {
		return stint.Usage{}
	}
	count := func(n *int) int64 { return int64(min(max(deint(n, 0), 0), 1<<50)) }
	return stint.Usage{Input: count(&u.InputTokens), Output: count(&u.OutputTokens) + count(u.ThoughtTokens),
		CacheRead: count(u.CachedReadTokens), CacheWrite: count(u.CachedWriteTokens)}
}

// cancel ends the turn, and the process with all it started; it is over when it returns.
func (p *peer) cancel() {
	p.feed.refuse()
	if p.turn.Load() && !p.cut() {
		go p.notifyCancel() // a full pipe must not hold up the kill
		timer := time.NewTimer(cancelTime)
		defer timer.Stop()
		select {
		case <-p.prompted:
		case <-p.gone:
		case <-timer.C:
		}
	}
	p.proc.Terminate(p.spec.grace())
	<-p.gone
}

func (p *peer) notifyCancel() {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": acp.AgentMethodSessionCancel, "params": acp.CancelNotification{SessionId: acp.SessionId(p.session)}})
	if err == nil {
		_, _ = p.out.Write(append(b, '\n'))
	}
}

// leave gives an agent whose turn is over the time to end by itself.
func (p *peer) leave() {
	p.proc.Stdin().Close()
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-p.gone:
		return
	case <-timer.C:
	}
	p.proc.Terminate(p.spec.grace())
	<-p.gone
}

// alive reports that the process could take a prompt.
func (p *peer) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return !p.cut() && !p.ended()
	}
}

// ended reports that the program is gone, although what it started and what it wrote may
// not be. Where the system does not tell (another one than Linux and macOS), it is false.
func (p *peer) ended() bool {
	if _, ok := proc.IdentOf(os.Getpid()); !ok {
		return false
	}
	return !proc.Alive(p.proc.Ident())
}

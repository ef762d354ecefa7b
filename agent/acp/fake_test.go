package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint/agent/acp"
)

// The fake agent plays a script for each prompt. Its folder has them as script-1,
// script-2 and so on, over all processes, and gets what it was told.

// said is what the fake was told with one prompt.
type said struct {
	How    string // new, load, resume, or same: the process had the session
	Prompt string
}

type fakeSide struct {
	dir  string
	conn *sdk.AgentSideConnection
	mu   sync.Mutex // for out
	out  io.Writer

	state sync.Mutex // for the rest
	how   string
	stop  context.CancelFunc
}

// began sets how the session came about, and returns how it had.
func (f *fakeSide) began(how string) string {
	f.state.Lock()
	defer f.state.Unlock()
	was := f.how
	f.how = how
	return was
}

func (f *fakeSide) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fakeSide) has(name string) bool {
	_, err := os.Stat(f.path(name))
	return err == nil
}

// fakeAgent is main of the fake.
func fakeAgent(dir string) int {
	f := &fakeSide{dir: dir, out: os.Stdout}
	if f.has("child") { // in a session of its own, as agents' tools are
		c := exec.Command("sleep", "3600")
		detach(c)
		if err := c.Start(); err != nil {
			return 1
		}
		_ = os.WriteFile(f.path("child.pid"), []byte(strconv.Itoa(c.Process.Pid)), 0o600)
	}
	if f.has("exits") {
		fmt.Fprintln(os.Stderr, "bad flag")
		return 4
	}
	r, w := io.Pipe() // the library begins to read before it is whole
	f.conn = sdk.NewAgentSideConnection(f, f, r)
	f.conn.SetLogger(slog.New(slog.DiscardHandler))
	go func() {
		_, _ = io.Copy(w, os.Stdin)
		w.Close()
	}()
	<-f.conn.Done()
	if f.has("lingers") {
		select {}
	}
	return 0
}

// Write keeps whole messages together with what the script prints.
func (f *fakeSide) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(p)
}

func (f *fakeSide) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	r := sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber, AgentCapabilities: sdk.AgentCapabilities{LoadSession: !f.has("no-load")}}
	if f.has("old") {
		r.ProtocolVersion = 0
	}
	if f.has("resume") {
		r.AgentCapabilities.SessionCapabilities.Resume = &sdk.SessionResumeCapabilities{}
	}
	r.AuthMethods = []sdk.AuthMethod{{Agent: &sdk.AuthMethodAgent{Id: "oauth", Name: "Fake login"}}}
	return r, nil
}

func (f *fakeSide) NewSession(context.Context, sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	if f.has("auth") {
		return sdk.NewSessionResponse{}, sdk.NewAuthRequired(nil)
	}
	n := 1
	for f.has(fmt.Sprintf("session-%d", n)) {
		n++
	}
	f.began("new")
	id := fmt.Sprintf("session-%d", n)
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(id)}, os.WriteFile(f.path(id), nil, 0o600)
}

func (f *fakeSide) LoadSession(ctx context.Context, r sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	if !f.has(string(r.SessionId)) {
		return sdk.LoadSessionResponse{}, sdk.NewInternalError("no such session")
	}
	f.began("load")
	again := func(wait time.Duration) { // what was said before, which is no news
		for _, u := range []sdk.SessionUpdate{
			sdk.UpdateUserMessageText("old question"), sdk.UpdateAgentMessageText("old answer"),
			sdk.StartToolCall("old", "old call", sdk.WithStartStatus(sdk.ToolCallStatusCompleted)),
		} {
			<-time.After(wait)
			if err := f.conn.SessionUpdate(context.WithoutCancel(ctx), sdk.SessionNotification{SessionId: r.SessionId, Update: u}); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	if f.has("late") {
		go again(50 * time.Millisecond)
	} else {
		again(0)
	}
	return sdk.LoadSessionResponse{}, nil
}

func (f *fakeSide) ResumeSession(_ context.Context, r sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	f.began("resume")
	if !f.has(string(r.SessionId)) {
		return sdk.ResumeSessionResponse{}, sdk.NewInternalError("no such session")
	}
	return sdk.ResumeSessionResponse{}, nil
}

func (f *fakeSide) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

func (f *fakeSide) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, nil
}

func (f *fakeSide) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{}, nil
}

func (f *fakeSide) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, nil
}

func (f *fakeSide) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, nil
}

func (f *fakeSide) Cancel(context.Context, sdk.CancelNotification) error {
	_ = os.WriteFile(f.path("canceled"), nil, 0o600)
	f.state.Lock()
	defer f.state.Unlock()
	f.stop()
	return nil
}

func (f *fakeSide) Prompt(ctx context.Context, r sdk.PromptRequest) (sdk.PromptResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	f.state.Lock()
	f.stop = stop
	f.state.Unlock()
	line, err := json.Marshal(said{f.began("same"), r.Prompt[0].Text.Text})
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	old, _ := os.ReadFile(f.path("said"))
	n := bytes.Count(old, []byte("\n")) + 1
	if err := os.WriteFile(f.path("said"), append(append(old, line...), '\n'), 0o600); err != nil {
		return sdk.PromptResponse{}, err
	}
	script, err := os.ReadFile(f.path(fmt.Sprintf("script-%d", n)))
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	p := &play{fakeSide: f, ctx: ctx, id: r.SessionId, resp: sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}}
	for line := range strings.Lines(string(script)) {
		if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
			return sdk.PromptResponse{}, err
		}
	}
	return p.resp, nil
}

// play is one script under way.
type play struct {
	*fakeSide
	ctx  context.Context
	id   sdk.SessionId
	skip bool // the last question was answered with a no
	resp sdk.PromptResponse
}

// word cuts the first word off.
func word(s string) (string, string) {
	w, rest, _ := strings.Cut(s, " ")
	return w, rest
}

func (p *play) update(u sdk.SessionUpdate) error {
	return p.conn.SessionUpdate(p.ctx, sdk.SessionNotification{SessionId: p.id, Update: u})
}

// line plays one line. Those that begin with "?" are for a yes, with "!" for a no.
func (p *play) line(text string) error {
	if rest, ok := strings.CutPrefix(text, "?"); ok {
		if text = rest; p.skip {
			return nil
		}
	}
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		if text = rest; !p.skip {
			return nil
		}
	}
	verb, rest := word(text)
	switch verb {
	case "text":
		return p.update(sdk.UpdateAgentMessageText(strings.ReplaceAll(rest, `\n`, "\n")))
	case "think":
		return p.update(sdk.UpdateAgentThoughtText(rest))
	case "plan":
		return p.update(sdk.UpdatePlan(sdk.PlanEntry{Content: rest, Priority: "high", Status: "in_progress"}))
	case "tool", "begin", "end", "fail", "edit", "ask":
		return p.call(verb, rest)
	case "read":
		r, err := p.conn.ReadTextFile(p.ctx, sdk.ReadTextFileRequest{SessionId: p.id, Path: rest})
		if err != nil {
			return p.update(sdk.UpdateAgentMessageText("read: " + err.Error()))
		}
		return p.update(sdk.UpdateAgentMessageText(r.Content))
	case "write":
		path, content := word(rest)
		if _, err := p.conn.WriteTextFile(p.ctx, sdk.WriteTextFileRequest{SessionId: p.id, Path: path, Content: content}); err != nil {
			return p.update(sdk.UpdateAgentMessageText("write: " + err.Error()))
		}
		return nil
	case "cost":
		amount, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			return err
		}
		return p.update(sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{SessionUpdate: "usage_update", Cost: &sdk.Cost{Amount: amount, Currency: "USD"}}})
	case "usage":
		p.resp.Usage = &sdk.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}
		return nil
	case "stop":
		p.resp.StopReason = sdk.StopReason(rest)
		return nil
	case "error":
		return &sdk.RequestError{Code: -32603, Message: rest}
	}
	return p.deed(verb, rest)
}

// call plays what is about a call: VERB ID REST.
func (p *play) call(verb, rest string) error {
	name, rest := word(rest)
	id := sdk.ToolCallId(name)
	switch verb {
	case "tool": // KIND INPUT TITLE
		kind, rest := word(rest)
		input, title := word(rest)
		opts := []sdk.ToolCallStartOpt{sdk.WithStartKind(sdk.ToolKind(kind)), sdk.WithStartStatus(sdk.ToolCallStatusPending)}
		if input != "-" {
			opts = append(opts, sdk.WithStartRawInput(json.RawMessage(input)))
		}
		return p.update(sdk.StartToolCall(id, title, opts...))
	case "begin":
		return p.update(sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case "end":
		return p.update(sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusCompleted),
			sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(rest))})))
	case "fail":
		return p.update(sdk.UpdateToolCall(id, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed), sdk.WithUpdateRawOutput(map[string]any{"error": rest})))
	case "edit": // PATH NEW
		path, text := word(rest)
		return p.update(sdk.UpdateToolCall(id, sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolDiffContent(path, strings.ReplaceAll(text, `\n`, "\n"), "old\n")})))
	}
	options := []sdk.PermissionOption{
		{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"},
		{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes", OptionId: "yes"},
		{Kind: sdk.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"},
	}
	if rest == "forever" {
		options = options[:1]
	}
	r, err := p.conn.RequestPermission(p.ctx, sdk.RequestPermissionRequest{SessionId: p.id, Options: options, ToolCall: sdk.ToolCallUpdate{ToolCallId: id}})
	if err != nil {
		return err
	}
	p.skip = r.Outcome.Selected == nil || r.Outcome.Selected.OptionId != "yes"
	if r.Outcome.Cancelled != nil {
		p.resp.StopReason = sdk.StopReasonCancelled
	}
	return nil
}

// deed plays what happens outside of the protocol.
func (p *play) deed(verb, rest string) error {
	switch verb {
	case "effect":
		f, err := os.OpenFile(p.path("effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(rest + "\n")
		return err
	case "touch":
		return os.WriteFile(p.path(rest), nil, 0o600)
	case "both": // calls that ask permission at once
		var wait sync.WaitGroup
		for _, id := range strings.Fields(rest) {
			q := *p
			wait.Go(func() {
				for _, line := range []string{"ask " + id, "?begin " + id, "?effect " + id, "?end " + id + " ok", "!fail " + id + " no"} {
					if err := q.line(line); err != nil {
						fmt.Fprintln(os.Stderr, err)
					}
				}
			})
		}
		wait.Wait()
		return nil
	case "pid":
		return os.WriteFile(p.path("pid"), []byte(strconv.Itoa(os.Getpid())), 0o600)
	case "await":
		for !p.has(rest) {
			<-time.After(5 * time.Millisecond)
		}
		return nil
	case "print":
		_, err := fmt.Fprintln(p.fakeSide, rest)
		return err
	case "big": // KIND BYTES
		kind, size := word(rest)
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		begin := map[string]string{
			"news":    `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`,
			"request": `{"jsonrpc":"2.0","id":99,"method":"fs/read_text_file","params":{"path":"`,
			"answer":  `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"`,
		}[kind]
		_, err = fmt.Fprintln(p.fakeSide, begin+strings.Repeat("x", n)+`"}}`)
		return err
	case "hang":
		<-p.ctx.Done()
		if rest == "hard" {
			select {}
		}
		p.resp.StopReason = sdk.StopReasonCancelled
		return nil
	case "exit":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "fake: exits")
		os.Exit(n)
	}
	return fmt.Errorf("the fake knows no %q", verb)
}

// fake is the folder of a fake agent, and the Spec that runs it.
type fake struct {
	t    *testing.T
	dir  string
	work string
	spec acp.Spec
}

// newFake makes one with a script for each prompt.
func newFake(t *testing.T, scripts ...string) *fake {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, dir: t.TempDir(), work: t.TempDir()}
	f.spec = acp.Spec{Command: []string{exe}, Dir: f.work, Env: map[string]string{"FAKE_ACP": f.dir, "GORACE": "atexit_sleep_ms=0"}}
	for i, s := range scripts {
		f.write(fmt.Sprintf("script-%d", i+1), strings.ReplaceAll(s, "WORK", f.work))
	}
	return f
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func (f *fake) read(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	return string(b)
}

// said is what the fake was told, prompt after prompt.
func (f *fake) said() []said {
	f.t.Helper()
	var all []said
	for line := range strings.Lines(f.read("said")) {
		var s said
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// how is the way that each prompt's session came about.
func (f *fake) how() string {
	var out []string
	for _, s := range f.said() {
		out = append(out, s.How)
	}
	return strings.Join(out, " ")
}

// kill ends the fake, and waits until it is no more.
func (f *fake) kill() {
	f.t.Helper()
	pid, err := strconv.Atoi(f.read("pid"))
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "gone: the agent", func() bool { return !running(pid) })
}

// gone waits until the fake's child is no more.
func (f *fake) gone() {
	f.t.Helper()
	pid, err := strconv.Atoi(f.read("child.pid"))
	if err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "gone: what the agent started", func() bool { return !running(pid) })
}

// eventually waits for what processes do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

func lines(s ...string) string { return strings.Join(slices.Concat(s, []string{""}), "\n") }

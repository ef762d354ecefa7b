package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint"
)

// maxFile bounds a file that is read or written for an agent, in bytes.
const maxFile = 4 << 20

// fileCall is a file that the agent waits for.
type fileCall struct {
	req    fileRequest
	answer chan fileAnswer // has room for one
	once   sync.Once
}

type fileAnswer struct {
	content string
	err     string // for the agent
}

func (f *fileCall) writes() bool { return f.req.Content != nil }

func (f *fileCall) tell(a fileAnswer)  { f.once.Do(func() { f.answer <- a }) }
func (f *fileCall) fail(reason string) { f.tell(fileAnswer{err: reason}) }

// call is the step that the file is outside of a call.
func (f *fileCall) call(s *Spec) call {
	in := struct {
		Path   string `json:"path"`
		Line   *int   `json:"line,omitempty"`
		Limit  *int   `json:"limit,omitempty"`
		Bytes  *int   `json:"bytes,omitempty"`
		SHA256 string `json:"sha256,omitempty"`
	}{Path: cutRunes(clean(f.req.Path), 4000), Line: f.req.Line, Limit: f.req.Limit}
	c := call{Name: acp.ClientMethodFsReadTextFile, Effect: stint.Read}
	if f.writes() {
		n := len(*f.req.Content)
		in.Bytes, in.SHA256 = &n, digest(*f.req.Content)
		c.Name, c.Effect = acp.ClientMethodFsWriteTextFile, stint.Idempotent
		if s.Approve[kindEdit] == Always {
			c.Ask = cutRunes(oneLine(fmt.Sprintf("write %d bytes to %s", n, f.req.Path)), maxAsk)
		}
	}
	if out, err := stint.Marshal(in); err == nil {
		c.Input = out
	}
	return c
}

// serve reads or writes the file and tells the agent.
func (f *fileCall) serve(dir string) file {
	x := file{Read: cutRunes(clean(f.req.Path), 4000)}
	var a fileAnswer
	var err error
	if f.writes() {
		x.Wrote, x.Read, x.Bytes = x.Read, "", len(*f.req.Content)
		err = writeFile(dir, f.req.Path, *f.req.Content)
	} else if a.content, err = readFile(dir, &f.req); err == nil {
		x.Bytes = len(a.content)
	}
	if err != nil {
		a.err, x.Bytes = oneLine(err.Error()), 0
		x.Error = a.err
	}
	f.tell(a)
	return x
}

// open opens the session's folder, and returns the path of a file in it.
func open(dir, path string) (*os.Root, string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	if !filepath.IsAbs(path) {
		return nil, "", fmt.Errorf("%s is no absolute path", path)
	}
	name, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(name) {
		if real, rerr := filepath.EvalSymlinks(base); rerr == nil { // agents may resolve it themselves
			name, err = filepath.Rel(real, path)
		}
	}
	if err != nil || !filepath.IsLocal(name) {
		return nil, "", fmt.Errorf("%s is outside of the session's folder", path)
	}
	root, err := os.OpenRoot(base)
	return root, name, err
}

func readFile(dir string, req *fileRequest) (string, error) {
	root, name, err := open(dir, req.Path)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", req.Path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("%s is larger than %d bytes", req.Path, maxFile)
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if req.Line == nil && req.Limit == nil {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	first := min(max(deint(req.Line, 1), 1)-1, len(lines))
	last := len(lines)
	if n := deint(req.Limit, -1); n >= 0 {
		last = min(first+min(n, len(lines)), len(lines))
	}
	return strings.Join(lines[first:last], ""), nil
}

func deint(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}

func writeFile(dir, path, content string) error {
	if len(content) > maxFile {
		return fmt.Errorf("%d bytes are more than %d", len(content), maxFile)
	}
	root, name, err := open(dir, path)
	if err != nil {
		return err
	}
	defer root.Close()
	if fi, err := root.Stat(name); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	return root.WriteFile(name, []byte(content), 0o644)
}

// fileAsked serves one request of the agent's, once the loop comes to it.
func (p *peer) fileAsked(ctx context.Context, params json.RawMessage, write bool) (any, *acp.RequestError) {
	f := &fileCall{answer: make(chan fileAnswer, 1)}
	err := json.Unmarshal(params, &f.req)
	if err == nil && f.req.Path == "" {
		err = errors.New("path is required")
	}
	if err == nil && write && f.req.Content == nil {
		err = errors.New("content is required")
	}
	if err != nil || p.quiet() {
		p.took()
		if err == nil {
			err = errors.New("no turn is under way")
		}
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	if !write {
		f.req.Content = nil
	}
	x := newPart()
	x.file = f
	p.feed.put(event{kind: evBegin, part: x})
	p.took()
	var a fileAnswer
	select {
	case a = <-f.answer:
	case <-ctx.Done():
		f.fail("the request is canceled")
		a = <-f.answer
	}
	if a.err != "" {
		return nil, &acp.RequestError{Code: -32603, Message: a.err}
	}
	if write {
		return acp.WriteTextFileResponse{}, nil
	}
	return acp.ReadTextFileResponse{Content: a.content}, nil
}

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/tool"
)

// maxQueue bounds what waits to be written to a server that does not read, in bytes.
const maxQueue = 64 << 20

// program is a server's process and the connection to it. It is an SDK transport for one
// Connect, in place of the SDK's own, which would end the process alone and leave what it
// has started.
type program struct {
	proc *proc.Proc
	log  func(line []byte)

	msgs   chan jsonrpc.Message
	closed chan struct{}
	once   sync.Once
	readOf error // why reading ended; set before msgs is closed

	mu      sync.Mutex
	queue   [][]byte
	queued  int
	wake    chan struct{} // of the writer
	told    chan struct{} // a cancel was written
	noise   int           // lines that were no messages
	errTail []byte        // the end of the error stream
}

var (
	_ mcp.Transport  = (*program)(nil)
	_ mcp.Connection = (*program)(nil)
)

// startProgram starts a server from a Spec whose variables are put in.
func startProgram(ctx context.Context, s Spec, log func(line []byte)) (*program, error) {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok && s.Env[name] == "" {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range s.Env {
		env = append(env, name+"="+v)
	}
	running, err := proc.Start(ctx, proc.Spec{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Dir, Env: env, Name: "mcp-" + s.Name,
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		return nil, err
	}
	p := &program{proc: running, log: log, msgs: make(chan jsonrpc.Message), closed: make(chan struct{}),
		wake: make(chan struct{}, 1), told: make(chan struct{}, 1)}
	go p.readMessages()
	go p.readErrors()
	go p.writeMessages()
	return p, nil
}

// Connect implements mcp.Transport.
func (p *program) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements mcp.Connection.
func (p *program) SessionID() string { return "" }

// Read implements mcp.Connection.
func (p *program) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, io.EOF
	case m, ok := <-p.msgs:
		if !ok {
			return nil, p.readOf
		}
		return m, nil
	}
}

// Write implements mcp.Connection. It does not wait for the server to read.
func (p *program) Write(_ context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	p.mu.Lock()
	full := p.queued+len(b) > maxQueue
	if !full {
		p.queue, p.queued = append(p.queue, append(b, '\n')), p.queued+len(b)+1
	}
	p.mu.Unlock()
	if full {
		return errors.New("it does not read what it is sent")
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// Close implements mcp.Connection: the server sees the end of its input.
func (p *program) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *program) writeMessages() {
	defer p.proc.Stdin().Close()
	for {
		p.mu.Lock()
		batch := p.queue
		p.queue, p.queued = nil, 0
		p.mu.Unlock()
		for _, b := range batch {
			if _, err := p.proc.Stdin().Write(b); err != nil {
				return // the end of its output tells why
			}
			if bytes.Contains(b, []byte(`"method":"notifications/cancelled"`)) {
				select {
				case p.told <- struct{}{}:
				default:
				}
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-p.wake:
		case <-p.closed:
			return
		case <-p.proc.Done():
			return
		}
	}
}

// readMessages hands on what is a message and passes over what is not: servers write
// greetings and debug lines where only messages belong.
func (p *program) readMessages() {
	defer close(p.msgs)
	r := bufio.NewReaderSize(p.proc.Stdout(), 64<<10)
	p.readOf = io.EOF
	for {
		line, end, size, err := readLine(r, maxMessage)
		for _, m := range p.messages(line, end, size) {
			select {
			case p.msgs <- m:
			case <-p.closed:
				drainTo(p.proc.Stdout())
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// messages are those of one line. A message that is too large to be read is an error
// for the call that it answers, if that can be seen, so that nobody waits for it.
func (p *program) messages(line, end []byte, size int64) []jsonrpc.Message {
	if size > int64(len(line)) {
		id, ok := lastID(end)
		if !ok {
			id, ok = firstID(line)
		}
		if ok {
			line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the answer has %d bytes, and stint reads at most %d"}}`, id, size, maxMessage)
		}
	}
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0:
		return nil
	case trimmed[0] == '[': // a batch, as servers of 2025-03-26 may send
		var batch []json.RawMessage
		var out []jsonrpc.Message
		if json.Unmarshal(trimmed, &batch) == nil {
			for _, one := range batch {
				if m, err := jsonrpc.DecodeMessage(mend(one)); err == nil {
					out = append(out, m)
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	case trimmed[0] == '{':
		if m, err := jsonrpc.DecodeMessage(mend(trimmed)); err == nil {
			return []jsonrpc.Message{m}
		}
	}
	p.mu.Lock()
	p.noise++
	p.mu.Unlock()
	p.log(trimmed[:min(len(trimmed), maxLogLine)])
	return nil
}

// maxLogLine bounds a line that a server logs, in bytes.
const maxLogLine = 4 << 10

// keptErrors is how much of the end of the error stream is kept for errors.
const keptErrors = 2 << 10

func (p *program) readErrors() {
	lines := proc.Lines(p.proc.Stderr(), maxLogLine)
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.errTail = append(append(p.errTail, line.Data...), '\n')
		p.errTail = p.errTail[max(0, len(p.errTail)-keptErrors):]
		p.mu.Unlock()
		p.log(line.Data)
	}
}

// end ends the process and all that it started: the end of its input first, then SIGTERM,
// then SIGKILL. It returns when they are gone, within five seconds.
func (p *program) end() {
	_ = p.Close()
	select {
	case <-p.proc.Done():
	case <-time.After(closeTime):
		p.proc.Terminate(termTime)
		<-p.proc.Done()
	}
}

const (
	tellTime  = 250 * time.Millisecond // for a cancel to be written
	closeTime = 500 * time.Millisecond // for a server to end by itself
	termTime  = 1500 * time.Millisecond
)

// cancelTold waits a little until the server has been sent the cancel of a call.
func (p *program) cancelTold() {
	select {
	case <-p.told:
	case <-p.proc.Done():
	case <-time.After(tellTime):
	}
}

// epitaph says how the process ended, and what it wrote last.
func (p *program) epitaph() string {
	how := "it is still there"
	select {
	case <-p.proc.Done():
		x := p.proc.Wait()
		switch {
		case x.Killed:
			how = "stint ended it"
		case x.Signal != "":
			how = "it was ended by " + x.Signal
		default:
			how = fmt.Sprintf("it ended with exit status %d", x.Code)
		}
	case <-time.After(closeTime):
	}
	p.proc.CatchUp(closeTime) // its last words may not have been read yet
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, _ := tool.Clean(bytes.TrimSpace(p.errTail)); last != "" {
		how += ", and wrote " + shown(last)
	}
	return how
}

func drainTo(r io.Reader) { _, _ = io.Copy(io.Discard, r) }

// readLine reads one line. Of a longer one than limit the beginning and the end are kept.
func readLine(r *bufio.Reader, limit int) (line, end []byte, size int64, err error) {
	const kept = 256
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		line = append(line, part[:min(len(part), limit-len(line))]...)
		if size > int64(limit) {
			end = append(end, part[max(0, len(part)-kept):]...)
			end = end[max(0, len(end)-kept):]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, end, size, err
		}
	}
}

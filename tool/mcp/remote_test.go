package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/mcp"
)

// sdkServer is a server of the SDK's, as a good one is.
func sdkServer(effects *atomic.Int64, canceled chan<- error, release <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "effect", Description: "counts", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"maximum":18446744073709551615}}}`),
		Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Do string }
		_ = json.Unmarshal(r.Params.Arguments, &args)
		switch args.Do {
		case "hang":
			effects.Add(1)
			select {
			case <-ctx.Done():
				canceled <- ctx.Err()
			case <-release:
			}
			return nil, errors.New("over")
		case "ask":
			_, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}}}`)})
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("elicitation: ", err)}}}, nil
		case "structured":
			return &sdk.CallToolResult{StructuredContent: json.RawMessage(`{"id":2512292042121000001}`), Content: []sdk.Content{}}, nil
		case "fail":
			return nil, errors.New("it broke")
		}
		effects.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint("done ", string(r.Params.Arguments), " ", r.Params.Meta["idempotency_key"])}}}, nil
	})
	return s
}

func openURL(t *testing.T, url string, change func(*mcp.Spec)) *mcp.Server {
	t.Helper()
	spec := mcp.Spec{Name: "good", Transport: mcp.HTTP, URL: url, Trust: true, Allow: []string{"127.0.0.1"}, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}}
	if change != nil {
		change(&spec)
	}
	s, err := mcp.Open(t.Context(), spec, mcp.Options{Lookup: func(string) (string, bool) { return canary, true }, StartTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func first(t *testing.T, s *mcp.Server) tool.Tool {
	t.Helper()
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) == 0 {
		t.Fatal(tools, err)
	}
	return tools[0]
}

func TestRemote(t *testing.T) {
	for name, opts := range map[string]*sdk.StreamableHTTPOptions{
		"events":    {},
		"JSON":      {JSONResponse: true},
		"stateless": {Stateless: true, JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			var effects, unauthorized atomic.Int64
			canceled := make(chan error, 1)
			release := make(chan struct{})
			server := sdkServer(&effects, canceled, release)
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, opts)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+canary {
					unauthorized.Add(1)
				}
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			t.Cleanup(func() { close(release) })
			one := first(t, openURL(t, srv.URL, nil))
			if one.Class() != stint.Idempotent || !strings.Contains(string(one.Schema), "18446744073709551615") {
				t.Errorf("got %s and %s", one.Class(), one.Schema)
			}
			for args, want := range map[string]string{
				`{"n":18446744073709551615}`: `done {"n":18446744073709551615} k3y`,
				`{"do":"structured"}`:        `{"id":2512292042121000001}`,
				`{"do":"ask"}`:               "elicitation: ",
				`{"do":"fail"}`:              "it broke",
			} {
				out, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(args), Key: "k3y"})
				if err != nil || !strings.Contains(out.Text, want) || strings.Contains(out.Text, "<nil>") || out.Error != strings.Contains(args, "fail") {
					t.Errorf("%s: got %q, %v, %v", args, out.Text, out.Error, err)
				}
			}
			if unauthorized.Load() > 0 {
				t.Errorf("%d requests had no header", unauthorized.Load())
			}
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			before := effects.Load()
			go func() {
				_, err := one.Caller.Call(ctx, tool.Call{Args: json.RawMessage(`{"do":"hang"}`)})
				result <- err
			}()
			await(t, "the call", func() bool { return effects.Load() > before })
			cancel()
			if err := <-result; known(err) != "open" || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if !opts.Stateless { // such a server keeps nothing that a cancel could be for
				select {
				case <-canceled:
				case <-time.After(patience):
					t.Error("the server was not told of the cancel")
				}
			}
			if out, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{}`)}); err != nil || out.Error {
				t.Errorf("after it: %+v, %v", out, err)
			}
		})
	}
}

// TestRemoteTrouble: what is known of a call when something is wrong between here and there.
func TestRemoteTrouble(t *testing.T) {
	var effects atomic.Int64
	server := sdkServer(&effects, nil, nil)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	var mu sync.Mutex
	trouble := "" // what happens to the next call
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := trouble
		mu.Unlock()
		switch now {
		case "":
			handler.ServeHTTP(w, r)
		case "reset":
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				conn.Close()
			}
		case "garbage":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "<html>")
		case "flood":
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "elsewhere":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		case "429":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(srv.Close)
	s := openURL(t, srv.URL, nil)
	one := first(t, s)
	for _, tt := range []struct{ trouble, known, text string }{
		{"429", "not begun", "HTTP 429"},
		{"401", "definite", "HTTP 401"},
		{"reset", "open", ""},
		{"garbage", "open", ""},
		{"flood", "open", "more than 16777216 bytes"},
		{"elsewhere", "open", ""},
	} {
		set := func(now string) {
			mu.Lock()
			trouble = now
			mu.Unlock()
		}
		set("")
		await(t, "a good call", func() bool {
			out, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
			return err == nil && !out.Error
		})
		set(tt.trouble)
		_, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
		if err == nil || known(err) != tt.known || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v, which is %s", tt.trouble, err, known(err))
		}
	}
	srv.Close()
	_, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
	if known(err) != "not begun" {
		t.Errorf("nobody there: got %v, which is %s", err, known(err))
	}
}

// TestRemoteRefused: a server's address is looked at like a tool's.
func TestRemoteRefused(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(srv.Close)
	_, err := openURL(t, srv.URL, func(s *mcp.Spec) { s.Allow = nil }).Tools(t.Context())
	if !errors.Is(err, stint.Unavailable) || !strings.Contains(err.Error(), "127.0.0.1 is this machine") || asked.Load() != 0 {
		t.Errorf("got %v, and it was asked %d times", err, asked.Load())
	}
}

// TestRemoteRedirect: what the configuration has for one server is not sent to another.
func TestRemoteRedirect(t *testing.T) {
	got := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization") + r.Header.Get("Mcp-Session-Id")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}))
	t.Cleanup(other.Close)
	server := sdkServer(new(atomic.Int64), nil, nil)
	// Without the newest version of the protocol a client asks for a stream with GET.
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	one := first(t, openURL(t, srv.URL, nil))
	if out, err := one.Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{}`)}); err != nil || out.Error {
		t.Fatal(out, err)
	}
	select {
	case sent := <-got:
		if sent != "" {
			t.Errorf("the other server got %q", sent)
		}
	case <-time.After(patience):
		t.Error("no redirect was followed")
	}
}

// Command http-agent is an agent behind a URL, in Go and without an SDK: it throws a die
// each loop until it shows a six. The server keeps nothing; the throws are the session's
// state, and each is a step that happens once, whatever dies.
//
//	WEBHOOK_SECRET=whsec_… go run ./examples/http-agent
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	agenthttp "github.com/stint-dev/stint/agent/http"
)

// request is one request to the agent: how its loop begins, and the answers for the
// steps of it.
type request struct {
	w       io.Writer
	state   []int
	answers map[int64]line
	steps   int64
}

// line is what the agent reads of a message.
type line struct {
	Type   string          `json:"type"`
	ID     int64           `json:"id"`
	Result json.RawMessage `json:"result"`
	State  json.RawMessage `json:"state"`
}

func (r *request) say(message map[string]any) { _ = json.NewEncoder(r.w).Encode(message) }

// step declares a step and returns its result, which do gives if it is to be done now.
// Without an answer in this request it is false: leave, and another request comes.
func (r *request) step(name, effect string, do func() int) (n int, ok bool) {
	r.steps++
	r.say(map[string]any{"type": "step", "id": r.steps, "name": name, "effect": effect})
	switch a := r.answers[r.steps]; a.Type {
	case "proceed":
		n = do()
		r.say(map[string]any{"type": "result", "id": r.steps, "result": n})
		return n, true
	case "result":
		return n, json.Unmarshal(a.Result, &n) == nil
	}
	return 0, false
}

// loop is the agent.
func (r *request) loop(throw func() int) {
	n, ok := r.step("throw a die", "once", throw)
	if !ok {
		return
	}
	throws := append(r.state, n)
	r.say(map[string]any{"type": "state", "replace": throws})
	if n == 6 {
		r.say(map[string]any{"type": "end", "outcome": "complete", "result": len(throws)})
		return
	}
	r.say(map[string]any{"type": "end", "outcome": "continue"})
}

// handler serves the agent to whoever signs with secret.
func handler(secret []byte, throw func() int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
		if err == nil {
			err = agenthttp.Verify(secret, q.Header, body, time.Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		r := &request{w: w, answers: map[int64]line{}}
		for lines := bufio.NewReader(bytes.NewReader(body)); ; {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if l.Type != "loop" {
				r.answers[l.ID] = l
			} else if err := json.Unmarshal(l.State, &r.state); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		w.Header().Set("Content-Type", agenthttp.ContentType)
		r.loop(throw)
	})
}

func main() {
	secret, err := agenthttp.ParseSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	s := &http.Server{Addr: "127.0.0.1:8099", ReadHeaderTimeout: 10 * time.Second,
		Handler: handler(secret, func() int { return rand.IntN(6) + 1 })}
	log.Fatal(s.ListenAndServe())
}

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
)

// TestThrows has the agent throw 2, 5 and 6: three loops of two requests each.
func TestThrows(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	dice, requests := []int{2, 5, 6}, 0
	agent := handler(secret, func() int {
		n := dice[0]
		dice = dice[1:]
		return n
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++ // one comes after the other
		agent.ServeHTTP(w, r)
	}))
	defer s.Close()
	loop, err := agenthttp.New(agenthttp.Spec{URL: s.URL, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	store := mem.New()
	defer store.Close()
	def := engine.Agent{Name: "thrower", Loop: loop}
	e, err := engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{def}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	made, err := e.Start(t.Context(), engine.Request{Agent: def})
	if err != nil {
		t.Fatal(err)
	}
	ses, err := e.Run(t.Context(), made.ID)
	if err != nil || ses.Status != stint.Completed || ses.Totals.Loops != 3 || ses.Totals.Steps != 3 || requests != 6 {
		t.Fatalf("the session is %s (%s) after %+v and %d requests, %v", ses.Status, ses.Reason, ses.Totals, requests, err)
	}
}

func TestUnsigned(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"type":"loop","state":null}`+"\n"))
	handler(bytes.Repeat([]byte{7}, 32), func() int { t.Error("a die was thrown"); return 6 }).ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("an unsigned request was answered by %d", w.Code)
	}
}

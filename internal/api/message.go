package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/ident"
)

// What becomes of a message to a session that is at work.
const (
	queue     = "queue"
	reject    = "reject"
	interrupt = "interrupt"
	replace   = "replace"
)

type messageBody struct {
	Text string `json:"text" minLength:"1" doc:"Text or JSON."`
	Busy string `json:"busy,omitempty" enum:"queue,reject,interrupt,replace" doc:"What happens while the session is at work; queue without it."`
}

type messageInput struct {
	SessionPath
	KeyHeader
	Body messageBody
}

// message sends a message, once for each key.
func (s *server) message(ctx context.Context, in *messageInput) (*sessionOutput, error) {
	if err := tooLong(len(in.Body.Text)); err != nil {
		return nil, err
	}
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	id := in.id(ctx)
	sum, err := digest("message "+row.Session.ID.String(), in.Body)
	if err != nil {
		return nil, err
	}
	if id != "" {
		if out, err := s.before(ctx, id, sum); err != nil || out != nil && in.Body.Busy != replace {
			return out, err
		}
	}
	if atWork(&row) {
		switch in.Body.Busy {
		case reject:
			e := stint.Conflict.Errorf("message", "%s (%s) is at work", row.Session.Name, row.Short)
			e.Hint = "send it again later, or with another value of busy"
			return nil, e
		case replace:
			return s.replace(ctx, &row, in.Body.Text, id, sum)
		case interrupt:
			if err := s.interrupt(ctx, &row, id); err != nil {
				return nil, err
			}
		}
	}
	if err := s.send(ctx, &row, in.Body, id, sum); err != nil {
		return nil, err
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}

// atWork reports whether a message would have to wait.
func atWork(row *stint.Row) bool {
	w := row.Session.Wait
	return row.Session.Status != stint.Waiting || w == nil || w.For != stint.ForMessage || row.Unread > 0
}

// send puts the message into the inbox.
func (s *server) send(ctx context.Context, row *stint.Row, b messageBody, id string, sum stint.Hash) error {
	now := time.Now()
	o := control.Order{Kind: stint.Prompt, ID: id, From: actor(ctx), Body: []byte(b.Text)}
	if id == "" {
		o.ID = ident.New().String()
	} else {
		key := requestKey(id, sum, now)
		key.Ref = row.Session.ID.String()
		o.Keys = append(o.Keys, key)
	}
	if b.Busy == reject { // of two that found it idle, one gets in
		o.Keys = append(o.Keys, stint.Key{Scope: "turn", Name: fmt.Sprintf("%s/%d", row.Session.ID, row.Session.Head), Digest: sha256.Sum256([]byte(o.ID)),
			Ref: row.Session.ID.String(), Expires: now.Add(keyLife)})
	}
	return s.desk().Give(ctx, row, o)
}

// interrupt cancels the turn that the message is to take the place of.
func (s *server) interrupt(ctx context.Context, row *stint.Row, id string) error {
	o := control.Order{Kind: stint.Interrupt, From: actor(ctx)}
	if id != "" {
		o.ID = id + ":interrupt"
	}
	if row.Session.Status.Ended() {
		return nil // what is sent now says so
	}
	return s.desk().Give(settled(ctx), row, o)
}

// replace begins another session of the same agent with the message, and stops this one.
// The other one begins first: if the answer is lost between the two, the request is
// repeated, and finds it.
func (s *server) replace(ctx context.Context, row *stint.Row, text, id string, sum stint.Hash) (*sessionOutput, error) {
	out, err := s.begin(ctx, StartRequest{Agent: row.Session.Agent.Name, Input: []byte(text), Labels: row.Session.Labels, Actor: actor(ctx)}, id, sum)
	if err != nil || row.Session.Status.Ended() {
		return out, err
	}
	o := control.Order{Kind: stint.Stop, From: actor(ctx)}
	o.Command.Reason = "replaced by " + out.Body.Name
	if id != "" {
		o.ID = id + ":stop"
	}
	return out, s.desk().Give(settled(ctx), row, o)
}

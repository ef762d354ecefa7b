package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// kinds are the entries that may be events.
func kinds() []stint.Kind {
	return []stint.Kind{stint.SessionCreated, stint.SessionWaiting, stint.ApprovalRequested, stint.SessionEnded}
}

// happened is what an entry tells of; nil: nothing that anybody is told of.
type happened struct {
	event    endpoint.Event
	status   stint.Status
	reason   string
	wait     *stint.Wait
	approval *Question
}

// Question is a question to a person.
type Question struct {
	ID    string    `json:"id"`
	Step  string    `json:"step"` // its name, or the verb of the order
	Text  string    `json:"text"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"` // when it was asked; in a reminder only
}

// read says what an entry tells of.
func read(e *stint.Entry) (*happened, error) {
	switch e.Kind {
	case stint.SessionCreated:
		return &happened{event: endpoint.Created, status: stint.Pending}, nil
	case stint.SessionWaiting:
		d, err := journal.Decode[journal.Parked](e)
		if err != nil {
			return nil, err
		}
		if w := d.Waiting; w.For == stint.ForMessage || endpoint.NeedsPerson(w.For) { // else it is nobody's move
			return &happened{event: endpoint.Waiting, status: stint.Waiting, wait: &w}, nil
		}
	case stint.ApprovalRequested:
		d, err := journal.Decode[journal.ApprovalRequested](e)
		if err != nil {
			return nil, err
		}
		status := stint.Waiting
		if e.Pos.Step == 0 { // it is about an order, and the session is as it was
			status = ""
		}
		return &happened{event: endpoint.Asked, status: status, approval: &Question{ID: ident.ApprovalID(e.Session, e.Seq), Step: d.Name, Text: d.Text, Why: d.Why}}, nil
	case stint.SessionEnded:
		d, err := journal.Decode[journal.Ended](e)
		if err != nil {
			return nil, err
		}
		event := endpoint.Ended
		if d.Outcome == stint.Failed {
			event = endpoint.Failed
		}
		return &happened{event: event, status: cmp.Or(d.Outcome, stint.Completed), reason: d.Reason}, nil
	}
	return nil, nil
}

// eventID is the id of the event that an entry is: the same whenever it is sent.
func eventID(session stint.ID, seq stint.Seq) string { return fmt.Sprintf("evt_%s_%d", session, seq) }

// Message is what is told. All of it follows from the entry and from what never changes of
// its session, so that it is the same whenever it is sent.
type Message struct {
	Type endpoint.Event `json:"type"`
	At   time.Time      `json:"timestamp"`
	Data Data           `json:"data"`
}

// Data is what a message says of the session.
type Data struct {
	Session  stint.ID          `json:"session"`
	Seq      stint.Seq         `json:"seq"` // of the entry; of a reminder, of that with which the wait began or that asks about the order
	Name     string            `json:"name"`
	Agent    string            `json:"agent"`
	Trigger  stint.Trigger     `json:"trigger"`
	Labels   map[string]string `json:"labels,omitempty"`
	Status   stint.Status      `json:"status,omitempty"` // after the event; the session may have gone on. None for a question about an order, which changes nothing
	Reason   string            `json:"reason,omitempty"`
	Waiting  *stint.Wait       `json:"waiting,omitempty"`
	Approval *Question         `json:"approval,omitempty"`
	Reminder int               `json:"reminder,omitempty"` // which one it is of this wait or order, from 1 on
}

// notification is what is sent. at is when it happened.
func (h *happened) notification(s *stint.Session, p *Pending, at time.Time) (*Notification, error) {
	return newNotification(p.id(), Message{Type: h.event, At: at.UTC(), Data: Data{
		Session: s.ID, Seq: p.Seq, Name: s.Name, Agent: s.Agent.Name, Trigger: s.Trigger, Labels: s.Labels,
		Status: h.status, Reason: h.reason, Waiting: h.wait, Approval: h.approval, Reminder: p.Nth,
	}})
}

// newNotification is a message as it is sent.
func newNotification(id string, m Message) (*Notification, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, stint.Internal.Errorf("notify", "the event %s is no JSON: %v", id, err)
	}
	return &Notification{ID: id, Message: m, Body: b}, nil
}

// NewSample is a notification of nothing, to try a channel with.
func NewSample() (*Notification, error) {
	id := ident.New()
	return newNotification(eventID(id, 0), Message{Type: endpoint.Sample, At: clock(), Data: Data{Session: id, Name: "sample", Agent: "sample", Status: stint.Pending}})
}

package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
)

// The scopes of what hooks write.
const (
	deliveries = "delivery" // a line for each delivery
	repeats    = "repeat"   // bodies, of hooks whose deliveries have no id that is verified
	routes     = "route"    // the sessions of a hook's keys, one after the other
	orders     = "order"    // the times that the events of a key say they have
)

// deliveryLife is how long a delivery is remembered: senders repeat for three days at
// most, people by hand for longer.
const deliveryLife = 30 * 24 * time.Hour

// Result is what became of a delivery.
type Result string

// The results.
const (
	Created  Result = "created"  // it began a session
	Messaged Result = "messaged" // the open session of its key got it
	Ignored  Result = "ignored"  // the hook's condition did not hold
	Dropped  Result = "dropped"  // an event of its key that is newer was there before
)

// Delivered is a line of a hook's ledger.
type Delivered struct {
	ID       string      `json:"id"`
	Hook     string      `json:"hook"`
	At       time.Time   `json:"at"`
	Result   Result      `json:"result"`
	Reason   string      `json:"reason,omitempty"`
	Event    string      `json:"event,omitempty"`
	Key      string      `json:"key,omitempty"`
	Order    *int64      `json:"order,omitempty"` // the time that the event says it has; a time of RFC 3339 in microseconds since 1970
	Bytes    int         `json:"bytes"`
	Session  stint.ID    `json:"session,omitzero"`
	Repeats  string      `json:"repeats,omitempty"`  // the delivery that was delivered again with this one
	By       stint.Actor `json:"by,omitempty"`       // who had it delivered again
	Repeated bool        `json:"repeated,omitempty"` // it was there before; not in the ledger
}

// Shown is a delivery with what came.
type Shown struct {
	Delivered

	Request hook.Kept `json:"request,omitzero"`
	Body    []byte    `json:"-"` // as it came; nil: it was too long to be kept
}

// keptBody is how long a body may be to be kept with its line, in bytes; keptIgnored is
// the same for one that led to nothing.
const (
	keptBody    = 1 << 20
	keptIgnored = 16 << 10
)

// line is the ledger's line of s.
func (s Shown) line(digest stint.Hash) stint.Key {
	most := keptBody
	if s.Result == Ignored {
		most = keptIgnored
	}
	if len(s.Body) > most {
		s.Body = nil
	}
	note, _ := json.Marshal(s) // it has nothing that JSON has not
	return stint.Key{Scope: deliveries, Name: s.Hook + "/" + s.ID, Source: s.Hook, At: s.At, Digest: digest, Note: note, Body: s.Body, Expires: s.At.Add(deliveryLife)}
}

// shown reads a line.
func shown(k stint.Key) (Shown, error) {
	var s Shown
	if err := json.Unmarshal(k.Note, &s); err != nil {
		return s, stint.Corrupt.Errorf("hook", "the line %q of the ledger cannot be read: %v", k.Name, err)
	}
	s.Body = k.Body
	if k.Ref != "" {
		id, err := stint.ParseID(k.Ref)
		if err != nil {
			return s, err
		}
		s.Session = id
	}
	return s, nil
}

// Delivery returns one delivery to a hook with what came, or [stint.NotFound].
func Delivery(ctx context.Context, r stint.Reader, name, id string) (Shown, error) {
	keys, err := r.Keys(ctx, stint.Key{Scope: deliveries, Name: name + "/" + id}, 1)
	if err != nil {
		return Shown{}, err
	}
	if len(keys) == 0 {
		return Shown{}, &stint.Error{Code: stint.NotFound, Op: "delivery", Err: fmt.Errorf("the hook %s has no delivery %q", clip(name, 60), clip(id, 60)), Hint: "a delivery is kept for 30 days"}
	}
	return shown(keys[0])
}

// Deliveries returns the newest deliveries to a hook, at most limit; after, if it is not
// the zero one, is the last of the page before.
func Deliveries(ctx context.Context, r stint.Reader, name string, after Delivered, limit int) ([]Delivered, error) {
	like := stint.Key{Scope: deliveries, Source: name}
	if after.ID != "" {
		like.At, like.Name = after.At, name+"/"+after.ID
	}
	keys, err := r.Keys(ctx, like, limit)
	if err != nil {
		return nil, err
	}
	all := make([]Delivered, 0, len(keys))
	for _, k := range keys {
		s, err := shown(k)
		if err != nil {
			return nil, err
		}
		all = append(all, s.Delivered)
	}
	return all, nil
}

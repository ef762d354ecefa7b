package trigger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
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
	ID       string    `json:"id"`
	Hook     string    `json:"hook"`
	At       time.Time `json:"at"`
	Result   Result    `json:"result"`
	Reason   string    `json:"reason,omitempty"`
	Event    string    `json:"event,omitempty"`
	Key      string    `json:"key,omitempty"`
	Bytes    int       `json:"bytes"`
	Session  stint.ID  `json:"session,omitzero"`
	Repeated bool      `json:"repeated,omitempty"` // it was there before; not in the ledger
}

// line is the ledger's line of o.
func (o Delivered) line(digest stint.Hash, body []byte) stint.Key {
	note, _ := json.Marshal(o) // it has nothing that JSON has not
	return stint.Key{Scope: deliveries, Name: o.Hook + "/" + o.ID, Source: o.Hook, At: o.At, Digest: digest, Note: note, Body: body, Expires: o.At.Add(deliveryLife)}
}

// deliveredOf reads a line.
func deliveredOf(k stint.Key) (Delivered, error) {
	var o Delivered
	if err := json.Unmarshal(k.Note, &o); err != nil {
		return o, stint.Corrupt.Errorf("hook", "the line %q of the ledger cannot be read: %v", k.Name, err)
	}
	if k.Ref != "" {
		id, err := stint.ParseID(k.Ref)
		if err != nil {
			return o, err
		}
		o.Session = id
	}
	return o, nil
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
		o, err := deliveredOf(k)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

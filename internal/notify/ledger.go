package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/ident"
)

// notifications is the scope of the lines of endpoints.
const notifications = "notification"

// lineLife is how long it is known what became of an event.
const lineLife = 30 * 24 * time.Hour

// Result is what became of an event at an endpoint.
type Result string

// The results.
const (
	Delivered Result = "delivered" // the endpoint took it
	GivenUp   Result = "given_up"  // it did not, for about a day in which it took others
	Refused   Result = "refused"   // it refused it for good
	Gone      Result = "gone"      // its session was deleted meanwhile
	Moot      Result = "moot"      // it was held back, and answered or told anew before it was sent
)

// Lost reports whether somebody was to be told and was not. The system journal has a note
// notify.lost of each.
func (r Result) Lost() bool { return r == GivenUp || r == Refused }

// Sent is a line of an endpoint's ledger.
type Sent struct {
	ID       string         `json:"id"` // of the event; also the request's webhook-id
	Line     string         `json:"line"`
	Endpoint string         `json:"endpoint"`
	Event    endpoint.Event `json:"event"`
	Session  stint.ID       `json:"session"`
	At       time.Time      `json:"at"`
	Result   Result         `json:"result"`
	Attempts int            `json:"attempts"`
	Status   int            `json:"status,omitempty"` // of the newest attempt, of HTTP or SMTP, or an exit code; 0: there was none
	Error    string         `json:"error,omitempty"`  // why not; of one that was taken, what was said to it
}

// line is the ledger's line of s. Its name is its own: an event may be sent again after a
// crash, and nothing may be in the way of its line.
func (s Sent) line() stint.Key {
	s.Line = ident.New().String()
	note, _ := json.Marshal(s) // it has nothing that JSON has not
	return stint.Key{Scope: notifications, Name: s.name(), Source: s.Endpoint, At: s.At, Ref: s.Session.String(), Note: note, Expires: s.At.Add(lineLife)}
}

// History is [Deliveries] of several endpoints: the newest of all of them.
func History(ctx context.Context, r stint.Reader, endpoints []string, after Sent, limit int) ([]Sent, error) {
	all := []Sent{}
	for _, name := range endpoints {
		some, err := Deliveries(ctx, r, name, after, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Sent) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.name(), a.name())) }) // as one ledger is
	return all[:min(limit, len(all))], nil
}

// Deliveries returns what became of the newest events that were sent to an endpoint, at
// most limit; after, if it is not the zero one, is the last of the page before. Those that
// are still pending are in [Status].
func Deliveries(ctx context.Context, r stint.Reader, endpoint string, after Sent, limit int) ([]Sent, error) {
	like := stint.Key{Scope: notifications, Source: endpoint}
	if after.Line != "" {
		like.At, like.Name = after.At, after.name()
	}
	keys, err := r.Keys(ctx, like, limit)
	if err != nil {
		return nil, err
	}
	all := make([]Sent, len(keys))
	for i := range keys {
		if all[i], err = readLine(&keys[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delivery returns a line of the ledger by its endpoint and its own name, with / between
// them. One that is not there is [stint.NotFound].
func Delivery(ctx context.Context, r stint.Reader, name string) (Sent, error) {
	keys, err := r.Keys(ctx, stint.Key{Scope: notifications, Name: name}, 1)
	if err != nil {
		return Sent{}, err
	}
	if len(keys) == 0 || name == "" {
		e := stint.NotFound.Errorf("notify", "nothing of that name was sent")
		e.Hint = "what was sent is kept for 30 days; begin at the newest"
		return Sent{}, e
	}
	return readLine(&keys[0])
}

// readLine reads a line of the ledger.
func readLine(k *stint.Key) (s Sent, err error) {
	if err := json.Unmarshal(k.Note, &s); err != nil {
		return s, stint.Corrupt.Errorf("notify", "the line %q of the ledger cannot be read: %v", k.Name, err)
	}
	return s, nil
}

// name is the line's own among those of all endpoints.
func (s *Sent) name() string { return s.Endpoint + "/" + s.Line }

// clip shortens what others wrote.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + " …"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

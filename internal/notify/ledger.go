package notify

import (
	"context"
	"encoding/json"
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
	return stint.Key{Scope: notifications, Name: s.Endpoint + "/" + s.Line, Source: s.Endpoint, At: s.At, Ref: s.Session.String(), Note: note, Expires: s.At.Add(lineLife)}
}

// Deliveries returns what became of the newest events that were sent to an endpoint, at
// most limit; after, if it is not the zero one, is the last of the page before. Those that
// are still pending are in [Status].
func Deliveries(ctx context.Context, r stint.Reader, endpoint string, after Sent, limit int) ([]Sent, error) {
	like := stint.Key{Scope: notifications, Source: endpoint}
	if after.Line != "" {
		like.At, like.Name = after.At, endpoint+"/"+after.Line
	}
	keys, err := r.Keys(ctx, like, limit)
	if err != nil {
		return nil, err
	}
	all := make([]Sent, len(keys))
	for i, k := range keys {
		if err := json.Unmarshal(k.Note, &all[i]); err != nil {
			return nil, stint.Corrupt.Errorf("notify", "the line %q of the ledger cannot be read: %v", k.Name, err)
		}
	}
	return all, nil
}

// clip shortens what others wrote.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + " …"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

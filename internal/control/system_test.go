package control_test

import (
	"context"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/store/mem"
)

type nobody struct{ t *testing.T }

func (n nobody) Settle(context.Context, stint.ID) error {
	n.t.Error("the journal of the server was settled as a session is")
	return nil
}

// A message to the system journal is an order to the server: it makes tokens and pauses
// schedules. Whoever may send to sessions alone gives none.
func TestTheServersJournalTakesNoOrders(t *testing.T) {
	t.Parallel()
	store := mem.New()
	id, err := engine.SystemJournal(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	row, err := store.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	desk := control.Desk{Store: store, Settler: nobody{t}}
	for _, kind := range []stint.MessageKind{stint.Prompt, stint.Pause, stint.Resume, stint.Interrupt, stint.Stop, stint.Kill, stint.SetLimit} {
		if err := desk.Give(t.Context(), &row, control.Order{Kind: kind, From: "human:eve", Body: []byte(`{"verb":"token.create"}`)}); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := desk.Restart(t.Context(), &row, nil, control.Order{Kind: stint.Restart, From: "human:eve"}); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("restart: %v", err)
	}
	if in, err := store.Inbox(t.Context(), id); err != nil || len(in) > 0 {
		t.Errorf("%d messages came through, %v", len(in), err)
	}
}

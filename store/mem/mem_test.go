package mem_test

import (
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) stint.Store { return mem.New() })
}

// Tests of others lean on it: what they appended is there in the next line.
func TestAppendIsDoneWhenItReturns(t *testing.T) {
	called := false
	mem.New().Append(t.Context(), stint.Lease{}, stint.Batch{}, func(err error) {
		called = stint.CodeOf(err) == stint.NotFound
	})
	if !called {
		t.Error("done was not called with not_found before Append returned")
	}
}

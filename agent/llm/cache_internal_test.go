package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
)

func TestCacheIsBounded(t *testing.T) {
	var c cache
	id := func(i int) (out stint.ID) {
		copy(out[:], fmt.Sprintf("%016d", i))
		return out
	}
	for i := range 3 * maxCached {
		c.put(id(i), json.RawMessage(`{}`), memory{}, &transcript{})
	}
	if len(c.held) != maxCached || c.bytes != 2*maxCached {
		t.Errorf("%d sessions, %d bytes", len(c.held), c.bytes)
	}
	large := json.RawMessage(strings.Repeat(" ", maxCachedBytes/20))
	for i := range 40 {
		c.put(id(i), large, memory{}, &transcript{})
		if c.bytes > maxCachedBytes {
			t.Fatalf("%d bytes", c.bytes)
		}
	}
	c.put(id(1), json.RawMessage(strings.Repeat(" ", maxCachedBytes/8)), memory{}, &transcript{})
	last := id(39)
	if _, _, ok := c.take(last, json.RawMessage(`{}`)); ok {
		t.Error("another state was taken for the one that is held")
	}
	if _, _, ok := c.take(last, large); ok {
		t.Error("what did not fit is held on to")
	}
	c.put(last, large, memory{Cuts: 2}, &transcript{})
	if m, _, ok := c.take(last, large); !ok || m.Cuts != 2 {
		t.Errorf("got %+v, %t", m, ok)
	}
	if _, _, ok := c.take(last, large); ok {
		t.Error("it was given twice")
	}
}

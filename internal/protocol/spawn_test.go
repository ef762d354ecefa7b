package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

func TestParseSpawn(t *testing.T) {
	m, err := protocol.Parse([]byte(`{"type":"spawn","id":7,"agent":"a","name":"n","input":{"k": 1.0},"labels":{"x":"y"},` +
		`"limits":{"wall_s":60,"loops":1,"steps":2,"tool_calls":3,"children":4,"tokens":5,"cost":"0.50"},"detach":true}`))
	if err != nil {
		t.Fatal(err)
	}
	c := m.Calls[0]
	if c.ID != 7 || c.Child.Agent != "a" || c.Child.Name != "n" || string(c.Child.Input) != `{"k": 1.0}` || c.Child.Labels["x"] != "y" || !c.Child.Detach {
		t.Errorf("it is %+v", c.Child)
	}
	if want := (stint.Limits{Wall: time.Minute, Loops: 1, Steps: 2, ToolCalls: 3, Children: 4, Tokens: 5, Cost: 5e8}); *c.Child.Limits != want {
		t.Errorf("its limits are %+v", *c.Child.Limits)
	}
	if m, err = protocol.Parse([]byte(`{"type":"spawn","id":1,"agent":"a","input":"text","limits":null}`)); err != nil || string(m.Calls[0].Child.Input) != "text" || m.Calls[0].Child.Limits != nil {
		t.Errorf("it is %+v, %v", m, err)
	}
	for line, want := range map[string]string{
		`{"type":"spawn","id":1}`:                                      "agent must be the name",
		`{"type":"spawn","agent":"a"}`:                                 "id is missing",
		`{"type":"spawn","id":1,"agent":"a","labels":["x"]}`:           "labels must be an object of strings",
		`{"type":"spawn","id":1,"agent":"a","labels":{"x":1}}`:         "labels must be an object of strings",
		`{"type":"spawn","id":1,"agent":"a","limits":{"loops":-1}}`:    "limits.loops must be an integer",
		`{"type":"spawn","id":1,"agent":"a","limits":{"cost":"much"}}`: "limits.cost must be an amount",
		`{"type":"spawn","id":1,"agent":"a","detach":"yes"}`:           "detach must be true or false",
		`{"type":"end","outcome":"wait","wait":{"for":"children"}}`:    "it must be one of",
	} {
		if _, err := protocol.Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", line, err, want)
		}
	}
}

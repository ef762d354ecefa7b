package builtin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

func call(t testing.TB, one tool.Tool, args string) tool.Output {
	t.Helper()
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	_, checked, err := set.Check(one.Name, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	out, err := one.Caller.Call(t.Context(), tool.Call{Args: checked})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, tt := range []struct {
			args string
			wait time.Duration // -1: wrong
		}{
			{`{"seconds":90}`, 90 * time.Second},
			{`{"seconds":0.5,"why":"the build\n runs"}`, 500 * time.Millisecond},
			{`{"seconds":0}`, 0},
			{fmt.Sprintf(`{"until":%q}`, now.Add(48*time.Hour).In(time.FixedZone("", 7200)).Format(time.RFC3339)), 48 * time.Hour},
			{fmt.Sprintf(`{"until":%q}`, now.Add(-time.Hour).Format(time.RFC3339)), 0},
			{`{"seconds":1e300}`, -1}, {`{"seconds":31622401}`, -1}, {`{"until":"9999-01-01T00:00:00Z"}`, -1},
			{`{"until":"tomorrow"}`, -1}, {`{}`, -1}, {`{"seconds":1,"until":"2030-01-01T00:00:00Z"}`, -1},
		} {
			out := call(t, builtin.Sleep(), tt.args)
			switch {
			case out.Error != (tt.wait < 0):
				t.Errorf("%s: got %+v", tt.args, out)
			case tt.wait <= 0 && out.Wait != nil:
				t.Errorf("%s waits: %+v", tt.args, out.Wait)
			case tt.wait > 0 && (out.Wait == nil || out.Wait.For != stint.ForTime || !out.Wait.Until.Equal(now.Add(tt.wait)) || strings.Contains(out.Wait.What, "\n")):
				t.Errorf("%s: got %+v", tt.args, out.Wait)
			}
		}
	})
}

func TestAsk(t *testing.T) {
	ask, ok := builtin.Ask().Caller.(tool.Asker)
	if !ok {
		t.Fatal("its caller asks nobody")
	}
	q, err := ask.Question(json.RawMessage(`{"question":"Delete\nall 3 branches?","schema":{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"maximum":9007199254740993}},"required":["ok"]}}`))
	if err != nil || q.Text != "Delete\nall 3 branches?" {
		t.Fatalf("got %+v, %v", q, err)
	}
	got, err := ask.Answer(q, json.RawMessage(`{"ok":true,"n":9007199254740993}`))
	if err != nil || got.Text != `{"ok":true,"n":9007199254740993}` || string(got.Data) != got.Text {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{`{"ok":"yes"}`, `{}`, `{"ok":true,"ok":false}`, `yes`, ``, `{"ok":true,"n":9007199254740994}`} {
		if _, err := ask.Answer(q, json.RawMessage(bad)); !errors.Is(err, stint.Invalid) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	plain, err := ask.Question(json.RawMessage(`{"question":"Who?"}`))
	if err != nil || string(plain.Schema) != `{"type":"string"}` {
		t.Errorf("got %+v, %v", plain, err)
	}
	if got, err := ask.Answer(plain, json.RawMessage(`"Ann\u0000"`)); err != nil || !strings.HasPrefix(got.Text, "Ann\uFFFD\n[stint: one") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ask.Question(json.RawMessage(`{"question":"?","schema":{"type":"nonsense"}}`)); !errors.Is(err, stint.Invalid) {
		t.Errorf("got %v", err)
	}
	if _, err := builtin.Ask().Caller.Call(t.Context(), tool.Call{Args: json.RawMessage(`{"question":"Who?"}`)}); !errors.Is(err, stint.Invalid) {
		t.Errorf("called without having asked: %v", err)
	}
}

func TestFinish(t *testing.T) {
	for schema, calls := range map[string]map[string]string{
		`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`: {
			`{"id":2512292042121000001}`: `{"id":2512292042121000001}`, `{}`: "!"},
		`{"type":"array","items":{"type":"string"}}`: {`{"result":["a"]}`: `["a"]`, `{"result":[1]}`: "!", `["a"]`: "!"},
		``: {`{"result":null}`: `null`, `{}`: "!"},
	} {
		finish, err := builtin.Finish(json.RawMessage(schema))
		if err != nil {
			t.Fatal(schema, err)
		}
		set, err := tool.NewSet(finish)
		if err != nil {
			t.Fatal(err)
		}
		for args, want := range calls {
			if want == "!" {
				if _, _, err := set.Check("finish", json.RawMessage(args)); !errors.Is(err, stint.Invalid) {
					t.Errorf("%s with %s: got %v", schema, args, err)
				}
				continue
			}
			if out := call(t, finish, args); string(out.Result) != want {
				t.Errorf("%s with %s: got %s", schema, args, out.Result)
			}
		}
	}
	if _, err := builtin.Finish(json.RawMessage(`{"type":"nonsense"}`)); !errors.Is(err, stint.Invalid) {
		t.Errorf("got %v", err)
	}
}

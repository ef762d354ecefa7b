package past_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

func entry(t *testing.T, kind stint.Kind, step int, data any, body string) *stint.Entry {
	t.Helper()
	b, err := stint.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return &stint.Entry{Kind: kind, Pos: stint.Position{Loop: 1, Attempt: 1, Step: step}, Data: b, Body: []byte(body)}
}

// What a journal answers, by the entries that it has of a step.
func TestAnswer(t *testing.T) {
	pay := journal.StepRequested{Name: "pay", Kind: stint.Tool, Effect: stint.Once}
	done := journal.StepDone{StepRequested: pay, Usage: stint.Usage{Output: 3}}
	failed := done
	failed.Error, failed.Definite, failed.Final = "no money", true, true
	tried := failed
	tried.Definite = false
	for _, c := range []struct {
		name     string
		entries  []*stint.Entry
		answered bool
		data     string
		code     stint.Code
	}{
		{"an intent", []*stint.Entry{entry(t, stint.StepRequested, 1, pay, "")}, false, "", ""},
		{"a result", []*stint.Entry{entry(t, stint.StepCompleted, 1, done, `{"ok":1}`)}, true, `{"ok":1}`, ""},
		{"no data", []*stint.Entry{entry(t, stint.StepCompleted, 1, done, "")}, true, "null", ""},
		{"a definite error", []*stint.Entry{entry(t, stint.StepFailed, 1, failed, `{"text":"no money\nat all","code":"limit"}`)}, true, "", stint.Limit},
		{"a try that failed", []*stint.Entry{entry(t, stint.StepRequested, 1, pay, ""), entry(t, stint.StepFailed, 1, tried, "")}, false, "", ""},
		{"nobody knows", []*stint.Entry{entry(t, stint.StepRequested, 1, pay, ""), entry(t, stint.StepResolved, 1, journal.StepResolved{Verdict: journal.Unknown}, "")}, true, past.Unknown, ""},
		{"it happened", []*stint.Entry{entry(t, stint.StepRequested, 1, pay, ""), entry(t, stint.StepResolved, 1, journal.StepResolved{Verdict: journal.Happened}, "7")}, true, "7", ""},
		{"it did not", []*stint.Entry{entry(t, stint.StepRequested, 1, pay, ""), entry(t, stint.StepResolved, 1, journal.StepResolved{Verdict: journal.NotHappened}, "")}, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := past.Steps{}
			for _, e := range c.entries {
				if err := steps.Add(e); err != nil {
					t.Fatal(err)
				}
			}
			s := steps.At(1, 0)
			if s.Answered() != c.answered {
				t.Fatalf("answered %v, want %v", s.Answered(), c.answered)
			}
			if !c.answered {
				return
			}
			res, err := s.Answer(func() (json.RawMessage, error) {
				if len(s.Body) == 0 {
					return nil, nil
				}
				return s.Body, nil
			})
			if string(res.Data) != c.data || stint.CodeOf(err) != c.code {
				t.Errorf("%s and %v, want %s and %q", res.Data, err, c.data, c.code)
			}
			if c.code != "" && err.Error() != "no money\nat all" {
				t.Errorf("the error is %q: its text was cut to its line", err)
			}
		})
	}
}

func TestGroupError(t *testing.T) {
	if err := past.GroupError([]error{nil, nil}); err != nil {
		t.Errorf("a group without an error has %v", err)
	}
	boom := errors.New("boom")
	err := past.GroupError([]error{nil, boom})
	var all interface{ Members() []error }
	if !errors.Is(err, boom) || !errors.As(err, &all) || all.Members()[0] != nil || !errors.Is(all.Members()[1], boom) {
		t.Errorf("the error of the group is %#v", err)
	}
}

package cases_test

import (
	"strings"
	"testing"
)

// TestE01OddOutput: a tool gives bytes that JSON or a terminal cannot have. The session
// goes on, what was replaced is marked, and what only looks odd stays
// (kodus-ai PR#1683, ayunis-core PR#1613).
func TestE01OddOutput(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"n1","name":"nul","input":{}}]},{"text":"finished"}]}`), agent{tools: []toolSpec{{name: "nul"}}})
		s.must("run", "case", "-p", "Go.")
		v := s.only()
		s.is(v, "completed", "finished")
		got := results(t, api, s.requests(2)[1])
		const want = "before\uFFFDafter \uFFFD lone, tab\t, esc\x1b[31m, bell\a, 😀, literal \\u0000\n" +
			"[stint: 2 times \uFFFD above stands for a NUL or for bytes that are not UTF-8]"
		if len(got) != 1 {
			t.Fatalf("the model got %+v", got)
		}
		if got[0].Text != want {
			t.Errorf("the model got %+q", got[0].Text)
		}
		kept := 0
		for _, e := range of(s.journal(v.ID), "step.completed") {
			if e.Pos.Loop == 1 && e.Pos.Step == 2 && unmarshal[struct{ Text string }](t, e.body()).Text == got[0].Text {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("the journal has what the model got %d times\n%s", kept, s.must("logs", v.ID, "--content"))
		}
		if out := s.must("logs", v.ID); strings.ContainsAny(out, "\x00\x1b\a") {
			t.Errorf("the log acts on the terminal: %q", out)
		}
		s.must("export", v.ID)
		s.verified()
	})
}

// exactly is digits that a reader with 64-bit floats would change, and forms that one which
// writes numbers anew would.
const exactly = `{"id": 2512292042121000001, "neg0": -0.0, "e": 1E2, "f": 0.10000000000000000000001, "u64": 18446744073709551615}`

// TestE02Digits: numbers keep their digits from the model to the tool, in the journal, in
// what is printed, and in all that the provider is sent later; a number that no float can
// hold is an error that says so (earendil-works/pi#8943, claude-code#78762).
func TestE02Digits(t *testing.T) {
	const huge = `{"id": 2512292042121000001, "f": 1e400, "neg0": -0.0}`
	inFormats(t, func(t *testing.T, api string) {
		sc := steps(t, `{"steps":[{"tools":[{"id":"n1","name":"bigint","input":{}}]},{"tools":[{"id":"n2","name":"echo"}]},{"tools":[{"id":"n3","name":"effect"}]},
			{"tools":[{"id":"n4","name":"echo"}]},{"text":"it is 2512292042121000001"}]}`)
		for i, args := range []string{exactly, exactly, huge} {
			sc.Steps[i+1].Tools[0].ArgsRaw = &args
		}
		s := llm(t, api, sc, agent{tools: []toolSpec{{name: "bigint"}, {name: "echo"}, {name: "effect"}}})
		s.must("run", "case", "-p", `{"order": 9007199254740993}`)
		v := s.only()
		s.is(v, "completed", "it is 2512292042121000001")
		s.did(compact(t, []byte(exactly)))

		last := s.requests(5)[4]
		if !strings.Contains(last, "9007199254740993") {
			t.Error("the provider did not get the input's number")
		}
		got, sent := results(t, api, last), calls(t, api, last)
		if len(got) != 4 || len(sent) != 4 {
			t.Fatalf("there are %d calls and %d results", len(sent), len(got))
		}
		for i, want := range []string{bigints, exactly} {
			if compact(t, []byte(got[i].Text)) != compact(t, []byte(want)) {
				t.Errorf("result %d is %s, want %s", i+1, got[i].Text, want)
			}
		}
		for i, want := range []string{exactly, exactly} {
			if compact(t, []byte(sent[i+1].Args)) != compact(t, []byte(want)) {
				t.Errorf("call %d is sent back as %s, want %s", i+2, sent[i+1].Args, want)
			}
		}
		if !strings.Contains(got[3].Text, "not called") || !strings.Contains(got[3].Text, "$.f: the number is beyond 64-bit floating point") || !strings.Contains(sent[3].Args, "2512292042121000001") || !strings.Contains(sent[3].Args, "1e400") {
			t.Errorf("the call with 1e400 is sent back as %s, with %s", sent[3].Args, got[3].Text)
		}

		logs := s.must("logs", v.ID, "--json", "--content")
		page := s.must("show", v.ID, "--json")
		for _, digits := range []string{"2512292042121000001", "-9223372036854775808", "18446744073709551615", "0.10000000000000000000001", "-0.0", "1E2", "9007199254740993"} {
			if !strings.Contains(logs, digits) {
				t.Errorf("the log does not have %s", digits)
			}
		}
		for _, digits := range []string{"9007199254740993", "2512292042121000001"} { // its goal, and its result
			if !strings.Contains(page, digits) {
				t.Errorf("the page does not have %s: %s", digits, page)
			}
		}
		for _, wrong := range []string{"2512292042121000000", "2512292042121000002", "25122920421210000448", "2.51229", "18446744073709552000", "9007199254740992"} {
			for what, text := range map[string]string{"log": logs, "page": page, "request": last} {
				if strings.Contains(text, wrong) {
					t.Errorf("the %s has %s", what, wrong)
				}
			}
		}
		s.verified()
	})
}

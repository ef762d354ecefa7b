package cron_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/npmtest"
)

// question is what croner is asked.
type question struct {
	Expr  string    `json:"expr"`
	Zone  string    `json:"zone"`
	From  time.Time `json:"from"`
	Count int       `json:"count"`
}

// answer is what croner finds, or why it takes no such expression.
type answer struct {
	Times []time.Time
	Error string
}

// drawCommon draws a field in the forms that both take.
func drawCommon(t *rapid.T, name string, lo, hi int, special ...string) string {
	part := rapid.Custom(func(t *rapid.T) string {
		a, b := rapid.IntRange(lo, hi).Draw(t, "a"), rapid.IntRange(lo, hi).Draw(t, "b")
		if b < a {
			a, b = b, a
		}
		switch kind := rapid.IntRange(0, 3+len(special)).Draw(t, "kind"); kind {
		case 0:
			return fmt.Sprint(a)
		case 1:
			return fmt.Sprintf("%d-%d", a, b)
		case 2:
			return fmt.Sprintf("%d-%d/%d", a, b, rapid.IntRange(1, b-a+1).Draw(t, "step"))
		case 3:
			return fmt.Sprintf("%d,%d", a, b)
		default:
			return special[kind-4]
		}
	})
	switch rapid.IntRange(0, 4).Draw(t, name+" form") {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprintf("*/%d", rapid.IntRange(1, (hi-lo)/2).Draw(t, "step"))
	}
	return strings.Join(rapid.SliceOfN(part, 1, 2).Draw(t, name), ",")
}

// drawQuestion draws an expression by which croner 11.0.1 means the same. None is drawn
// where it means something else, or does not take it:
//
//	*/2 with a weekday   croner: either; here: both, as in cronie
//	FRI-MON              croner refuses a range that ends before it begins
//	5/15                 croner refuses it unless told to be sloppy
//	L-2                  croner does not know it
//	1,LW                 croner takes LW alone, not in a list
//
// What never fires is refused here, and has no times there.
func drawQuestion(t *rapid.T) question {
	fields := []string{
		drawCommon(t, "minute", 0, 59), drawCommon(t, "hour", 0, 23), drawCommon(t, "day-of-month", 1, 31, "L", "15W", "LW"),
		drawCommon(t, "month", 1, 12, "JAN", "MAR-SEP"), drawCommon(t, "day-of-week", 0, 6, "5L", "FRI#2", "MON-FRI", "7", "SUN"),
	}
	if strings.Contains(fields[2], "LW") {
		fields[2] = "LW"
	}
	for _, i := range []int{2, 4} {
		if strings.HasPrefix(fields[i], "*/") && fields[6-i] != "*" {
			fields[i] = "*"
		}
	}
	return question{
		Expr: strings.Join(fields, " "), Count: 50,
		Zone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney"}).Draw(t, "zone"),
		From: time.Unix(rapid.Int64Range(1704067200, 1893456000).Draw(t, "from"), 0).UTC(), // 2024 to 2029
	}
}

// A library that others wrote finds the same times.
func TestCroner(t *testing.T) {
	count := 500
	if long() {
		count = 5000
	}
	questions := make([]question, count)
	for i := range questions {
		questions[i] = rapid.Custom(drawQuestion).Example(i)
	}
	compared := 0
	for i, a := range askCroner(t, questions) {
		q := questions[i]
		s, err := cron.Parse(q.Expr, cron.Options{Zone: q.Zone})
		switch {
		case err != nil && strings.Contains(err.Error(), "never fires") && len(a.Times) == 0:
			continue
		case err != nil || a.Error != "":
			t.Errorf("%q: %v, and croner says %q", q.Expr, err, a.Error)
			continue
		}
		compared += compare(t, s, q, a.Times)
	}
	if compared < 20*count {
		t.Errorf("only %d times were compared", compared)
	}
}

// compare looks at the times on ordinary days, and returns how many there were. On days
// when the clock changes croner has rules of its own.
func compare(t *testing.T, s *cron.Schedule, q question, theirs []time.Time) (n int) {
	t.Helper()
	if len(theirs) == 0 {
		t.Errorf("%q in %s: croner has no time after %s", q.Expr, q.Zone, q.From)
		return 0
	}
	at, end := q.From, theirs[len(theirs)-1]
	for _, their := range theirs {
		if !ordinary(their, s.Zone()) {
			continue
		}
		ours := at
		for {
			next, ok := s.Next(ours)
			if !ok || next.After(end) {
				t.Errorf("%q in %s: croner has %s, which is none here", q.Expr, q.Zone, their)
				return n
			}
			if ours = next; ordinary(ours, s.Zone()) {
				break
			}
		}
		if !ours.Equal(their) {
			t.Errorf("%q in %s: after %s comes %s, croner says %s", q.Expr, q.Zone, at.In(s.Zone()), ours, their.In(s.Zone()))
			return n
		}
		at = ours
		n++
	}
	return n
}

// ordinary reports whether the clock was not changed within a day.
func ordinary(at time.Time, zone *time.Location) bool {
	_, before := at.Add(-26 * time.Hour).In(zone).Zone()
	_, after := at.Add(26 * time.Hour).In(zone).Zone()
	return before == after
}

func askCroner(t *testing.T, questions []question) []answer {
	t.Helper()
	in, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "croner.mjs"), npmtest.Croner(t))
	var talk bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &talk
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s\nscripts/setup-test.sh installs node and npm", err, talk.String())
	}
	var answers []answer
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions, %v", len(answers), len(questions), err)
	}
	return answers
}

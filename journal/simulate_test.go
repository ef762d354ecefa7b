package journal_test

import (
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// sim writes journals as an engine does: crashes, drains, waits, retries, doubts,
// groups and restarts at random, but never against a rule.
type sim struct {
	*chain
	t     *rapid.T
	recs  []simStep // of the open loop, in order of position
	state []byte
}

type simStep struct {
	step, sub int
	intent    journal.StepRequested
	requested bool // an intent that nobody said did not happen
	tried     bool // something came of it
	answered  bool
}

// simulate returns a journal of about n entries, of fewer where chance stands still.
func simulate(t *rapid.T, n int) *chain {
	s := &sim{chain: begun(t), t: t}
	for turns := 0; len(s.es) < max(n, 3) && (turns < 5*n || len(s.es) < 3); turns++ {
		s.now = s.now.Add(drawPause(t))
		switch {
		case s.s.Status.Ended():
			s.ended()
		case s.s.Status == stint.Waiting:
			s.waiting()
		case s.s.At.Since.IsZero():
			s.idle()
		default:
			s.running()
		}
	}
	return s.chain
}

func (s *sim) pick(of ...string) string { return rapid.SampledFrom(of).Draw(s.t, "act") }

func (s *sim) put(kind stint.Kind, pos stint.Position, data any, body []byte) {
	s.t.Helper()
	if _, err := s.addNow(journal.Draft{Kind: kind, Pos: pos, Data: data, Body: body}); err != nil {
		s.t.Fatalf("the simulation broke a rule: %v", err)
	}
}

func (s *sim) ended() {
	switch s.pick("message", "resume", "resume", "line") {
	case "message":
		s.message()
	case "resume":
		s.put(stint.SessionResumed, s.at(0, 0), journal.Resumed{Why: "restart"}, nil)
	case "line":
		s.line()
	}
}

func (s *sim) waiting() {
	switch s.pick("message", "resume", "resume", "resume", "limit", "end", "line") {
	case "message":
		s.message()
	case "limit":
		s.put(stint.LimitChanged, s.at(0, 0), journal.LimitChanged{Limits: stint.Limits{Loops: 9}}, nil)
	case "end":
		s.end()
	case "line":
		s.line()
	case "resume":
		for i := range s.recs {
			if r := &s.recs[i]; r.doubtful() {
				s.verdict(r)
			}
		}
		s.put(stint.SessionResumed, s.at(0, 0), journal.Resumed{Why: "resume"}, nil)
	}
}

func (r *simStep) doubtful() bool {
	return r.requested && !r.answered && r.intent.Effect == stint.Once
}

func (s *sim) verdict(r *simStep) {
	v := journal.Verdict(s.pick("happened", "not", "unknown"))
	s.put(stint.StepResolved, s.at(r.step, r.sub), journal.StepResolved{Verdict: v}, nil)
	r.tried = true
	if v == journal.NotHappened {
		r.requested = false
	} else {
		r.answered = true
	}
}

// idle is a session that nobody runs.
func (s *sim) idle() {
	switch s.pick("loop", "loop", "loop", "loop", "loop", "wait", "end", "line", "message") {
	case "loop":
		s.begin(stint.Released)
	case "wait":
		s.put(stint.SessionWaiting, s.at(0, 0), journal.Waiting{For: stint.ForTime, Until: base()}, nil)
	case "end":
		s.end()
	case "line":
		s.line()
	case "message":
		s.message()
	}
}

// begin is a claim and a loop.started, with a lease.lost before it where the
// runner before did not give the session back.
func (s *sim) begin(prior stint.Prior) {
	s.epoch++
	if prior != stint.Released {
		s.put(stint.LeaseLost, s.at(0, 0), journal.LeaseLost{Prior: prior}, nil)
	}
	s.put(stint.LoopStarted, s.next(), journal.LoopStarted{Why: "next"}, nil)
}

func (s *sim) running() {
	for i := range s.recs {
		if r := &s.recs[i]; r.doubtful() && s.pick("ask", "rule") == "ask" {
			s.put(stint.SessionWaiting, s.at(0, 0), journal.Waiting{For: stint.ForDoubt, Step: s.at(r.step, r.sub)}, nil)
			return
		} else if r.doubtful() {
			s.verdict(r)
			return
		}
	}
	switch s.pick("step", "step", "step", "step", "step", "group", "complete", "complete", "fail", "wait", "release", "crash", "fence", "output", "message", "end") {
	case "step":
		s.step()
	case "group":
		step := s.lastStep() + 1
		for sub := range rapid.IntRange(2, 4).Draw(s.t, "members") {
			s.recs = append(s.recs, simStep{step: step, sub: sub + 1, intent: s.intent()})
		}
	case "complete":
		s.completeLoop()
	case "fail":
		s.put(stint.LoopFailed, s.at(0, 0), journal.LoopFailed{Error: "boom"}, nil)
	case "wait":
		s.put(stint.SessionWaiting, s.at(0, 0), journal.Waiting{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}, nil)
	case "release":
		s.put(stint.SessionReleased, s.at(0, 0), journal.Released{Why: "drain"}, nil)
	case "crash":
		s.begin(stint.Died)
	case "fence":
		s.begin(stint.Expired)
	case "output":
		s.put(stint.OutputWritten, s.at(0, 0), journal.Output{Stream: "stdout"}, []byte("line\n"))
	case "message":
		s.message()
	case "end":
		s.end()
	}
}

func (s *sim) lastStep() int {
	if n := len(s.recs); n > 0 {
		return s.recs[n-1].step
	}
	return 0
}

func (s *sim) intent() journal.StepRequested {
	r := drawStep(s.t)
	r.Name = fmt.Sprintf("step%d", len(s.recs))
	return r
}

// step goes on with any step that has no answer, or a new one.
func (s *sim) step() {
	var open []int
	for i := range s.recs {
		if !s.recs[i].answered {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		s.recs = append(s.recs, simStep{step: s.lastStep() + 1, intent: s.intent()})
		open = append(open, len(s.recs)-1)
	}
	r := &s.recs[rapid.SampledFrom(open).Draw(s.t, "which")]
	pos := s.at(r.step, r.sub)
	if !r.requested && (r.intent.Effect == stint.Once || r.intent.Kind == stint.Model) {
		s.put(stint.StepRequested, pos, r.intent, []byte(`{}`))
		r.requested, r.tried = true, false
		if s.pick("go on", "go on", "dies") == "dies" {
			return
		}
	}
	d := journal.StepDone{StepRequested: r.intent, Usage: drawUsage(s.t)}
	switch s.pick("ok", "ok", "ok", "definite", "fails") {
	case "ok":
		s.put(stint.StepCompleted, pos, d, rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(s.t, "result"))
		r.answered = true
	case "definite":
		d.Error, d.Definite = "404", true
		s.put(stint.StepFailed, pos, d, nil)
		r.answered = true
	case "fails":
		if r.intent.Effect == stint.Once {
			return // in doubt: nothing is written, and it is settled before anything else
		}
		d.Error = "no route"
		s.put(stint.StepFailed, pos, d, nil)
	}
	r.tried = true
}

func (s *sim) completeLoop() {
	for _, r := range s.recs {
		if r.requested && !r.tried {
			return
		}
	}
	s.state = append([]byte(nil), s.state...)
	switch s.pick("grow", "grow", "keep", "new") {
	case "grow":
		s.state = append(s.state, rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(s.t, "more")...)
	case "new":
		s.state = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(s.t, "state")
	}
	ref, body := s.encode(s.state)
	s.put(stint.LoopCompleted, s.at(0, 0), journal.LoopCompleted{State: ref, Rollup: journal.Rollup{Steps: len(s.recs)}, Headline: fmt.Sprint("seq ", s.s.Head+1)}, body)
	s.recs = nil
}

func (s *sim) line() {
	d := drawLine(s.t, s.chain)
	if d.From < 0 || d.From > s.s.Checkpoint.Loop {
		return
	}
	body := drawStateOf(s.t, s.chain, &d)
	s.put(stint.LineStarted, stint.Position{}, d, body)
	s.recs, s.state = nil, s.chain.state(s.s.Checkpoint)
}

func (s *sim) end() {
	s.put(stint.SessionEnded, s.at(0, 0), journal.Ended{Outcome: stint.Canceled}, nil)
}

func (s *sim) message() {
	s.put(stint.MessageTaken, s.at(0, 0), journal.Taken{ID: fmt.Sprint(s.s.Head), Kind: stint.Prompt, From: "human:kim", At: s.now}, []byte("hello"))
}

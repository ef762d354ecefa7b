package journal_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// script plays a transcript. It does what an engine would do, and what a broken
// one might: positions can be given, so that illegal entries can be tried.
type script struct {
	*chain
	t         *testing.T
	out       strings.Builder
	intents   map[string]stint.Position // newest position of each step by name
	questions map[string]stint.Seq      // newest question about each step
	step      int                       // newest step number of this attempt
	roll      journal.Rollup            // of the open loop
	lost      stint.Prior               // how the lease ended that nobody gave back
	held      bool                      // a runner holds the session
}

// words of one command: arguments in order, and options name=value.
type args struct {
	list []string
	opt  map[string]string
}

func (a args) get(i int) string {
	if i < len(a.list) {
		return a.list[i]
	}
	return ""
}

func (s *script) command(line string) {
	w := words(line)
	a := args{opt: map[string]string{}}
	for _, x := range w[1:] {
		if k, v, ok := strings.Cut(x, "="); ok && !strings.ContainsAny(k, ` {"`) {
			a.opt[k] = v
			continue
		}
		a.list = append(a.list, x)
	}
	do, ok := map[string]func(args){
		"create": s.create, "loop": s.loopBegins, "step": s.stepDone, "intent": s.intent, "result": s.result,
		"error": s.stepError, "resolve": s.resolve, "complete": s.completes, "fail": s.fail, "wait": s.wait,
		"resume": s.resume, "release": s.release, "message": s.message, "restart": s.restart, "rollback": s.restart,
		"end": s.end, "limit": s.limit, "output": s.output, "crash": s.crash, "fence": s.fence, "after": s.after, "brake": s.brake,
		"plan": s.plan, "course": s.course, "state": s.showState, "key": s.key, "verify": s.verify, "ask": s.ask, "decide": s.decide, "refused": s.refusedMessage,
	}[w[0]]
	if !ok {
		s.t.Fatalf("no such command: %s", line)
	}
	if w[0] == "rollback" {
		a.opt["park"] = "yes"
	}
	do(a)
}

// try makes an entry and prints it. Who takes over from a runner that is gone
// writes that down first.
func (s *script) try(d journal.Draft) bool {
	if prior := s.lost; prior != "" {
		s.lost = ""
		s.epoch++
		s.try(journal.Draft{Kind: stint.LeaseLost, Pos: s.at(0, 0), Data: journal.LeaseLost{Prior: prior}})
		if d.Kind == stint.LoopStarted {
			d.Pos = s.next()
		}
	}
	before := s.s
	e, err := s.add(d)
	if err != nil {
		s.refuse(err)
		return false
	}
	s.show(e, before)
	return true
}

func (s *script) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) money(text string) (m stint.Money) {
	if text == "" {
		return 0
	}
	if err := m.UnmarshalText([]byte(text)); err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *script) limits(a args) stint.Limits {
	return stint.Limits{Loops: s.number(a.opt["loops"]), Steps: s.number(a.opt["steps"]), Tokens: int64(s.number(a.opt["tokens"])), Cost: s.money(a.opt["cost"])}
}

func (s *script) create(a args) {
	c := createdData()
	c.Name, c.Limits = a.opt["name"], s.limits(a)
	s.try(journal.Draft{Kind: stint.SessionCreated, Data: c, Body: []byte(a.get(0))})
}

// loopBegins is a claim, where nobody holds the session, and the loop.started after it.
func (s *script) loopBegins(a args) {
	d := journal.LoopStarted{Why: a.opt["why"]}
	pos := s.next()
	if !s.held && s.lost == "" {
		s.epoch++
	}
	if s.held = true; s.lost != "" {
		d.Why = "recover"
	}
	if d.Why == "" {
		d.Why = "next"
	}
	if at := a.opt["at"]; at != "" {
		if _, err := fmt.Sscanf(at, "%d@%d", &pos.Loop, &pos.Attempt); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.try(journal.Draft{Kind: stint.LoopStarted, Pos: pos, Data: d}) {
		s.step = 0
	}
}

// where is the position of a step: at=STEP or at=STEP.SUB, else the next one.
func (s *script) where(a args) stint.Position {
	at := a.opt["at"]
	if at == "" {
		s.step++
		return s.at(s.step, 0)
	}
	step, sub, _ := strings.Cut(at, ".")
	s.step = max(s.step, s.number(step))
	return s.at(s.number(step), s.number(sub))
}

func (s *script) request(name string, a args, effect stint.Effect) journal.StepRequested {
	r := journal.StepRequested{Name: name, Kind: stint.Tool, Effect: effect, Input: a.opt["input"]}
	if k := a.opt["kind"]; k != "" {
		r.Kind = stint.StepKind(k)
	}
	if e := a.opt["effect"]; e != "" {
		r.Effect = stint.Effect(e)
	}
	return r
}

func (s *script) usage(a args) stint.Usage {
	return stint.Usage{Input: int64(s.number(a.opt["in"])), Output: int64(s.number(a.opt["out"])), Cost: s.money(a.opt["cost"])}
}

// stepDone is a step without an intent: step NAME [DATA].
func (s *script) stepDone(a args) {
	s.completed(s.where(a), s.request(a.get(0), a, stint.Read), a)
}

func (s *script) intent(a args) {
	pos := s.where(a)
	if s.try(journal.Draft{Kind: stint.StepRequested, Pos: pos, Actor: stint.ByAgent, Data: s.request(a.get(0), a, stint.Once), Body: []byte(a.get(1))}) {
		s.intents[a.get(0)] = pos
	}
}

// result is the result of an intent: result NAME [DATA].
func (s *script) result(a args) {
	pos := s.intents[a.get(0)]
	pos.Attempt = s.s.At.Attempt
	s.completed(pos, s.request(a.get(0), a, stint.Once), a)
}

func (s *script) completed(pos stint.Position, r journal.StepRequested, a args) {
	d := journal.StepDone{StepRequested: r, MS: 3, Usage: s.usage(a)}
	if s.try(journal.Draft{Kind: stint.StepCompleted, Pos: pos, Actor: stint.ByAgent, Data: d, Body: []byte(a.get(1))}) {
		s.roll.Steps++
		s.roll.Usage = s.roll.Usage.Add(d.Usage)
	}
}

// stepError is error NAME TEXT [definite]: of the intent of that name, or of a new step.
func (s *script) stepError(a args) {
	pos, ok := s.intents[a.get(0)]
	effect := stint.Once
	if pos.Attempt = s.s.At.Attempt; !ok || pos.Loop != s.s.At.Loop {
		pos, effect = s.where(a), stint.Read
	}
	d := journal.StepDone{StepRequested: s.request(a.get(0), a, effect), MS: 3, Error: a.get(1), Definite: a.get(2) == "definite"}
	s.try(journal.Draft{Kind: stint.StepFailed, Pos: pos, Actor: stint.ByAgent, Data: d})
}

// ask is a question about a step: ask NAME ARGS [text=…] [why=…] [schema=…].
func (s *script) ask(a args) {
	pos := s.where(a)
	d := journal.ApprovalRequested{StepRequested: s.request(a.get(0), a, stint.Once), Text: a.get(0) + " " + a.get(1), Why: a.opt["why"], Schema: []byte(a.opt["schema"])}
	if len(d.Schema) == 0 {
		d.Schema = nil
	}
	if s.try(journal.Draft{Kind: stint.ApprovalRequested, Pos: pos, Actor: stint.ByAgent, Data: d, Body: []byte(a.get(1))}) {
		s.intents[a.get(0)], s.questions[a.get(0)] = pos, s.s.Head
	}
}

// decide is decide NAME STATE [ANSWER] [note=…].
func (s *script) decide(a args) {
	d := journal.ApprovalDecided{Approval: s.questions[a.get(0)], State: stint.ApprovalState(a.get(1)), Note: a.opt["note"]}
	s.try(journal.Draft{Kind: stint.ApprovalDecided, Pos: s.intents[a.get(0)], Actor: "human:kim", Data: d, Body: []byte(a.get(2))})
}

func (s *script) resolve(a args) {
	d := journal.StepResolved{Verdict: journal.Verdict(a.get(1)), Reason: a.opt["reason"]}
	s.try(journal.Draft{Kind: stint.StepResolved, Pos: s.intents[a.get(0)], Actor: "human:kim", Data: d, Body: []byte(a.get(2))})
}

func (s *script) completes(a args) {
	d := journal.LoopCompleted{MS: 40, Headline: a.opt["headline"], Rollup: s.roll}
	var state, body []byte
	if a.opt["state"] != "" {
		state = []byte(a.opt["state"])
	}
	d.State, body = s.encode(state)
	if s.try(journal.Draft{Kind: stint.LoopCompleted, Pos: s.at(0, 0), Data: d, Body: body}) {
		s.roll = journal.Rollup{}
	}
}

func (s *script) fail(a args) {
	s.try(journal.Draft{Kind: stint.LoopFailed, Pos: s.at(0, 0), Data: journal.LoopFailed{Error: a.get(0), Final: a.get(1) == "final"}})
}

func (s *script) wait(a args) {
	w := journal.Waiting{For: stint.WaitFor(a.get(0)), What: a.opt["what"]}
	if u := a.opt["until"]; u != "" {
		w.Until = s.now.Add(s.duration(u))
	}
	if k := a.opt["wakes"]; k != "" {
		w.Wakes = []stint.MessageKind{stint.MessageKind(k)}
	}
	if n := a.opt["step"]; n != "" {
		w.Step = s.intents[n]
	}
	if s.try(journal.Draft{Kind: stint.SessionWaiting, Pos: s.at(0, 0), Data: w}) {
		s.held = false
	}
}

func (s *script) resume(a args) {
	why := a.opt["why"]
	if why == "" {
		why = "resume"
	}
	s.try(journal.Draft{Kind: stint.SessionResumed, Pos: s.at(0, 0), Data: journal.Resumed{Why: why, Reason: a.opt["reason"]}})
}

func (s *script) release(args) {
	if s.try(journal.Draft{Kind: stint.SessionReleased, Pos: s.at(0, 0), Data: journal.Released{Why: "drain"}}) {
		s.held = false
	}
}

// message is message KIND TEXT [for=next], for the loop to come.
func (s *script) message(a args) {
	m := journal.Taken{ID: fmt.Sprintf("m%d", s.s.Head), Kind: stint.MessageKind(a.get(0)), From: "human:kim", At: s.now}
	pos := s.at(0, 0)
	if a.opt["for"] == "next" {
		pos = s.next()
	}
	s.try(journal.Draft{Kind: stint.MessageTaken, Pos: pos, Data: m, Body: []byte(a.get(1))})
}

func (s *script) refusedMessage(a args) {
	m := journal.Taken{ID: fmt.Sprintf("m%d", s.s.Head), Kind: stint.MessageKind(a.get(0)), From: "human:kim", At: s.now, Why: a.get(1)}
	s.try(journal.Draft{Kind: stint.MessageRefused, Pos: s.at(0, 0), Data: m})
}

// restart is restart or rollback: from=LOOP [state=JSON] [reason=TEXT].
func (s *script) restart(a args) {
	from := s.number(a.opt["from"])
	cp, err := journal.CheckpointAt(s.es, from)
	if err != nil {
		s.refuse(err)
		return
	}
	d := journal.LineStarted{From: from, Checkpoint: cp, Reason: a.opt["reason"], Park: a.opt["park"] != ""}
	var body []byte
	if st := a.opt["state"]; st != "" {
		if d.State, body, err = journal.WriteState(cp, s.chain.state(cp), []byte(st), s.source); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.try(journal.Draft{Kind: stint.LineStarted, Pos: stint.Position{}, Actor: "human:kim", Data: d, Body: body}) {
		s.held, s.roll = false, journal.Rollup{}
	}
}

func (s *script) end(a args) {
	if s.try(journal.Draft{Kind: stint.SessionEnded, Pos: s.at(0, 0), Data: journal.Ended{Outcome: stint.Status(a.get(0)), Reason: a.get(1)}, Body: []byte(a.get(2))}) {
		s.held = false
	}
}

func (s *script) limit(a args) {
	s.try(journal.Draft{Kind: stint.LimitChanged, Pos: s.at(0, 0), Actor: "human:kim", Data: journal.LimitChanged{Limits: s.limits(a), Reason: a.opt["reason"]}})
}

func (s *script) output(a args) {
	s.try(journal.Draft{Kind: stint.OutputWritten, Pos: s.at(0, 0), Actor: stint.ByAgent, Data: journal.Output{Stream: "stdout"}, Body: []byte(a.get(0))})
}

// crash ends the runner: nothing is written, and what a reader sees is printed.
func (s *script) crash(args) {
	s.lost, s.held = stint.Died, false
	row := stint.Row{Session: s.s, Lease: stint.Lease{Session: s.s.ID}}
	status, reason := row.Status()
	s.printf(2, "nothing is written; it shows as %s (%s)", status, reason)
}

// fence lets the lease run out while its runner may still live.
func (s *script) fence(args) { s.lost, s.held = stint.Expired, false }

func (s *script) after(a args) { s.now = s.now.Add(s.duration(a.get(0))) }

func (s *script) brake(args) {
	why, on := journal.Brake(&s.s, s.now)
	if !on {
		why = "off"
	}
	s.printf(2, "%s", why)
}

func (s *script) plan(a args) {
	from := s.number(a.opt["from"])
	cp, err := journal.CheckpointAt(s.es, from)
	if err != nil {
		s.refuse(err)
		return
	}
	p, err := journal.MakePlan(s.s, s.es, from, s.chain.state(s.s.Checkpoint), s.chain.state(cp))
	if err != nil {
		s.refuse(err)
		return
	}
	s.report(p)
}

// course prints the loops of a line, one a line.
func (s *script) course(a args) {
	line := -1
	if l, ok := a.opt["line"]; ok {
		line = s.number(l)
	}
	loops, err := journal.Course(s.es, line)
	if err != nil {
		s.refuse(err)
		return
	}
	for _, l := range loops {
		b, err := json.Marshal(l)
		if err != nil {
			s.t.Fatal(err)
		}
		s.printf(2, "%s", b)
	}
}

func (s *script) showState(args) {
	state := s.chain.state(s.s.Checkpoint)
	if state == nil {
		state = []byte("none")
	}
	s.printf(2, "%s", state)
}

// key prints the idempotency key of an intent.
func (s *script) key(a args) {
	s.printf(2, "%s", journal.Key(s.s.ID, s.intents[a.get(0)]))
}

func (s *script) verify(args) {
	sess, err := s.v.Result()
	if err != nil {
		s.printf(2, "not sound: %v", err)
		return
	}
	s.printf(2, "sound: %d entries, #%.8s", sess.Head, sess.HeadHash)
}

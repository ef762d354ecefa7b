package journal_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"pgregory.net/rapid"
)

// TestAgainstModel gives random drafts, legal and illegal, to Next and to the
// model. They must agree on which are legal and on every member of the session.
func TestAgainstModel(t *testing.T) {
	for range 10 { // of a hundred journals each
		rapid.Check(t, againstModel)
	}
}

func againstModel(t *rapid.T) {
	c := newChain(t)
	c.epoch = rapid.Int64Range(0, 2).Draw(t, "first epoch")
	m := &model{id: c.s.ID}
	for range rapid.IntRange(1, 60).Draw(t, "entries") {
		d := drawDraft(t, c)
		c.now = c.now.Add(drawPause(t))
		if c.s.Head > 0 {
			c.epoch = c.s.Epoch + int64(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, -1}).Draw(t, "epoch"))
		}
		e, err := c.addNow(d)
		pos := d.Pos
		pos.Line = e.Pos.Line
		if legal := m.legal(d.Kind, pos, c.epoch, actorOf(d.Actor), d.Data); legal != (err == nil) {
			t.Fatalf("%s at %+v, epoch %d: the model says legal=%v, Next says %v", d.Kind, d.Pos, c.epoch, legal, err)
		}
		if err != nil {
			if stint.CodeOf(err) != stint.Invalid {
				t.Fatalf("an illegal draft is refused as %v", err)
			}
			continue
		}
		m.facts = append(m.facts, factOf(&e, d.Data))
		if want := m.session(e.Hash); !reflect.DeepEqual(c.s, want) {
			t.Fatalf("after entry %d (%s) the session is\n%s\nthe model says\n%s", e.Seq, e.Kind, toJSON(t, c.s), toJSON(t, want))
		}
		c.refold()
	}
}

// drawPause is how much later the next entry is. Clocks also stand still and go back.
func drawPause(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 999999, 1000000, 61000000, -5000000}).Draw(t, "pause")) * time.Microsecond
}

// drawDraft makes a draft of any kind, more often than not one that is legal.
func drawDraft(t *rapid.T, c *chain) journal.Draft {
	kind := rapid.SampledFrom([]stint.Kind{
		stint.LoopStarted, stint.LoopStarted, stint.LoopStarted, stint.LoopStarted, stint.LoopCompleted, stint.LoopCompleted, stint.LoopCompleted,
		stint.LoopFailed, stint.LoopFailed, stint.StepRequested, stint.StepCompleted, stint.StepCompleted, stint.StepFailed, stint.StepResolved,
		stint.SessionWaiting, stint.SessionResumed, stint.SessionResumed, stint.SessionReleased, stint.SessionEnded, stint.LineStarted,
		stint.MessageTaken, stint.MessageRefused, stint.LimitChanged, stint.OutputWritten, stint.LeaseLost, stint.LeaseLost, stint.SessionCreated, "session.forgotten", "",
	}).Draw(t, "kind")
	switch {
	case c.s.Head == 0 && rapid.IntRange(0, 9).Draw(t, "first") > 0:
		kind = stint.SessionCreated
	case c.s.At.Open && rapid.IntRange(0, 9).Draw(t, "a question") == 0, c.s.Head > 0 && rapid.IntRange(0, 29).Draw(t, "about an order") == 0:
		kind = rapid.SampledFrom([]stint.Kind{stint.ApprovalRequested, stint.ApprovalDecided, stint.ApprovalChanged}).Draw(t, "of it")
	}
	d := journal.Draft{Kind: kind, Pos: drawPos(t, c, kind), Actor: stint.Actor(rapid.SampledFrom([]string{"", "agent", "human:kim"}).Draw(t, "actor"))}
	d.Data = drawData(t, c, kind)
	if i := slices.IndexFunc(c.s.At.Approvals, func(a stint.Approval) bool { return a.Seq == about(d.Data) }); i >= 0 && rapid.IntRange(0, 9).Draw(t, "where it was asked") > 0 {
		d.Pos.Step, d.Pos.Sub = c.s.At.Approvals[i].Step.Step, c.s.At.Approvals[i].Step.Sub
	}
	switch data := d.Data.(type) {
	case journal.LoopCompleted:
		data.State, d.Body = drawState(t, c)
		d.Data = data
	case journal.LineStarted:
		d.Body = drawStateOf(t, c, &data)
		d.Data = data
	case journal.Created:
		if data.Parent.Branch && rapid.Bool().Draw(t, "with a state") {
			data.State, d.Body = c.encode([]byte(rapid.StringN(0, 60, -1).Draw(t, "state")))
			d.Data = data
		}
	default:
		d.Body = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "body")
	}
	return d
}

func drawPos(t *rapid.T, c *chain, kind stint.Kind) stint.Position {
	pos := c.at(rapid.IntRange(0, 5).Draw(t, "step"), rapid.IntRange(0, 2).Draw(t, "sub"))
	if kind == stint.LoopStarted {
		pos = c.next()
	}
	if as := ofSteps(c.s.At.Approvals); len(as) > 0 && rapid.IntRange(0, 2).Draw(t, "asked about") > 0 {
		switch kind { // where a question matters
		case stint.StepRequested, stint.StepCompleted, stint.StepFailed:
			pos.Step, pos.Sub = as[0].Step.Step, as[0].Step.Sub
		}
	}
	if kind == stint.MessageTaken && rapid.Bool().Draw(t, "for the next loop") {
		pos = c.next()
	}
	if rapid.IntRange(0, 9).Draw(t, "askew") == 0 {
		pos.Loop += rapid.IntRange(-1, 2).Draw(t, "loop")
		pos.Attempt += rapid.IntRange(-1, 1).Draw(t, "attempt")
		pos.Step += rapid.IntRange(0, 1).Draw(t, "steps")
	}
	return pos
}

func drawState(t *rapid.T, c *chain) (journal.StateRef, []byte) {
	if c.s.Head == 0 || rapid.Bool().Draw(t, "same") {
		return journal.StateRef{Enc: journal.Same, Size: c.s.Checkpoint.Size}, nil
	}
	return c.encode([]byte(rapid.StringN(0, 60, -1).Draw(t, "state")))
}

func drawUsage(t *rapid.T) stint.Usage {
	n := rapid.Int64Range(0, 1<<40)
	if rapid.Bool().Draw(t, "free") {
		return stint.Usage{}
	}
	return stint.Usage{Input: n.Draw(t, "in"), Output: n.Draw(t, "out"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write"), Cost: stint.Money(n.Draw(t, "cost"))}
}

func drawLimits(t *rapid.T) stint.Limits {
	l := stint.Limits{Loops: rapid.IntRange(0, 9).Draw(t, "loops"), Cost: stint.Money(rapid.Int64Range(0, 1e12).Draw(t, "money")), Stop: rapid.Bool().Draw(t, "stop"),
		ToolCalls: rapid.IntRange(0, 9).Draw(t, "tool calls"), Children: rapid.IntRange(-1, 9).Draw(t, "children")}
	l.Deadline = drawTime(t)
	return l
}

func drawTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "never") {
		return time.Time{}
	}
	return base().Add(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "until")) * time.Microsecond)
}

// drawRan is what a runner measured of the stretch that an entry may close.
func drawRan(t *rapid.T) time.Duration {
	return time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-5, 1e12)).Draw(t, "ran"))
}

func drawStep(t *rapid.T) journal.StepRequested {
	return journal.StepRequested{
		Name:    rapid.StringN(1, 12, -1).Draw(t, "name"),
		Kind:    rapid.SampledFrom([]stint.StepKind{stint.Model, stint.Tool, stint.Custom}).Draw(t, "step kind"),
		Effect:  rapid.SampledFrom([]stint.Effect{stint.Read, stint.Idempotent, stint.Once}).Draw(t, "effect"),
		Input:   rapid.SampledFrom([]string{"", "0a1b"}).Draw(t, "input"),
		Child:   rapid.IntRange(0, 3).Draw(t, "child") == 0,
		Reserve: rapid.SampledFrom([]stint.Usage{{}, {}, {Input: 5, Output: 8192, Cost: 1e6}}).Draw(t, "reserve"),
	}
}

// drawAskedStep is any step, often one that a person was asked about.
func drawAskedStep(t *rapid.T, c *chain) journal.StepRequested {
	d := drawStep(t)
	if as := ofSteps(c.s.At.Approvals); len(as) > 0 && rapid.IntRange(0, 3).Draw(t, "the asked one") > 0 {
		d.Name, d.Effect, d.Input = as[0].Name, as[0].Effect, as[0].Input
		if as[0].Edited != "" && rapid.IntRange(0, 3).Draw(t, "as it was changed") > 0 {
			d.Input, d.Asked = as[0].Edited, as[0].Input
		}
	}
	return d
}

func drawData(t *rapid.T, c *chain, kind stint.Kind) any {
	text := rapid.String()
	switch kind {
	case stint.SessionCreated:
		d := createdData()
		d.Name, d.Limits = text.Draw(t, "name"), drawLimits(t)
		if rapid.Bool().Draw(t, "labelled") {
			d.Labels = map[string]string{"k": text.Draw(t, "label")}
		}
		d.Trigger.Due = drawTime(t)
		if rapid.IntRange(0, 2).Draw(t, "of another") == 0 {
			d.Parent = stint.Parent{Session: testID(2), Seq: stint.Seq(rapid.IntRange(0, 3).Draw(t, "parent's entry")), Hash: stint.Hash{9}, Branch: rapid.IntRange(0, 4).Draw(t, "branch") > 0,
				Loop: rapid.IntRange(-1, 4).Draw(t, "branched at"), Reason: text.Draw(t, "why")}
		}
		return d
	case stint.SessionWaiting:
		w := journal.Waiting{For: rapid.SampledFrom([]stint.WaitFor{stint.ForMessage, stint.ForTime, stint.ForDoubt, stint.ForRetry}).Draw(t, "for"), Until: drawTime(t), What: text.Draw(t, "what")}
		if rapid.Bool().Draw(t, "wakes") {
			w.Wakes = []stint.MessageKind{stint.Prompt}
		}
		if rapid.Bool().Draw(t, "parked") {
			return journal.Parked{Waiting: w, Hint: text.Draw(t, "hint"), Ran: drawRan(t)}
		}
		return w
	case stint.SessionResumed:
		return journal.Resumed{Why: "resume", Reason: text.Draw(t, "reason")}
	case stint.SessionReleased:
		return journal.Released{Why: "drain", Ran: drawRan(t)}
	case stint.SessionEnded:
		return journal.Ended{Outcome: rapid.SampledFrom([]stint.Status{stint.Completed, stint.Failed, stint.Stopped, stint.Canceled, stint.Waiting, ""}).Draw(t, "outcome"), Reason: text.Draw(t, "reason"), Ran: drawRan(t)}
	case stint.LineStarted:
		return drawLine(t, c)
	case stint.LoopStarted:
		return journal.LoopStarted{Why: "next"}
	case stint.LeaseLost:
		return journal.LeaseLost{Prior: rapid.SampledFrom([]stint.Prior{stint.Died, stint.Expired, stint.Released, ""}).Draw(t, "prior")}
	case stint.LoopCompleted:
		return journal.LoopCompleted{Headline: text.Draw(t, "headline"), Ran: drawRan(t)}
	case stint.LoopFailed:
		return journal.LoopFailed{Error: text.Draw(t, "error"), Final: rapid.Bool().Draw(t, "final"), Ran: drawRan(t)}
	case stint.StepRequested:
		return drawAskedStep(t, c)
	case stint.ApprovalRequested, stint.ApprovalDecided, stint.ApprovalChanged:
		return drawApproval(t, c, kind)
	case stint.StepCompleted, stint.StepFailed:
		return journal.StepDone{StepRequested: drawAskedStep(t, c), Usage: drawUsage(t), Definite: rapid.Bool().Draw(t, "definite"), Copied: rapid.IntRange(0, 5).Draw(t, "copied") == 0}
	case stint.StepResolved:
		return journal.StepResolved{Verdict: journal.Happened}
	case stint.MessageTaken, stint.MessageRefused:
		return journal.Taken{ID: "m", Kind: rapid.SampledFrom([]stint.MessageKind{stint.Prompt, stint.ChildEnd, stint.Pause}).Draw(t, "message"), From: "human:kim", At: base()}
	case stint.LimitChanged:
		return journal.LimitChanged{Limits: drawLimits(t)}
	case stint.OutputWritten:
		return journal.Output{Stream: "stdout"}
	}
	return nil
}

// ofSteps are the questions that are not about orders.
func ofSteps(all []stint.Approval) []stint.Approval {
	return slices.DeleteFunc(slices.Clone(all), func(a stint.Approval) bool { return a.OfOrder() })
}

// about is the question that data is about; 0: none.
func about(data any) stint.Seq {
	switch d := data.(type) {
	case journal.ApprovalDecided:
		return d.Approval
	case journal.ApprovalChanged:
		return d.Approval
	}
	return 0
}

// drawApproval is data about a question.
func drawApproval(t *rapid.T, c *chain, kind stint.Kind) any {
	text := rapid.String()
	switch kind {
	case stint.ApprovalRequested:
		d := journal.ApprovalRequested{StepRequested: drawStep(t), Text: text.Draw(t, "text"), Why: text.Draw(t, "why")}
		if rapid.Bool().Draw(t, "wants an answer") {
			d.Schema = json.RawMessage(`{"type":"string"}`)
		}
		if rapid.Bool().Draw(t, "by a policy") {
			d.Quorum, d.Until, d.Approvers, d.Editable = rapid.IntRange(0, 3).Draw(t, "quorum"), drawTime(t), []string{"admin"}, true
		}
		return d
	case stint.ApprovalChanged:
		d := journal.ApprovalChanged{Approval: stint.Seq(rapid.IntRange(1, 9).Draw(t, "approval")), Yes: rapid.IntRange(0, 3).Draw(t, "yes") > 0}
		if rapid.IntRange(0, 2).Draw(t, "changed") == 0 {
			d.Edited = rapid.SampledFrom([]string{"ff00", "ee11"}).Draw(t, "to")
		}
		if !d.Yes {
			d.Approvers, d.Until = []string{"user:kim"}, drawTime(t)
		}
		if as := c.s.At.Approvals; len(as) > 0 && rapid.IntRange(0, 4).Draw(t, "of those asked") > 0 {
			if steps := ofSteps(as); len(steps) > 0 && rapid.IntRange(0, 3).Draw(t, "about a step") > 0 {
				as = steps
			}
			d.Approval = rapid.SampledFrom(as).Draw(t, "which").Seq
		}
		return d
	case stint.ApprovalDecided:
		d := journal.ApprovalDecided{Approval: stint.Seq(rapid.IntRange(1, 9).Draw(t, "approval")), Note: text.Draw(t, "note"),
			State: rapid.SampledFrom([]stint.ApprovalState{stint.ApprovalApproved, stint.ApprovalApproved, stint.ApprovalDenied, stint.ApprovalExpired,
				stint.ApprovalCanceled, stint.ApprovalInvalidated, stint.ApprovalOpen, ""}).Draw(t, "decision")}
		if as := c.s.At.Approvals; len(as) > 0 && rapid.IntRange(0, 4).Draw(t, "of those asked") > 0 {
			if steps := ofSteps(as); len(steps) > 0 && rapid.IntRange(0, 3).Draw(t, "about a step") > 0 {
				as = steps
			}
			d.Approval = rapid.SampledFrom(as).Draw(t, "which").Seq
		}
		if rapid.IntRange(0, 3).Draw(t, "edited") == 0 {
			d.Edited = rapid.SampledFrom([]string{"ff00", "ee11"}).Draw(t, "to")
		}
		return d
	}
	return nil
}

// drawLine goes back to any completed loop of the line.
func drawLine(t *rapid.T, c *chain) journal.LineStarted {
	if c.s.Head == 0 {
		return journal.LineStarted{}
	}
	first := 0
	if c.s.Parent.Branch {
		first = c.s.Parent.Loop
	}
	from := rapid.IntRange(first, c.s.Checkpoint.Loop).Draw(t, "from")
	if rapid.IntRange(0, 9).Draw(t, "from nowhere") == 0 {
		return journal.LineStarted{From: rapid.SampledFrom([]int{-1, first - 1, c.s.Checkpoint.Loop + 1}).Draw(t, "where")}
	}
	cp, err := journal.CheckpointAt(c.es, from)
	if err != nil {
		t.Fatalf("CheckpointAt(%d): %v", from, err)
	}
	line := journal.LineStarted{From: from, Checkpoint: cp, Reason: rapid.String().Draw(t, "reason"), Park: rapid.Bool().Draw(t, "park"), Ran: drawRan(t)}
	if rapid.IntRange(0, 4).Draw(t, "another agent") == 0 {
		line.Agent, line.Config = &stint.AgentRef{Name: rapid.StringN(1, 5, -1).Draw(t, "agent"), Runtime: "exec"}, json.RawMessage(`{"a":1}`)
	}
	return line
}

// drawStateOf gives a line a state of its own, now and then.
func drawStateOf(t *rapid.T, c *chain, d *journal.LineStarted) (body []byte) {
	if c.s.Head == 0 || d.Checkpoint.Loop != d.From || d.From < 0 || d.From > c.s.Checkpoint.Loop || rapid.Bool().Draw(t, "its own state") {
		return nil
	}
	var err error
	d.State, body, err = journal.WriteState(d.Checkpoint, c.state(d.Checkpoint), []byte(rapid.StringN(0, 60, -1).Draw(t, "state")), c.source)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return body
}

// TestOutOfOrder gives Apply sound entries of the wrong place.
func TestOutOfOrder(t *testing.T) {
	c := begun(t)
	good := c.loop()
	before, err := journal.Fold(stint.Session{}, c.es[:1])
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*stint.Entry){
		"another session": func(e *stint.Entry) { e.Session = testID(9) },
		"a gap":           func(e *stint.Entry) { e.Seq++ },
		"a repetition":    func(e *stint.Entry) { e.Seq-- },
		"another line":    func(e *stint.Entry) { e.Pos.Line++ },
		"no kind":         func(e *stint.Entry) { e.Kind = "" },
		"bad data":        func(e *stint.Entry) { e.Data = []byte(`{"why":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			spoil(&e)
			s, err := journal.Apply(before, e)
			if err == nil {
				t.Fatalf("Apply took it")
			}
			if !reflect.DeepEqual(s, before) {
				t.Fatalf("Apply refused it and returned another session")
			}
		})
	}
	if _, err := journal.Apply(before, good); err != nil {
		t.Fatalf("the good one: %v", err)
	}
}

// TestBegin makes the first entry; an id is what a session is born with.
func TestBegin(t *testing.T) {
	d := journal.Draft{At: base(), Body: []byte("the input"), Salt: saltOf(1)}
	s, e, err := journal.Begin(testID(1), createdData(), d)
	if err != nil || s.ID != testID(1) || e.Kind != stint.SessionCreated || e.Seq != 1 || e.Actor != stint.ByEngine || string(e.Body) != "the input" {
		t.Fatalf("%+v %+v %v", s, e, err)
	}
	if again, err := journal.Fold(stint.Session{}, []stint.Entry{e}); err != nil || !reflect.DeepEqual(again, s) {
		t.Fatalf("%+v %v", again, err)
	}
	if s, err := journal.Fold(s, []stint.Entry{e}); err == nil {
		t.Fatalf("it begins twice: %+v", s)
	}
}

// actorOf is who an entry is by whose draft names a.
func actorOf(a stint.Actor) stint.Actor {
	if a == "" {
		return stint.ByEngine
	}
	return a
}

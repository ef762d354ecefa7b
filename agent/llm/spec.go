package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// Spec says what an [Agent] is made of. Only Model is required.
type Spec struct {
	Model  model.Model // shared with others where it should wait with them: see [model.Paced]
	System string      // instructions
	// Prompt is what the first loop is told if the session has no input.
	Prompt string
	Tools  *tool.Set // nil: none
	// Interactive makes the end of a turn wait for the next message.
	Interactive bool
	MaxTokens   int64         // of one answer; 0: the provider's default, counted as 8192 beforehand
	Temperature *float64      // nil: the provider's
	Timeout     time.Duration // of one call of a model, its waiting included; 0: an hour
	Cache       bool          // ask for the provider's prompt cache
	// Cost is what an answer of the named model costs, false if that is not known. nil:
	// everything is free.
	Cost   func(modelName string, u model.Usage) (stint.Money, bool)
	Prices string // version of the table behind Cost, recorded with each answer
	// Context bounds what is sent to the model.
	Context Context
	// Rubric judges the end of a turn; nil: nobody does.
	Rubric *Rubric
	// Health says when repeated calls are a finding. A warning goes to the session's log;
	// a pause makes it wait for a person, with the rule's name.
	Health health.Rules
	// TrustAll turns off the rule "tainted": after a tool with Taints has given a result,
	// or in a session that a hook started, a call of a once tool without [tool.Never] is
	// asked of a person.
	TrustAll bool
	// Hear gets the answer in a loop of a session while it is being written, from many
	// goroutines. It must be quick, and nothing follows from it.
	Hear func(session stint.ID, loop int, d model.Delta)
	// Record answers the calls of all tools that act outside, of which none is called then,
	// and nobody is asked about one; nil: they are called.
	Record Record
}

// Context bounds what is sent to the model. Tokens are those that the model reported
// last, and a quarter of the bytes that came after.
type Context struct {
	Window  int64   // tokens that the model takes; 0: 150,000
	Compact float64 // share of Window at which older messages give way to a summary; 0: 0.8
	Excerpt int     // bytes of one tool's result that the model gets, at least 512; 0: 32 KiB
}

// Rubric is how the end of a turn is judged.
type Rubric struct {
	Text   string      // what an answer must be like
	Model  model.Model // the judge
	Rounds int         // the answers that may fail in a row; with the last the session fails. 0: 3
}

// Defaults and bounds.
const (
	defaultTokens  = 8192
	defaultWindow  = 150_000
	defaultCompact = 0.8
	defaultExcerpt = 32 << 10
	minExcerpt     = 512
	defaultRounds  = 3
	inARow         = 3 // cut answers, ends without finish
)

// Agent is a model with tools. It may serve any number of sessions at once: what belongs
// to a session is in its state, and what is kept here besides can be lost at any time.
type Agent struct {
	spec    Spec
	plain   offer // what the model is asked with
	reading offer // the same with read_result
	finish  bool  // there is a tool finish
	health  *health.Monitor
	cache   cache // the newest states, taken apart
}

var _ stint.Agent = (*Agent)(nil)

// offer is a request without its messages.
type offer struct {
	set         *tool.Set
	request     model.Request
	front, back []byte // its JSON around the messages
}

// New makes an agent of s. [stint.Invalid] says what in s cannot be used.
func New(s Spec) (*Agent, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.fill()
	a := &Agent{spec: s}
	var tools []tool.Tool
	if s.Tools != nil {
		tools = s.Tools.Tools()
		_, a.finish = s.Tools.Lookup(finishName)
	}
	var err error
	if a.health, err = health.NewMonitor(s.Health); err != nil {
		return nil, err
	}
	if a.plain, err = s.offer(tools); err != nil {
		return nil, err
	}
	if a.reading, err = s.offer(append(tools, reader())); err != nil {
		return nil, err
	}
	return a, nil
}

func refuse(hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "llm", Err: fmt.Errorf(format, args...), Hint: hint}
}

func (s *Spec) check() error {
	if s.Model == nil {
		return refuse("name a model", "the agent has no model")
	}
	if n := s.Model.Name(); !utf8.ValidString(n) || strings.TrimSpace(n) == "" || utf8.RuneCountInString(n) > 200 {
		return refuse("name the model as its provider does", "the model's name %.100q is not 1 to 200 characters of UTF-8", n)
	}
	c := s.Context
	switch {
	case !utf8.ValidString(s.System) || !utf8.ValidString(s.Prompt):
		return refuse("write them in UTF-8", "the instructions or the prompt are not UTF-8")
	case s.MaxTokens < 0 || c.Window < 0 || s.Timeout < 0:
		return refuse("leave it out for the default", "a bound is negative: max tokens %d, window %d, timeout %v", s.MaxTokens, c.Window, s.Timeout)
	case c.Compact < 0 || c.Compact > 1:
		return refuse("write 0.8, or leave it out", "compaction at %v of the window; it is a share between 0 and 1", c.Compact)
	case c.Excerpt != 0 && c.Excerpt < minExcerpt:
		return refuse("leave it out for 32 KiB", "excerpts of %d bytes; at least %d", c.Excerpt, minExcerpt)
	case s.Rubric != nil && (s.Rubric.Model == nil || strings.TrimSpace(s.Rubric.Text) == "" || s.Rubric.Rounds < 0):
		return refuse("give the rubric a text and a model", "the rubric has no text, no model or negative rounds")
	}
	if s.Tools != nil {
		if _, taken := s.Tools.Lookup(readName); taken {
			return refuse("name the tool otherwise", "a tool is called %s, which the agent brings itself", readName)
		}
	}
	return nil
}

func (s *Spec) fill() {
	if s.Timeout == 0 {
		s.Timeout = time.Hour
	}
	if s.Context.Window == 0 {
		s.Context.Window = defaultWindow
	}
	if s.Context.Compact == 0 {
		s.Context.Compact = defaultCompact
	}
	if s.Context.Excerpt == 0 {
		s.Context.Excerpt = defaultExcerpt
	}
	if s.Rubric != nil {
		r := *s.Rubric
		if r.Rounds == 0 {
			r.Rounds = defaultRounds
		}
		s.Rubric = &r
	}
}

// offer makes the request that the model is asked with.
func (s *Spec) offer(tools []tool.Tool) (offer, error) {
	set, err := tool.NewSet(tools...)
	if err != nil {
		return offer{}, err
	}
	o := offer{set: set, request: model.Request{System: s.System, MaxTokens: s.MaxTokens, Temperature: s.Temperature, Cache: s.Cache}}
	for _, t := range set.Tools() {
		o.request.Tools = append(o.request.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	probe := o.request
	probe.Messages = []model.Message{model.Text(model.User, "?")}
	if err := probe.Check(); err != nil {
		return offer{}, refuse("mend the tools of the agent", "the model cannot be asked with these tools: %w", err)
	}
	whole, err := stint.Marshal(o.request)
	if err != nil {
		return offer{}, err
	}
	front, back, ok := strings.Cut(string(whole), `"messages":null`)
	if !ok {
		return offer{}, errors.New("llm: a request has no messages in its JSON")
	}
	o.front, o.back = []byte(front+`"messages":[`), []byte("]"+back)
	return o, nil
}

// size is the bytes of what is sent besides messages.
func (o *offer) size() int { return len(o.front) + len(o.back) }

// HearsLimits says that a model is told when a limit of its session is nearly used up: it
// can come to an end before.
func (a *Agent) HearsLimits() {}

// finishName is the tool that ends the session with a result.
const finishName = "finish"

// none is the state of a session that has none.
func none(state json.RawMessage) bool { return len(state) == 0 || string(state) == "null" }

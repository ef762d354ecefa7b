package model

import "strings"

// Role is whose message it is.
type Role string

// The roles. Results of tools are the user's.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of one side.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message: exactly one of its fields is set. Text that is not
// empty makes it a text.
type Part struct {
	Text   string  `json:"text,omitempty"`
	Call   *Call   `json:"call,omitempty"`
	Result *Result `json:"result,omitempty"`
	Opaque *Opaque `json:"opaque,omitempty"`
}

// Call asks for a tool to be called.
type Call struct {
	ID   string `json:"id"` // unique in a request: 1 to 40 of A-Z a-z 0-9 _ -
	Name string `json:"name"`
	Args Args   `json:"args"`
}

// Result is what a call gave.
type Result struct {
	Call string `json:"call"` // the call's id
	Text string `json:"text"` // UTF-8; may be empty
	// Error says that the call failed. Only the Messages API has a place for it, so the
	// text says it too.
	Error bool `json:"error,omitempty"`
}

// Opaque is a block that only the provider that made it understands: thinking with its
// signature, an encrypted chain of thought, a tool that the provider ran. It goes back
// to that provider byte for byte, and to no other. Newer models refuse what another
// model thought, so that it goes back to the model that made it alone.
type Opaque struct {
	Provider string `json:"provider"`        // "anthropic", "openai.responses"
	Model    string `json:"model,omitempty"` // Name of the model that made it; empty: any of the provider's
	Data     string `json:"data"`            // JSON text
}

// For reports whether o goes back to a provider's model.
func (o *Opaque) For(provider, model string) bool {
	return o != nil && o.Provider == provider && (o.Model == "" || o.Model == model)
}

// Text returns a message of one text.
func Text(r Role, text string) Message { return Message{Role: r, Parts: []Part{{Text: text}}} }

// Results returns the user's message that answers calls, in their order.
func Results(results ...Result) Message {
	m := Message{Role: User, Parts: make([]Part, len(results))}
	for i := range results {
		m.Parts[i].Result = &results[i]
	}
	return m
}

// Text is the message's texts, joined.
func (m *Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls are the message's calls, in order, whatever their state; see [Answer.Calls].
func (m *Message) Calls() []Call {
	var calls []Call
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}

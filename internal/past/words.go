package past

import (
	"bytes"
	"encoding/json"
)

// Answer is what a model said.
type Answer struct {
	Text   string
	Calls  []string // names, in order
	Stop   string   // why it ended, as the agent llm records it
	Reason string
}

// ReadAnswer reads a model's answer in the result of a step: of the agent llm, or of one
// with a command line of its own. ok is false for a shape that is not known.
func ReadAnswer(body []byte) (out Answer, ok bool) {
	var a struct {
		Message *struct {
			Parts []struct {
				Text string
				Call *struct{ Name string }
			}
		}
		Stop   string
		Reason string

		Text  string
		Calls []struct{ Name string }
		Last  *bool
	}
	if b := bytes.TrimSpace(body); len(b) == 0 || b[0] != '{' || json.Unmarshal(body, &a) != nil {
		return out, false
	}
	out = Answer{Text: a.Text, Stop: a.Stop, Reason: a.Reason}
	switch {
	case a.Message != nil && a.Stop != "":
		out.Text = ""
		for _, p := range a.Message.Parts {
			if out.Text += p.Text; p.Call != nil {
				out.Calls = append(out.Calls, p.Call.Name)
			}
		}
	case a.Message == nil && (len(a.Calls) > 0 || a.Text != "" && a.Last != nil):
		for _, c := range a.Calls {
			out.Calls = append(out.Calls, c.Name)
		}
	default:
		return out, false
	}
	return out, true
}

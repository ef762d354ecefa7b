package journal

import (
	"encoding/json"
	"strconv"

	"github.com/stint-dev/stint"
)

// appendJSON writes what encoding/json would, see TestHandWrittenJSON.
func (d LoopStarted) appendJSON(b []byte) []byte {
	return append(appendString(append(b, `{"why":`...), d.Why), '}')
}

func (d StepRequested) appendJSON(b []byte) []byte { return append(d.appendMembers(b), '}') }

func (d StepRequested) appendMembers(b []byte) []byte {
	b = appendString(append(b, `{"name":`...), d.Name)
	b = appendString(append(b, `,"kind":`...), string(d.Kind))
	b = appendString(append(b, `,"effect":`...), string(d.Effect))
	if d.Input != "" {
		b = appendString(append(b, `,"input":`...), d.Input)
	}
	if d.Reserve != (stint.Usage{}) {
		b = appendUsage(append(b, `,"reserve":`...), d.Reserve)
	}
	return b
}

func (d StepDone) appendJSON(b []byte) []byte {
	b = d.appendMembers(b)
	if len(d.Args) > 0 {
		b = append(append(b, `,"args":`...), d.Args...)
	}
	b = strconv.AppendInt(append(b, `,"ms":`...), d.MS, 10)
	if d.Usage != (stint.Usage{}) {
		b = appendUsage(append(b, `,"usage":`...), d.Usage)
	}
	if d.Error != "" {
		b = appendString(append(b, `,"error":`...), d.Error)
	}
	if d.Definite {
		b = append(b, `,"definite":true`...)
	}
	if d.Final {
		b = append(b, `,"final":true`...)
	}
	return append(b, '}')
}

func (d LoopCompleted) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for _, f := range [...]struct {
		name string
		v    int
	}{{"steps", d.Steps}, {"models", d.Models}, {"tools", d.Tools}, {"effects", d.Effects}, {"errors", d.Errors}} {
		if f.v != 0 {
			b = append(append(append(b, '"'), f.name...), `":`...)
			b = append(strconv.AppendInt(b, int64(f.v), 10), ',')
		}
	}
	if d.Usage != (stint.Usage{}) {
		b = append(appendUsage(append(b, `"usage":`...), d.Usage), ',')
	}
	b = strconv.AppendInt(append(b, `"ms":`...), d.MS, 10)
	b = d.State.appendJSON(append(b, `,"state":`...))
	if d.Headline != "" {
		b = appendString(append(b, `,"headline":`...), d.Headline)
	}
	if d.Ran != 0 {
		b = strconv.AppendInt(append(b, `,"ran_ns":`...), int64(d.Ran), 10)
	}
	return append(b, '}')
}

func (r StateRef) appendJSON(b []byte) []byte {
	b = appendString(append(b, `{"enc":`...), string(r.Enc))
	if r.Base != 0 {
		b = strconv.AppendInt(append(b, `,"base":`...), int64(r.Base), 10)
	}
	if r.Rank != 0 {
		b = strconv.AppendInt(append(b, `,"rank":`...), int64(r.Rank), 10)
	}
	if r.Weight != 0 {
		b = strconv.AppendInt(append(b, `,"weight":`...), r.Weight, 10)
	}
	b = strconv.AppendInt(append(b, `,"size":`...), r.Size, 10)
	if !r.Sum.IsZero() {
		b = append(b, `,"sum":"`...)
		for _, c := range r.Sum {
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
		b = append(b, '"')
	}
	return append(b, '}')
}

func appendUsage(b []byte, u stint.Usage) []byte {
	b = append(b, '{')
	for _, f := range [...]struct {
		name string
		v    int64
	}{{"input_tokens", u.Input}, {"output_tokens", u.Output}, {"cache_read_tokens", u.CacheRead}, {"cache_write_tokens", u.CacheWrite}} {
		if f.v != 0 {
			b = append(append(append(b, '"'), f.name...), `":`...)
			b = append(strconv.AppendInt(b, f.v, 10), ',')
		}
	}
	if u.Cost != 0 {
		b = append(append(append(b, `"cost":"`...), u.Cost.String()...), `",`...)
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

const hexDigits = "0123456789abcdef"

// appendString writes s as a JSON string; anything but plain ASCII goes through
// encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			q, err := json.Marshal(s)
			if err != nil { // a string always marshals
				panic(err)
			}
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// appendJSON writes what encoding/json would, see TestHandWrittenJSON.
func (d LoopStarted) appendJSON(b []byte) []byte {
	return append(appendString(append(b, `{"why":`...), d.Why), '}')
}

// plain reports whether d is of a session that comes from no other. Only that is written by
// hand: others are few.
func (d Created) plain() bool {
	return d.Parent == (stint.Parent{}) && d.State == (StateRef{}) && len(d.Skipped) == 0
}

func (d Created) appendJSON(b []byte) []byte {
	b = appendID(append(b, `{"family":`...), d.Family)
	b = appendString(append(b, `,"name":`...), d.Name)
	b = appendString(append(b, `,"agent":{"name":`...), d.Agent.Name)
	b = appendString(append(b, `,"runtime":`...), d.Agent.Runtime)
	b = append(appendHash(append(b, `,"pin":`...), d.Agent.Pin), '}')
	if len(d.Config) > 0 {
		b = append(append(b, `,"config":`...), d.Config...)
	}
	b = appendString(append(b, `,"trigger":{"kind":`...), d.Trigger.Kind)
	if d.Trigger.Ref != "" {
		b = appendString(append(b, `,"ref":`...), d.Trigger.Ref)
	}
	if !d.Trigger.Due.IsZero() {
		b = appendTime(append(b, `,"due":`...), d.Trigger.Due)
	}
	b = append(b, '}')
	if len(d.Labels) > 0 {
		sep := `,"labels":{`
		for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
			b = appendString(append(appendString(append(b, sep...), k), ':'), d.Labels[k])
			sep = ","
		}
		b = append(b, '}')
	}
	return append(appendLimits(append(b, `,"limits":`...), d.Limits), '}')
}

func (d StepRequested) appendJSON(b []byte) []byte { return append(d.appendMembers(b), '}') }

func (d StepRequested) appendMembers(b []byte) []byte {
	b = appendString(append(b, `{"name":`...), d.Name)
	b = appendString(append(b, `,"kind":`...), string(d.Kind))
	b = appendString(append(b, `,"effect":`...), string(d.Effect))
	if d.Input != "" {
		b = appendString(append(b, `,"input":`...), d.Input)
	}
	if d.Asked != "" {
		b = appendString(append(b, `,"asked":`...), d.Asked)
	}
	if d.Rule != "" {
		b = appendString(append(b, `,"rule":`...), d.Rule)
	}
	if d.Child {
		b = append(b, `,"child":true`...)
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
	if d.Copied {
		b = append(b, `,"copied":true`...)
	}
	return append(b, '}')
}

func (d LoopCompleted) appendJSON(b []byte) []byte {
	b = appendCounts(append(b, '{'), count{"steps", int64(d.Steps)}, count{"models", int64(d.Models)}, count{"tools", int64(d.Tools)},
		count{"effects", int64(d.Effects)}, count{"errors", int64(d.Errors)})
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
		b = appendHash(append(b, `,"sum":`...), r.Sum)
	}
	return append(b, '}')
}

func appendLimits(b []byte, l stint.Limits) []byte {
	b = append(b, '{')
	b = appendCounts(b, count{"wall_ns", int64(l.Wall)}, count{"idle_ns", int64(l.Idle)})
	if !l.Deadline.IsZero() {
		b = append(appendTime(append(b, `"deadline":`...), l.Deadline), ',')
	}
	b = appendCounts(b, count{"loops", int64(l.Loops)}, count{"steps", int64(l.Steps)}, count{"tokens", l.Tokens})
	if l.Cost != 0 {
		b = append(append(append(b, `"cost":"`...), l.Cost.String()...), `",`...)
	}
	b = appendCounts(b, count{"tool_calls", int64(l.ToolCalls)}, count{"children", int64(l.Children)})
	if l.Stop {
		b = append(b, `"stop":true,`...)
	}
	return closed(b)
}

// count is a member that is left out where it is zero.
type count struct {
	name string
	v    int64
}

// appendCounts writes the members of an object, each with a comma behind it.
func appendCounts(b []byte, all ...count) []byte {
	for _, c := range all {
		if c.v != 0 {
			b = append(append(append(b, '"'), c.name...), `":`...)
			b = append(strconv.AppendInt(b, c.v, 10), ',')
		}
	}
	return b
}

// closed ends an object whose members have a comma behind each.
func closed(b []byte) []byte { return append(bytes.TrimSuffix(b, []byte{','}), '}') }

func appendID(b []byte, id stint.ID) []byte {
	b = append(b, '"')
	if !id.IsZero() {
		b = append(b, id.String()...)
	}
	return append(b, '"')
}

// appendHash writes h in hexadecimal, the zero Hash as an empty string.
func appendHash(b []byte, h stint.Hash) []byte {
	b = append(b, '"')
	if !h.IsZero() {
		b = hex.AppendEncode(b, h[:])
	}
	return append(b, '"')
}

// appendTime writes t as a session has it. A year that RFC 3339 cannot say makes data that
// cannot be read, which [Next] refuses.
func appendTime(b []byte, t time.Time) []byte {
	return append(micro(t).AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func appendUsage(b []byte, u stint.Usage) []byte {
	b = appendCounts(append(b, '{'),
		count{"input_tokens", u.Input}, count{"output_tokens", u.Output}, count{"cache_read_tokens", u.CacheRead}, count{"cache_write_tokens", u.CacheWrite})
	if u.Cost != 0 {
		b = append(append(append(b, `"cost":"`...), u.Cost.String()...), `",`...)
	}
	return closed(b)
}

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

package modeltest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/model"
)

// Messages draws a list of messages that [model.Valid] accepts.
func Messages(rt *rapid.T) []model.Message {
	text := func(label string) string {
		return rapid.OneOf(
			rapid.SampledFrom([]string{"x", "<b>&", "a\u2028b", "🙂 é", "a\x00b\x1b[31m", `{"a":1}`, `\ud83d`}),
			rapid.StringN(1, 20, 40).Filter(nonBlank),
		).Draw(rt, label)
	}
	args := rapid.SampledFrom([]string{``, ` `, `{}`, `{"a":9007199254740993}`, `{"a":`, `[]`, `null`, `{"a":"\ud800"}`,
		"{\"a\":\"\xff\"}", `{"a":1,"a":2}`, `{ "q" : "\"<>" }`})
	var out []model.Message
	var open []string
	n := 0
	for turn := range rapid.IntRange(1, 6).Draw(rt, "turns") {
		user := model.Message{Role: model.User}
		for _, id := range open {
			user.Parts = append(user.Parts, model.Part{Result: &model.Result{Call: id,
				Text: rapid.SampledFrom([]string{"", "ok", "\u0000", "<&>"}).Draw(rt, "result"), Error: rapid.Bool().Draw(rt, "error")}})
		}
		for i := range rapid.IntRange(0, 2).Draw(rt, "texts") {
			user.Parts = append(user.Parts, model.Part{Text: text(fmt.Sprintf("user%d", i))})
		}
		if len(user.Parts) == 0 {
			user.Parts = []model.Part{{Text: text("prompt")}}
		}
		out = append(out, user)
		open = open[:0]
		if turn > 0 && rapid.Bool().Draw(rt, "ends") {
			break
		}
		answer := model.Message{Role: model.Assistant}
		for range rapid.IntRange(1, 4).Draw(rt, "parts") {
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				answer.Parts = append(answer.Parts, model.Part{Text: rapid.SampledFrom([]string{"\n\n", "I will", "  "}).Draw(rt, "said")})
			case 1, 2:
				n++
				id := fmt.Sprintf("call_%d", n)
				open = append(open, id)
				answer.Parts = append(answer.Parts, model.Part{Call: &model.Call{ID: id, Name: "effect", Args: model.Args(args.Draw(rt, "args"))}})
			case 3:
				answer.Parts = append(answer.Parts, model.Part{Opaque: &model.Opaque{Provider: "elsewhere", Data: `{"type":"thinking"}`}})
			}
		}
		out = append(out, answer)
	}
	if len(open) > 0 {
		user := model.Message{Role: model.User}
		for _, id := range open {
			user.Parts = append(user.Parts, model.Part{Result: &model.Result{Call: id, Text: "last"}})
		}
		out = append(out, user)
	}
	return out
}

func nonBlank(s string) bool {
	return model.Valid([]model.Message{model.Text(model.User, s)}) == nil
}

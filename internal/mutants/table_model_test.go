package mutants_test

// modelMutants break what holds between stint and a language model's provider.
func modelMutants() []mutant {
	return []mutant{
		{
			name: "model-cut-answer-is-whole", file: "model/anthropic/stream.go",
			edits: one("if !s.done {\n\t\treturn s.x.Cut(dec.Err(), s.partial())\n\t}", "_ = dec.Err()"),
			why:   "a connection that breaks is taken for the end of a turn, and the session completes",
			red:   by("model/anthropic", "TestModel/CutStream|TestEveryCut"),
		}, {
			name: "model-done-without-finish-is-whole", file: "model/openai/chatstream.go",
			edits: one("if s.finish == \"\" {", "if false {"),
			why:   "a proxy that ends every stream with [DONE] hides a cut answer",
			red:   by("model/openai", "TestDialects|TestEveryCut"),
		}, {
			name: "model-ids-as-they-came", file: "model/valid.go",
			edits: one("!okName(c.ID, maxCallID) || taken[c.ID]; k++", "c.ID == \"\"; k++"),
			why:   "a provider that counts its calls from zero in each answer ends the session with 400",
			red:   by("model", "TestSettle"),
		}, {
			name: "model-broken-arguments-on-the-wire", file: "model/args.go",
			edits: one("case a.Check() != nil:\n\t\treturn unusable(string(a))", "case len(a) < 0:\n\t\treturn unusable(string(a))"),
			why:   "one broken call makes every later request of the session fail",
			red:   by("model", "TestArgs"),
		}, {
			name: "model-name-twice-is-fine", file: "model/args.go",
			edits: one("if top.names[name] {", "if top.names[name] && name == \"\" {"),
			why:   "what a person approved and what the tool reads are different members of one name",
			red:   by("model", "TestArgs"),
		}, {
			name: "model-result-order-free", file: "model/valid.go",
			edits: one("case k < len(open) && (p.Result == nil || p.Result.Call != open[k]):", "case k < len(open) && p.Result == nil:"),
			why:   "messages are sent that the provider refuses",
			red:   by("model", "TestValid"),
		}, {
			name: "pace-lets-all-go-at-once", file: "model/pace.go",
			edits: one("p.fresh, p.window = 0, 1", "p.fresh, p.window = 0, p.cfg.Parallel"),
			why:   "200 sessions wait as told, and then ask at the same moment",
			red:   by("model", "TestNoStorm"),
		}, {
			name: "pace-forgets-retry-after", file: "model/pace.go",
			edits: one("d = max(d/2+rand.N(d/2+1), e.After)", "d = d/2 + rand.N(d/2+1)"),
			why:   "attempts are used up while the provider is known to refuse",
			red:   by("model", "TestRetryAfter"),
		}, {
			name: "model-key-in-error", file: "internal/modelhttp/exchange.go",
			edits: one("s = strings.ReplaceAll(s, secret, \"[key]\")", "_ = secret"),
			why:   "a key that a service says back lands in the journal",
			red:   by("model/anthropic", "TestModel/Key"),
		}, {
			name: "model-half-character-lost", file: "internal/modelhttp/joiner.go",
			edits: one("s := keepHalves(j.escaped.String())", "s := j.escaped.String()"),
			why:   "an argument is changed in silence, and the tool gets another path than the model wrote",
			red:   by("internal/modelhttp", "TestJoiner"),
		}, {
			name: "model-thought-of-another", file: "model/message.go",
			edits: one("o.Provider == provider && (o.Model == \"\" || o.Model == model)", "o.Provider == provider && model != \"\""),
			why:   "after a change of the model every request is refused",
			red:   by("model/anthropic", "TestThinking"),
		}, {
			name: "model-cached-tokens-twice", file: "model/openai/chatstream.go",
			edits: one("Input: max(in-read-write, 0)", "Input: in"),
			why:   "cached tokens are paid for twice in every limit and report",
			red:   by("model/openai", "TestChat/Answers|TestReasoning"),
		}, {
			name: "price-rounds-down", file: "internal/price/price.go",
			edits: one("sum.Add(sum, big.NewInt(999_999)).Quo(sum, million)", "sum.Quo(sum, million)"),
			why:   "calls that cost less than a billionth each are free for ever",
			red:   by("internal/price", "TestCostIsExact"),
		}, {
			name: "price-free-by-name", file: "internal/price/price.go",
			edits: one("return ip != nil && ip.IsLoopback()", "return ip != nil && ip.IsLoopback() || strings.HasPrefix(host, \"127.\")"),
			why:   "a host that calls itself 127.0.0.1.example.com needs no limit",
			red:   by("internal/price", "TestFree"),
		},
	}
}

package mutants_test

// httpMutants break what holds between stint and an agent behind a URL.
func httpMutants() []mutant {
	return []mutant{
		{
			name: "http-lost-request-is-no-doubt", file: "agent/http/request.go",
			edits: one("return connected.Load(), x.unsent(err)", "return connected.Load() && false, x.unsent(err)"),
			why:   "an effect that a server died over is done again without anybody's word",
			red:   by("agent/http", "TestDiesInStep"),
		}, {
			name: "http-gateway-error-is-a-refusal", file: "agent/http/refusal.go",
			edits: one("case code >= 500:\n\t\treturn true, e", "case code >= 500:\n\t\treturn false, e"),
			why:   "an effect that a function died over behind its gateway is done again",
			red:   by("agent/http", "TestStatus|TestRefusalInSession"),
		}, {
			name: "http-once-on-a-used-connection", file: "agent/http/request.go",
			edits: one("client = x.d.agent.fresh", "client = x.d.agent.pool"),
			why:   "Go's transport sends a once step a second time by itself",
			red:   by("agent/http", "TestOnceIsSentOnce"),
		}, {
			name: "http-follows-anywhere", file: "agent/http/agent.go",
			edits: one("if !same || req.Method", "if !same && false || req.Method"),
			why:   "a redirect takes a session's state, signed, to another host",
			red:   by("agent/http", "TestRedirect"),
		}, {
			name: "http-signature-without-time", file: "agent/http/sign.go",
			edits: one(`id+"."+seconds+"."`, `id+"."+seconds[:0]+"."`),
			why:   "an old request can be sent again by whoever saw it",
			red:   by("agent/http", "TestLoop|TestVerify"),
		}, {
			name: "http-step-changes-unseen", file: "agent/http/exchange.go",
			edits: one("case sumOf(c) != s.sum:", "case sumOf(c) != s.sum && false:"),
			why:   "an agent does another thing under the intent of the one that it declared",
			red:   by("agent/http", "TestNotTheSameTwice"),
		}, {
			name: "http-secret-is-shown", file: "agent/http/agent.go",
			edits: one("return tool.Redact(text, a.hidden)", "return tool.Redact(text, nil)"),
			why:   "a server that repeats its Authorization puts it into the journal",
			red:   by("agent/http", "TestSecretsStayHidden"),
		}, {
			name: "http-line-without-bound", file: "agent/http/lines.go",
			edits: one("if len(l.buf)+len(part) > l.max {", "if false {"),
			why:   "a server that sends without end fills the memory",
			red:   by("agent/http", "TestTooLarge"),
		}, {
			name: "http-logs-twice", file: "agent/http/exchange.go",
			edits: one("if x.again < len(x.known) {\n\t\t\treturn nil, nil", "if false {\n\t\t\treturn nil, nil"),
			why:   "the log has every line once for each step that follows it",
			red:   by("agent/http", "TestLoop"),
		},
	}
}

package mutants_test

// doorMutants break what holds between stint and the agents that come to it as clients.
func doorMutants() []mutant {
	return []mutant{
		{
			name: "mcp-orders-to-the-server", file: "internal/mcpserver/read.go",
			edits: one("if err == nil && row.Session.Trigger.OfServer() {", "if false {"),
			why:   "an agent makes itself a token that approves",
			red:   by("internal/mcpserver", "TestTheServersJournalIsNoSession"),
		}, {
			name: "mcp-message-takes-the-decision", file: "internal/mcpserver/write.go",
			edits: one("return \"mcp:\" + chosen", "return chosen"),
			why:   "a client's message under the id of a decision keeps a person from deciding",
			red:   by("internal/mcpserver", "TestApprovals"),
		}, {
			name: "mcp-control-characters-pass", file: "internal/mcpserver/answer.go",
			edits: one("text := term.Escape(t)", "text := t"),
			why:   "what a session wrote drives the terminal of who watches it",
			red:   by("internal/mcpserver", "TestAnswersAreSafeAndBounded|TestBounded"),
		}, {
			name: "mcp-body-without-bound", file: "internal/view/logpage.go",
			edits: one("if len(body) <= most {", "if true {"),
			why:   "one result of a session fills the context of who watches it",
			red:   by("internal/mcpserver", "TestAnswersAreSafeAndBounded"),
		}, {
			name: "mcp-any-bind", file: "internal/mcpserver/http.go",
			edits: one("err != nil || !ip.Unmap().IsLoopback() {\n\t\te", "err != nil || ip.IsMulticast() {\n\t\te"),
			why:   "whoever reaches the machine starts sessions as its user",
			red:   by("internal/mcpserver", "TestLoopback"),
		}, {
			name: "mcp-any-host", file: "internal/mcpserver/http.go",
			edits: one("if !ownName(r.Host) {", "if false {"),
			why:   "a web page whose name leads here starts sessions",
			red:   by("cmd/stint", "TestMCPOverHTTP"),
		}, {
			name: "mcp-any-origin", file: "internal/mcpserver/http.go",
			edits: one("o[0] != \"http://\"+r.Host", "o[0] == \"\""),
			why:   "a web page starts sessions",
			red:   by("cmd/stint", "TestMCPOverHTTP"),
		}, {
			name: "mcp-key-forgotten", file: "cmd/stint/mcp.go",
			edits: one("Actor: r.Actor, Dedupe: r.Dedupe}", "Actor: r.Actor}"),
			why:   "a call whose answer was lost starts a second session",
			red:   by("cmd/stint", "TestMCPStartsSessions"),
		}, {
			name: "mcp-approves-through-another", file: "cmd/stint/approve.go",
			edits: one("at = next.Session\n", "_ = next\n\t\treturn all, nil\n"),
			why:   "an agent approves itself through a session that it starts",
			red:   by("cmd/stint", "TestMCPInsideASession"),
		}, {
			name: "mcp-session-acts-as-its-user", file: "cmd/stint/mcp.go",
			edits: one("case len(sessions) > 0:", "case len(sessions) > 99:"),
			why:   "what an agent started looks as if a person had",
			red:   by("cmd/stint", "TestMCPInsideASession"),
		},
	}
}

package mutants_test

// accessMutants break the rules of who may do what.
func accessMutants() []mutant {
	const pkg = "internal/access"
	return []mutant{
		{
			name: "access-agents-decide", file: pkg + "/principal.go",
			edits: one("slices.Contains(p.scopes, s) && !p.Kind.never(s)", "slices.Contains(p.scopes, s)"),
			why:   "an agent answers its own questions",
			red:   by(pkg, "TestAgentsNeverDecide"), quick: true,
		}, {
			name: "access-expired-is-good", file: pkg + "/token.go",
			edits: one("case !now.Before(t.Expires):", "case now.Before(t.Created):"),
			why:   "a token that leaked years ago lets somebody in",
			red:   by(pkg, "TestOnlyTheSecretVerifies"),
		}, {
			name: "access-revoked-is-good", file: pkg + "/token.go",
			edits: one("case !t.Revoked.IsZero():", "case t.Expires.IsZero():"),
			why:   "a stolen token cannot be taken back",
			red:   by(pkg, "TestOnlyTheSecretVerifies"),
		}, {
			name: "access-any-secret", file: pkg + "/token.go",
			edits: one("subtle.ConstantTimeCompare(t.Hash[:], p.hash[:]) != 1", "subtle.ConstantTimeCompare(t.Hash[:1], p.hash[:1]) == 2"),
			why:   "whoever knows an id, which is no secret, is in",
			red:   by(pkg, "TestOnlyTheSecretVerifies"),
		}, {
			name: "access-no-checksum", file: pkg + "/token.go",
			edits: one("checksum(body) != text[len(body):]", "len(checksum(body)) != len(text[len(body):])"),
			why:   "each made-up token costs a read of the store, and scanners report what is none",
			red:   by(pkg, "TestMutatedTokensAreRefused"),
		}, {
			name: "access-a-code-twice", file: pkg + "/mem.go",
			edits: one("if !t.Revoked.IsZero() {\n\t\treturn stint.Conflict", "if t.ID == \"\" {\n\t\treturn stint.Conflict"),
			why:   "a link in a history or a chat logs in whoever finds it",
			red:   by(pkg, "TestALoginCodeIsRedeemedOnce"),
		}, {
			name: "access-route-without-row", file: pkg + "/route.go",
			edits: one("if !rows[p] {", "if p == \"\" {"),
			why:   "a new route is forgotten in the table and nobody says so",
			red:   by(pkg, "TestCheckFindsWhatIsMissing"),
		}, {
			name: "access-silent-row-is-public", file: pkg + "/route.go",
			edits: one("return r.Public != \"\"", "return true"),
			why:   "a row that forgets its scope is open to everybody",
			red:   by(pkg, "TestCheckFindsWhatIsMissing"),
		}, {
			name: "access-role-creeps", file: pkg + "/scope.go",
			edits: one("return []Scope{SessionsRead, SessionsRun, TriggersFire, MemoryWrite}", "return []Scope{SessionsRead, SessionsRun, TriggersFire, MemoryWrite, ApprovalsDecide}"),
			why:   "who runs agents also decides what they may do",
			red:   by(pkg, "TestRolesAreSets|TestMatrix"),
		}, {
			name: "access-open-without-tokens", file: pkg + "/bind.go",
			edits: one("!hasTokens && (!local || behindProxy)", "!hasTokens && !local"),
			why:   "a proxy opens a server without tokens to the world",
			red:   by(pkg, "TestBind"),
		}, {
			name: "access-forwarded-is-local", file: pkg + "/principal.go",
			edits: one("case t.BehindProxy || p.Forwarded:", "case t.BehindProxy:"),
			why:   "a proxy that nobody told stint of makes the world an administrator",
			red:   by(pkg, "TestWhoIsLocal"),
		}, {
			name: "access-host-by-its-end", file: pkg + "/bind.go",
			edits: one("name == \"localhost\" || name == \"127.0.0.1\"", "strings.HasPrefix(name, \"localhost\") || name == \"127.0.0.1\""),
			why:   "localhost.evil.example is taken for this machine",
			red:   by(pkg, "TestHosts"),
		}, {
			name: "problem-shows-faults", file: "internal/problem/problem.go",
			edits: one("if doc.Code == stint.Internal {", "if doc.Code == \"\" {"),
			why:   "paths and statements of the database are told to anybody",
			red:   by("internal/problem", "TestAFaultIsNotShown"),
		},
	}
}

// guardMutants break how those rules are put before a handler.
func guardMutants() []mutant {
	const pkg = "internal/access/guard"
	return []mutant{
		{
			name: "guard-host-of-reads", file: pkg + "/guard.go",
			edits: one("if !g.config.Hosts.Allows(r.Host) {", "if !safe(r.Method) && !g.config.Hosts.Allows(r.Host) {"),
			why:   "a page that points its own name here reads everything",
			red:   by(pkg, "TestAnotherHostIsRefusedOnEveryRoute"),
		}, {
			name: "guard-silent-origin", file: pkg + "/guard.go",
			edits: one("ok && silent && !safe(r.Method)", "ok && silent && r.Method == \"\""),
			why:   "a missing origin is taken for the same origin, and the cookie goes along",
			red:   by(pkg, "TestPagesOfOthers"),
		}, {
			name: "guard-reads-of-other-pages", file: pkg + "/guard.go",
			edits: one("unsafe.Method = http.MethodPost", "unsafe.Method = r.Method"),
			why:   "a page on another port of this machine opens streams with the cookie",
			red:   by(pkg, "TestPagesOfOthers"),
		}, {
			name: "guard-no-scope", file: pkg + "/guard.go",
			edits: one("err == nil && !row.Allows(who.Principal)", "err == nil && !row.Allows(access.Local())"),
			why:   "a viewer's token does everything",
			red:   by(pkg, "TestEveryRouteWithEveryRole"), quick: true,
		}, {
			name: "guard-crooked-paths", file: pkg + "/guard.go",
			edits: one("!plainPath(r.URL.Path) || !plainPath(r.URL.EscapedPath())", "!plainPath(r.URL.EscapedPath())"),
			why:   "a proxy and stint read one path as two",
			red:   by(pkg, "TestWhatNoClientSends"),
		}, {
			name: "guard-first-forwarded", file: pkg + "/origin.go",
			edits: one("all[strings.LastIndexByte(all, ',')+1:]", "strings.SplitN(all, \",\", 2)[0]"),
			why:   "a client chooses the address that its failures are counted for",
			red:   by(pkg, "TestBehindAProxy"),
		}, {
			name: "guard-around-the-proxy", file: pkg + "/origin.go",
			edits: one("o.around = r.TLS == nil && !o.peer.Addr.IsLoopback()", "o.around = false"),
			why:   "tokens cross the network in the clear",
			red:   by(pkg, "TestBehindAProxy"),
		}, {
			name: "guard-any-kind-in-a-cookie", file: pkg + "/authenticate.go",
			edits: one("return k == access.Web })", "return k != access.Agent })"),
			why:   "a login code that was seen in a link is a session without being redeemed",
			red:   by(pkg, "TestWhoIsThere"),
		}, {
			name: "guard-browsers-outlive-their-token", file: pkg + "/authenticate.go",
			edits: one("if err := from.Live(now); err != nil {", "if err := from.Live(from.Created); err != nil && from.Revoked.IsZero() {"),
			why:   "a stolen token is revoked and the browser that it opened stays in",
			red:   by(pkg, "TestACodeAndACookieEnd"),
		},
	}
}

// streamMutants break how a request ends with its token.
func streamMutants() []mutant {
	const pkg = "internal/access/guard"
	return []mutant{
		{
			name: "guard-streams-are-not-asked-about", file: pkg + "/watch.go",
			edits: one("first := time.AfterFunc(askEvery,", "first := time.AfterFunc(1000*askEvery,"),
			why:   "every stream ends after four seconds",
			red:   by(pkg, "TestARevokedTokenEndsItsStreams"),
		}, {
			name: "guard-revoked-streams-go-on", file: pkg + "/watch.go",
			edits: one("case errors.Is(err, stint.Denied):\n\t\t\tcancel(err)", "case errors.Is(err, stint.Denied):\n\t\t\tstale.Reset(staleness)"),
			why:   "who has a stream open reads on for days after his token was revoked",
			red:   by(pkg, "TestARevokedTokenEndsItsStreams"),
		}, {
			name: "guard-hanging-store", file: pkg + "/watch.go",
			edits: one("stale := time.AfterFunc(staleness,", "stale := time.AfterFunc(staleness*1000,"),
			why:   "a store that cannot answer keeps a new stream open after its token was revoked",
			red:   by(pkg, "TestAStreamThatNobodyAnswersForEnds"),
		}, {
			name: "guard-hanging-store-later", file: pkg + "/watch.go",
			edits: one("stale.Reset(staleness - time.Since(began))", "stale.Reset(1000*staleness - time.Since(began))"),
			why:   "a store that cannot answer any more keeps old streams open",
			red:   by(pkg, "TestAStreamThatNobodyAnswersForEnds"),
		}, {
			name: "guard-hangs-in-a-write", file: pkg + "/watch.go",
			edits: one("SetWriteDeadline(time.Now().Add(lastWords))", "SetWriteDeadline(time.Now().Add(60 * lastWords))"),
			why:   "who reads nothing holds his connection long after his token was revoked",
			red:   by(pkg, "TestStreamsOverConnections"),
		}, {
			name: "guard-slow-headers", file: pkg + "/server.go",
			edits: one("ReadHeaderTimeout:            5 * time.Second,", "ReadHeaderTimeout:            5 * time.Hour,"),
			why:   "a few slow clients hold every connection",
			red:   by(pkg, "TestSlowClients"),
		},
	}
}

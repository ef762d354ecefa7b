package mutants_test

// hookMutants break what keeps forged and captured webhooks out.
func hookMutants() []mutant {
	const pkg = "internal/hook"
	return []mutant{
		{
			name: "hook-read-before-it-is-verified", file: "internal/hook/receive.go", quick: true,
			edits: one("\tproof, err := h.def.verify(", "\tif _, err := h.parse(f, r.Body); err != nil {\n\t\treturn Verdict{}, err\n\t}\n\tproof, err := h.def.verify("),
			why:   "whoever reaches the URL has our parsers read what he likes, and is told what they think of it",
			red:   by(pkg, "TestVerifiedBeforeItIsRead"),
		}, {
			name: "hook-old-request-is-taken", file: "internal/hook/verify.go",
			edits: one("case apart > window:", "case apart > 1000*window:"),
			why:   "a captured request can be sent again for ever",
			red:   by(pkg, "TestReplay|TestTimes"),
		}, {
			name: "hook-request-of-the-future-is-taken", file: "internal/hook/verify.go",
			edits: one("case apart < -window:", "case apart < -1000*window:"),
			why:   "a request that was signed for later outlives the memory of deliveries",
			red:   by(pkg, "TestReplay|TestTimes"),
		}, {
			name: "hook-second-secret-ignored", file: "internal/hook/verify.go",
			edits: one("for i, k := range keys {", "for i, k := range keys[:1] {"),
			why:   "while a secret is changed, deliveries are lost",
			red:   by(pkg, "TestRotation"),
		}, {
			name: "hook-signature-begins-right", file: "internal/hook/verify.go", quick: true,
			edits: one("subtle.ConstantTimeCompare([]byte(g), []byte(w))", "subtle.ConstantTimeCompare([]byte(g)[:8], []byte(w)[:8])"),
			why:   "a signature can be guessed",
			red:   by(pkg, "TestOneBit"),
		}, {
			name: "hook-one-of-two-headers", file: "internal/hook/fields.go",
			edits: one("case len(values) > 1:", "case len(values) > 9:"),
			why:   "a proxy checks one header and we another",
			red:   by(pkg, "TestBadHeaders"),
		}, {
			name: "hook-dot-in-the-id", file: "internal/hook/schemes.go",
			edits: one("strings.Contains(id, \".\") || ", ""),
			why:   "a captured body can be cut elsewhere and be taken as of now",
			red:   by(pkg, "TestStandardNames"),
		}, {
			name: "hook-id-in-a-header-is-proven", file: "internal/hook/compile.go",
			edits: one("return d.Scheme != GitHub", "return d.Scheme != None"),
			why:   "a captured request is taken again under another delivery id",
			red:   by(pkg, "TestIDs|TestReplay"),
		}, {
			name: "hook-number-rounded", file: "internal/jsonx/exact.go",
			edits: one("if i, err := strconv.ParseInt(s, 10, 64); err == nil {", "if i, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) < 16 {"),
			why:   "an id of 64 bits becomes that of something else",
			red:   by(pkg, "TestNumbers|TestForms"),
		}, {
			name: "hook-token-is-shown", file: "internal/hook/fields.go",
			edits: one("case \"authorization\", \"proxy-authorization\", \"cookie\":", "case \"cookie\":"),
			why:   "a hook's token gets into prompts, and from there to a model",
			red:   by(pkg, "TestHeadersShown"),
		}, {
			name: "hook-wrong-one-stops-all", file: "internal/config/hooks.go",
			edits: one("\ts.problems = rest\n\treturn &of", "\treturn &of"),
			why:   "a server that comes up again loses every hook to a typing error in one",
			red:   by("internal/config", "TestLoadServing"),
		},
	}
}

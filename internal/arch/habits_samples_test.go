package arch_test

func habitSamples() []sample {
	const (
		ctx   = "contexts come from the caller"
		inits = "no init functions"
		sleep = "tests do not sleep"
		skip  = "tests do not skip"
		words = "no unfinished work in the tree"
		paths = "no paths of one machine"

		later = "TO" + "DO"
		fix   = "FIX" + "ME"
		here  = "/wor" + "k/main"
	)
	return []sample{
		{ctx, "background", one("a.go", "package p\n\nimport \"context\"\n\nfunc f() { g(context.Background()) }\n"), []string{"a.go:5: context.Background"}},
		{ctx, "the other one", one("a.go", "package p\n\nimport \"context\"\n\nfunc f() { g(context."+later+"()) }\n"), []string{"a.go:5"}},
		{ctx, "renamed", one("a.go", "package p\n\nimport c \"context\"\n\nfunc f() { g(c.Background()) }\n"), []string{"a.go:5"}},
		{ctx, "by a dot", one("a.go", "package p\n\nimport . \"context\"\n\nfunc f() { g(Background()) }\n"), []string{"a.go:5"}},
		{ctx, "as a value", one("a.go", "package p\n\nimport \"context\"\n\nfunc f() { g(context.Background) }\n"), []string{"a.go:5"}},
		{ctx, "allowed", map[string]string{
			"a.go":           "package p\n\nimport \"context\"\n\nfunc f(ctx context.Context) { g(context.WithoutCancel(ctx)) }\n",
			"b.go":           "package p\n\nfunc f() { g(context.Background()) } // a local context, not the package\n",
			"a_test.go":      "package p\n\nimport \"context\"\n\nfunc f() { g(context.Background()) }\n",
			"cmd/stint/a.go": "package main\n\nimport \"context\"\n\nfunc f() { g(context.Background()) }\n",
		}, nil},

		{inits, "in code", one("a.go", "package p\n\nfunc init() {}\n"), []string{"a.go:3: an init function"}},
		{inits, "in main", one("cmd/stint/a.go", "package main\n\nfunc init() {}\n"), []string{"cmd/stint/a.go:3"}},
		{inits, "in a test", one("a_test.go", "package p\n\nfunc init() {}\n"), []string{"a_test.go:3"}},
		{inits, "a method of that name", one("a.go", "package p\n\nfunc (t *T) init() {}\n"), nil},

		{sleep, "in a test", one("a_test.go", "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"), []string{"a_test.go:5: time.Sleep in a test"}},
		{sleep, "renamed", one("a_test.go", "package p\n\nimport tt \"time\"\n\nfunc f() { tt.Sleep(1) }\n"), []string{"a_test.go:5"}},
		{sleep, "in a suite", one("store/storetest/a.go", "package p\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc f(*testing.T) { time.Sleep(1) }\n"), []string{"a.go:8"}},
		{sleep, "allowed", map[string]string{
			"a.go":      "package p\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n",
			"a_test.go": "package p\n\nimport \"time\"\n\nfunc f() { <-time.After(1); t.Sleep() }\n",
		}, nil},

		{skip, "every form", one("a_test.go", "package p\n\nfunc f(x *testing.T) {\n\tx.Skip()\n\tx.Skipf(\"\")\n\tx.SkipNow()\n}\n"), []string{"a_test.go:4", "a_test.go:5", "a_test.go:6"}},
		{skip, "not called", one("a_test.go", "package p\n\nfunc f(x *testing.T) {\n\tg := x.Skip\n\tg()\n}\n"), []string{"a_test.go:4"}},
		{skip, "of a package", one("a_test.go", "package p\n\nimport \"m/trigger\"\n\nvar a = trigger.Skip\n"), nil},
		{skip, "in a suite", one("store/storetest/a.go", "package p\n\nimport \"testing\"\n\nfunc f(t testing.TB) { t.Skip() }\n"), []string{"a.go:5: a test calls Skip"}},
		{skip, "allowed", map[string]string{
			"a.go": "package p\n\nfunc f() { s.Skip() }\n", "a_test.go": "package p\n\nfunc f() { t.Log(\"t.Skip\"); t.Skipped() }\n",
		}, nil},

		{words, "in code and text", map[string]string{
			"a.go": "package p\n\n// " + later + ": later\n", "docs/a.md": "a\n\n" + fix + "\n", ".ci/run": "# " + later,
		}, []string{".ci/run:1: the word " + later, "a.go:3: the word " + later, "docs/a.md:3: the word " + fix}},
		{words, "allowed", map[string]string{
			"a.go":                     "package p\n\n// " + later + "S, my" + later + " and todo lists\n",
			"engine/testdata/a":        later,
			"internal/web/vendor/a.js": "// " + later,
			"go.sum":                   "h1:/" + later + "/",
			"docs/a.png":               "\x00 " + later,
		}, nil},

		{paths, "everywhere", map[string]string{
			"Makefile":          "a:\n\tcd " + here + "\n",
			"a.go":              "package p\n\nconst c = `" + here + "/x`\n",
			"engine/testdata/a": "\x00" + here,
		}, []string{"Makefile:2: the path " + here, "a.go:3: the path " + here, "engine/testdata/a:1"}},
		{paths, "allowed", one("a.go", "package p\n\n// ./wor"+"k/main, https://example.org"+here+", a"+here+" and /wor"+"k alone\n"), nil},
	}
}

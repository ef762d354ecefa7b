package arch_test

import "strings"

// importing makes a Go file of package p with the given imports, the first of
// them on line 4.
func importing(paths ...string) string {
	return "package p\n\nimport (\n\t_ \"" + strings.Join(paths, "\"\n\t_ \"") + "\"\n)\n"
}

func layerSamples() []sample {
	const (
		listed  = "package is listed"
		imports = "imports follow the table"
		stdlib  = "root imports the standard library only"
		pure    = "pure packages have no I/O and no clock"
		tests   = "packages of tests hold tests only"
		module  = "one module"
		m       = "example.org/m"
	)
	return []sample{
		{module, "nested", map[string]string{"go.mod": "module a", "sdk/go/go.mod": "module b"}, []string{"sdk/go/go.mod:1: a module inside"}},
		{module, "in testdata", map[string]string{"go.mod": "module a", "engine/testdata/x/go.mod": "module b"}, nil},

		{listed, "unknown", one("internal/misc/a.go", "// Package misc.\npackage misc"), []string{"internal/misc/a.go:2: package internal/misc is not in the import table"}},
		{listed, "unknown with tests only", one("internal/misc/a_test.go", "package misc"), []string{"internal/misc/a_test.go:1"}},
		{listed, "below a listed one", one("engine/sub/a.go", "package sub"), []string{"engine/sub/a.go:1"}},
		{listed, "known", map[string]string{
			"a.go": "package stint", "journal/a.go": "package journal", "examples/a.go": "package main", "examples/b/c/a.go": "package main",
		}, nil},
		{listed, "not Go to the go command", map[string]string{
			"engine/testdata/a.go": "not even Go", ".hidden/a.go": "package a", "_old/a.go": "package a", "engine/notes.txt": "package a",
		}, nil},

		{imports, "view to store", one("internal/view/a.go", importing(m, m+"/store/mem")), []string{"internal/view/a.go:5: internal/view imports store/mem; internal/view may import stint, journal"}},
		{imports, "view to engine on another platform", one("internal/view/a_windows.go", "//go:build windows\n\n"+importing(m+"/engine")), []string{"a_windows.go:6: internal/view imports engine"}},
		{imports, "journal to engine", one("journal/a.go", importing(m+"/engine")), []string{"journal imports engine"}},
		{imports, "store to journal", one("store/sqlite/a.go", importing(m+"/journal")), []string{"store/sqlite imports journal"}},
		{imports, "root to faultpoint", one("a.go", importing(m+"/internal/faultpoint")), []string{"stint imports internal/faultpoint; stint may import none"}},
		{imports, "anything to main", one("engine/a.go", importing(m+"/cmd/stint")), []string{"engine imports cmd/stint"}},
		{imports, "example to internal", one("examples/a/a.go", importing(m+"/internal/view")), []string{"examples/... imports internal/view"}},
		{imports, "renamed", one("client/a.go", "package client\n\nimport e \"example.org/m/engine\"\n"), []string{"client/a.go:3: client imports engine"}},
		{imports, "allowed", map[string]string{
			"engine/a.go":             importing("os", m, m+"/journal", m+"/internal/faultpoint", "example.org/mother"),
			"journal/a.go":            importing(m),
			"internal/bench/a.go":     importing(m+"/store/sqlite", m+"/store/mem"),
			"internal/view/a.go":      importing(m, m+"/journal", m+"/internal/faultpoint"),
			"examples/a/a.go":         importing(m, m+"/engine", m+"/agent/llm", m+"/examples/b"),
			"cmd/stint/a.go":          importing(m+"/internal/view", m+"/store/postgres"),
			"internal/view/a_test.go": importing(m+"/store/mem", m+"/engine"),
		}, nil},

		{stdlib, "a dependency", one("a.go", importing("fmt", "github.com/google/uuid")), []string{"a.go:5: the root package imports github.com/google/uuid"}},
		{stdlib, "our own", one("a.go", importing(m+"/journal")), []string{"a.go:4: the root package imports example.org/m/journal"}},
		{stdlib, "C", one("a.go", importing("C")), []string{"the root package imports C"}},
		{stdlib, "allowed", map[string]string{
			"a.go": importing("encoding/json", "crypto/sha256"), "a_test.go": importing("pgregory.net/rapid"), "engine/a.go": importing("github.com/google/uuid"),
		}, nil},

		{pure, "I/O", one("journal/a.go", importing("os", "fmt", "crypto/rand")), []string{"journal/a.go:4: journal imports os", "journal/a.go:6: journal imports crypto/rand"}},
		{pure, "clock", one("journal/a.go", "package p\n\nimport clock \"time\"\n\nfunc f() clock.Time { return clock.Now() }\n"), []string{"journal/a.go:5: journal uses time.Now"}},
		{pure, "clock as a value", one("journal/a.go", "package p\n\nimport \"time\"\n\nfunc f() func() time.Time { return time.Now }\n"), []string{"journal/a.go:5"}},
		{pure, "clock by a dot", one("journal/a.go", "package p\n\nimport . \"time\"\n\nfunc f() Duration { return Since(Time{}) }\n"), []string{"journal/a.go:5"}},
		{pure, "allowed", map[string]string{
			"journal/a.go":      "package p\n\nimport \"time\"\n\nfunc f(now time.Time) time.Time { return now.Add(time.Hour) }\n",
			"journal/a_test.go": importing("os"),
			"engine/a.go":       "package p\n\nimport \"time\"\n\nfunc f() time.Time { return time.Now() }\n",
		}, nil},

		{tests, "code", one("internal/acceptance/a.go", "package a\n\nfunc f() {}\n"), []string{"internal/acceptance/a.go:3: internal/acceptance has code"}},
		{tests, "allowed", map[string]string{
			"internal/acceptance/doc.go": "// Package acceptance.\npackage acceptance\n", "internal/acceptance/a_test.go": "package a\n\nfunc f() {}\n", "engine/a.go": "package a\n\nfunc f() {}\n",
		}, nil},
	}
}

// Command repo-digest is an agent that digests the Go files below a folder, one
// package a loop. It speaks the exec protocol (docs/exec-protocol.md) with nothing
// but the standard library; sdk/python/examples/repo_digest.py is the same agent in
// Python.
//
// For each folder with Go files, in the order of their paths, it appends one line
// to a file:
//
//	{"key":"…","package":"engine","files":3,"lines":801,"funcs":40,"types":9,"sum":"…"}
//
// It gets through a crash at any moment without a gap and without a line written
// twice: what it looks up outside it looks up in a read step, the line is appended
// in an idempotent step whose key is in the line, and what it has done is in its
// state.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// state is what the next loop starts from.
type state struct {
	Root string   `json:"root"`
	Done []digest `json:"done"`
	Next string   `json:"next"` // the package of the next loop; empty: none is left
}

func main() {
	if err := serve(os.Stdin, os.Stdout, loop); err != nil {
		fmt.Fprintln(os.Stderr, "repo-digest:", err)
		os.Exit(1)
	}
}

// loop digests one package.
func loop(l *session) (end, error) {
	var st state
	fresh, err := l.state(&st)
	if err != nil {
		return end{}, err
	}
	if fresh {
		if st.Root, err = root(l.text()); err != nil {
			return end{Outcome: "fail", Reason: err.Error()}, nil
		}
		if st.Next, err = step(l, "first package", "read", st.Root, func(string) (string, error) { return packageAfter(st.Root, "") }); err != nil {
			return end{}, err
		}
	}
	if st.Next != "" {
		l.progress("digesting " + st.Next)
		pause()
		d, err := step(l, "digest package", "read", st.Next, func(string) (digest, error) { return digestPackage(st.Root, st.Next) })
		if err != nil {
			return end{}, err
		}
		following := d.Next
		d.Next = ""
		if _, err := step(l, "append line", "idempotent", d, func(key string) (string, error) { return appendLine(key, d) }); err != nil {
			return end{}, err
		}
		st.Done, st.Next = append(st.Done, digest{Package: d.Package, Files: d.Files, Lines: d.Lines}), following
	}
	l.replace(st)
	if st.Next != "" {
		return end{Outcome: "continue", Headline: fmt.Sprintf("%d packages, next %s", len(st.Done), st.Next)}, nil
	}
	var files, lines int
	for _, d := range st.Done {
		files, lines = files+d.Files, lines+d.Lines
	}
	return end{Outcome: "complete", Reason: fmt.Sprintf("digested %d packages", len(st.Done)),
		Result: map[string]int{"packages": len(st.Done), "files": files, "lines": lines}}, nil
}

// root is the folder to digest: STINT_DIGEST_ROOT, or else the prompt.
func root(prompt string) (string, error) {
	r := os.Getenv("STINT_DIGEST_ROOT")
	if r == "" {
		r = strings.TrimSpace(prompt)
	}
	if r == "" {
		return "", fmt.Errorf("no folder to digest: set STINT_DIGEST_ROOT, or give the folder as the prompt")
	}
	return filepath.Abs(r)
}

// pause makes a loop take as long as STINT_DIGEST_PAUSE says, so that a demo has
// time to kill it.
func pause() {
	if d, err := time.ParseDuration(os.Getenv("STINT_DIGEST_PAUSE")); err == nil {
		time.Sleep(d)
	}
}

package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Route is one row of a [Table]: a method and a pattern of http.ServeMux, and what is
// needed there. Either Scope or Public is set.
type Route struct {
	Method  string // GET, POST, …; one for each row
	Pattern string // begins with a slash: "/v1/sessions/{id}"
	Scope   Scope
	Public  string // why anybody may: "a hook is signed by its sender"
	// Stream marks an answer that goes on: it has no time limit, each write has one.
	Stream bool
	// MaxBody is how many bytes a request may have, 0: the server's default.
	MaxBody int64
}

// Key is the row as http.ServeMux names it: "GET /v1/sessions/{id}".
func (r Route) Key() string { return r.Method + " " + r.Pattern }

// Allows reports whether p may use the route. A row with neither a scope nor a reason to
// be public lets nobody in.
func (r Route) Allows(p Principal) bool {
	if r.Scope == "" {
		return r.Public != ""
	}
	return p.Can(r.Scope)
}

// Table is all routes of a server. It is not changed while it is used.
type Table []Route

// Find returns the row of a pattern as http.ServeMux returns it, "GET /v1/sessions".
func (t Table) Find(pattern string) (Route, bool) {
	i := slices.IndexFunc(t, func(r Route) bool { return r.Key() == pattern })
	if i < 0 {
		return Route{}, false
	}
	return t[i], true
}

// Check compares the table with the patterns that are registered, "METHOD /path" each,
// and returns all that is wrong, joined: routes without a row, rows without a route, rows
// that are there twice or say nothing, or two things, about who may.
func (t Table) Check(registered []string) error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	rows := map[string]bool{}
	for _, r := range t {
		if rows[r.Key()] {
			say("%s has two rows", r.Key())
		}
		rows[r.Key()] = true
		if r.Method == "" || r.Method != strings.ToUpper(r.Method) || !strings.HasPrefix(r.Pattern, "/") {
			say("%q is no METHOD /pattern", r.Key())
		}
		switch {
		case r.Scope == "" && r.Public == "":
			say("%s says neither which scope it needs nor why it is public", r.Key())
		case r.Scope != "" && r.Public != "":
			say("%s needs %s and is public", r.Key(), r.Scope)
		case r.Scope != "" && !slices.Contains(Scopes(), r.Scope):
			say("%s needs %s, which is no scope", r.Key(), r.Scope)
		}
		if !slices.Contains(registered, r.Key()) {
			say("%s has a row and no route", r.Key())
		}
	}
	for _, p := range registered {
		if !rows[p] {
			say("%s has a route and no row", p)
		}
	}
	return errors.Join(wrong...)
}

// Matrix returns a line for each route, in the order of the table, with what it needs
// and whether each role may: for a test that compares it with a file, so that nobody's
// rights change unseen. The first column of answers is somebody without a token, the
// last an agent with every scope there is.
func (t Table) Matrix() string {
	who := []Principal{{}}
	head := []string{"METHOD\tROUTE\tNEEDS\tnobody"}
	for _, r := range Roles() {
		who = append(who, Token{Kind: User, Role: r}.Principal())
		head = append(head, string(r))
	}
	who = append(who, Token{Kind: Agent, Role: Administrator}.Principal())
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(append(head, "agent"), "\t"))
	for _, r := range t {
		needs := string(r.Scope)
		if needs == "" {
			needs = "public"
		}
		fmt.Fprintf(w, "%s\t%s\t%s", r.Method, r.Pattern, needs)
		for _, p := range who {
			answer := "deny"
			if r.Allows(p) {
				answer = "allow"
			}
			fmt.Fprint(w, "\t"+answer)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

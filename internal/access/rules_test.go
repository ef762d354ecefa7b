package access_test

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
)

func TestRolesAreSets(t *testing.T) {
	for role, want := range map[access.Role][]access.Scope{
		access.Viewer:        {access.SessionsRead},
		access.Operator:      {access.SessionsRead, access.SessionsRun, access.TriggersFire, access.MemoryWrite},
		access.Approver:      {access.SessionsRead, access.ApprovalsDecide},
		access.Administrator: access.Scopes(),
		"owner":              nil,
		"":                   nil,
	} {
		p := access.Token{Kind: access.User, Role: role}.Principal()
		for _, s := range access.Scopes() {
			if got := p.Can(s); got != slices.Contains(want, s) {
				t.Errorf("%q can %s: %t", role, s, got)
			}
		}
		if p.Can("") || p.Can("*") {
			t.Errorf("%q can what is no scope", role)
		}
	}
}

// Whoever has all scopes of a role has the role, however the token came by them.
func TestRolesOfAPrincipal(t *testing.T) {
	for name, c := range map[string]struct {
		p    access.Principal
		want []access.Role
	}{
		"nobody":           {access.Principal{}, nil},
		"somebody local":   {access.Local(), access.Roles()},
		"a session inside": {access.Inside("x"), []access.Role{access.Viewer}},
		"viewer":           {access.Token{Kind: access.User, Role: access.Viewer}.Principal(), []access.Role{access.Viewer}},
		"operator":         {access.Token{Kind: access.User, Role: access.Operator}.Principal(), []access.Role{access.Viewer, access.Operator}},
		"approver":         {access.Token{Kind: access.User, Role: access.Approver}.Principal(), []access.Role{access.Viewer, access.Approver}},
		"admin":            {access.Token{Kind: access.User, Role: access.Administrator}.Principal(), access.Roles()},
		"by scopes":        {access.Token{Kind: access.User, Scopes: []access.Scope{access.ApprovalsDecide, access.SessionsRead}}.Principal(), []access.Role{access.Viewer, access.Approver}},
		"to decide alone":  {access.Token{Kind: access.User, Scopes: []access.Scope{access.ApprovalsDecide}}.Principal(), nil},
		"an agent":         {access.Token{Kind: access.Agent, Role: access.Approver}.Principal(), []access.Role{access.Viewer}},
	} {
		if got := c.p.Roles(); !slices.Equal(got, c.want) {
			t.Errorf("%s has %v, want %v", name, got, c.want)
		}
	}
}

func TestNamesAreReadStrictly(t *testing.T) {
	for _, r := range access.Roles() {
		if got, err := access.ParseRole(string(r)); err != nil || got != r {
			t.Errorf("%s: %q, %v", r, got, err)
		}
	}
	for _, s := range access.Scopes() {
		if got, err := access.ParseScope(string(s)); err != nil || got != s {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "Admin", "owner", "*", "sessions:*", " admin"} {
		_, a := access.ParseRole(bad)
		_, b := access.ParseScope(bad)
		if !errors.Is(a, stint.Invalid) || !errors.Is(b, stint.Invalid) {
			t.Errorf("%q: %v, %v", bad, a, b)
		}
	}
}

// Whatever a store says, an agent decides and administers nothing, and nobody does nothing.
func TestAgentsNeverDecide(t *testing.T) {
	for _, tok := range []access.Token{
		{Kind: access.Agent, Role: access.Administrator},
		{Kind: access.Agent, Scopes: access.Scopes()},
	} {
		for _, s := range access.Scopes() {
			if got, want := tok.Principal().Can(s), s != access.ApprovalsDecide && s != access.Admin; got != want {
				t.Errorf("an agent can %s: %t", s, got)
			}
		}
	}
	for _, s := range access.Scopes() {
		if (access.Principal{}).Can(s) {
			t.Errorf("nobody can %s", s)
		}
		if !access.Local().Can(s) {
			t.Errorf("who is local cannot %s", s)
		}
	}
}

// table is a server in small.
func table() access.Table {
	return access.Table{
		{Method: "GET", Pattern: "/", Public: "the dashboard's own files hold no data"},
		{Method: "POST", Pattern: "/v1/login", Public: "a login code is the credential"},
		{Method: "POST", Pattern: "/hooks/{name}", Public: "a hook is signed by its sender"},
		{Method: "GET", Pattern: "/v1/sessions", Scope: access.SessionsRead},
		{Method: "GET", Pattern: "/v1/sessions/{id}/events", Scope: access.SessionsRead, Stream: true},
		{Method: "POST", Pattern: "/v1/sessions", Scope: access.SessionsRun},
		{Method: "POST", Pattern: "/v1/approvals/{id}/decision", Scope: access.ApprovalsDecide},
		{Method: "POST", Pattern: "/v1/triggers/{name}/fire", Scope: access.TriggersFire},
		{Method: "DELETE", Pattern: "/v1/memory/{key}", Scope: access.MemoryWrite},
		{Method: "GET", Pattern: "/v1/audit", Scope: access.AuditRead},
		{Method: "POST", Pattern: "/v1/tokens", Scope: access.Admin},
	}
}

func keys(t access.Table) (keys []string) {
	for _, r := range t {
		keys = append(keys, r.Key())
	}
	return keys
}

var update = flag.Bool("update", false, "rewrite the golden files") //nolint:gochecknoglobals // a flag of the test

func TestMatrix(t *testing.T) {
	const file = "testdata/matrix.golden"
	got := table().Matrix()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the rights have changed:\n%s\nread the difference, then run with -update", got)
	}
}

func TestCheckFindsWhatIsMissing(t *testing.T) {
	if err := table().Check(keys(table())); err != nil {
		t.Error(err)
	}
	more := func(r access.Route) (access.Table, []string) { t := append(table(), r); return t, keys(t) }
	for name, c := range map[string]struct {
		table access.Table
		keys  []string
		want  string
	}{
		"a route without a row": {table(), append(keys(table()), "GET /v1/secret"), "GET /v1/secret has a route and no row"},
		"another method":        {table(), append(keys(table()), "DELETE /v1/sessions"), "DELETE /v1/sessions has a route and no row"},
		"any method":            {table(), append(keys(table()), "/v1/sessions"), "/v1/sessions has a route and no row"},
		"a row without a route": {table(), keys(table())[1:], "GET / has a row and no route"},
	} {
		if err := c.table.Check(c.keys); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, r := range map[string]access.Route{
		"two rows":            table()[3],
		"neither which scope": {Method: "GET", Pattern: "/x"},
		"and is public":       {Method: "GET", Pattern: "/x", Scope: access.Admin, Public: "why"},
		"which is no scope":   {Method: "GET", Pattern: "/x", Scope: "sessions:write"},
		"is no METHOD":        {Method: "get", Pattern: "/x", Scope: access.Admin},
		`" /x" is no METHOD`:  {Pattern: "/x", Scope: access.Admin},
		`"GET x" is no`:       {Method: "GET", Pattern: "x", Scope: access.Admin},
	} {
		tab, k := more(r)
		if err := tab.Check(k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if (access.Route{}).Allows(access.Local()) {
		t.Error("a row that says nothing lets somebody in")
	}
	if _, ok := table().Find("GET /v1/secret"); ok {
		t.Error("a row was found that is not there")
	}
}

// The start matrix: every kind of address with everything that can be given.
func TestBind(t *testing.T) {
	type given struct{ tokens, tls, proxy bool }
	local := func(g given) bool { return g.tokens || !g.proxy }
	open := func(g given) bool { return g.tokens && (g.tls || g.proxy) }
	for addr, may := range map[string]func(given) bool{
		"127.0.0.1:7777": local, "127.8.9.1:1": local, "[::1]:7777": local, "localhost:0": local, "LOCALHOST:1": local,
		"unix:/run/stint.sock": local, "[::ffff:127.0.0.1]:1": local,
		"0.0.0.0:7777": open, "[::]:7777": open, ":7777": open, "192.0.2.1:80": open, "[2001:db8::1]:80": open, "[::ffff:192.0.2.1]:80": open,
		"stint.example.com:443": open, "localhost.example.com:1": open, "127.0.0.1.example.com:1": open, "127.1:80": open, "localhost.:1": open,
	} {
		for i := range 8 {
			g := given{i&1 != 0, i&2 != 0, i&4 != 0}
			err := access.Bind(addr, g.tokens, g.tls, g.proxy)
			if (err == nil) != may(g) {
				t.Errorf("%s with %+v: %v", addr, g, err)
			}
			if err == nil {
				continue
			}
			var e *stint.Error
			if !errors.As(err, &e) || e.Code != stint.Invalid {
				t.Fatalf("%s: %v", addr, err)
			}
			for word, named := range map[string]bool{"token create": !g.tokens, "--tls-cert": !g.tls && !g.proxy} {
				if strings.Contains(e.Hint, word) != named {
					t.Errorf("%s with %+v: the hint is %q", addr, g, e.Hint)
				}
			}
		}
	}
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "::1:80:", "::1", "[::1]", "unix:", "[127.0.0.1]:1", "[fe80::1%eth0]:1", "a b:1", "127.0.0.1:-1", "http://127.0.0.1:1"} {
		if err := access.Bind(bad, true, true, true); !errors.Is(err, stint.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestHosts(t *testing.T) {
	hosts, err := access.NewHosts("Stint.Example.com", "192.0.2.7", "[2001:db8:0::7]")
	if err != nil {
		t.Fatal(err)
	}
	for host, configured := range map[string]bool{
		"localhost": false, "localhost:7777": false, "LOCALHOST:1": false, "127.0.0.1": false, "127.0.0.1:80": false, "[::1]": false, "[::1]:7777": false, "[0:0:0:0:0:0:0:1]:1": false,
		"stint.example.com": true, "STINT.example.COM:8443": true, "192.0.2.7:80": true, "[2001:db8::7]": true, "[2001:0DB8::7]:443": true,
	} {
		if !hosts.Allows(host) {
			t.Errorf("%q is refused", host)
		}
		if (access.Hosts{}).Allows(host) == configured {
			t.Errorf("%q without configuration: %t", host, !configured)
		}
	}
	for _, host := range badHosts() {
		if hosts.Allows(host) {
			t.Errorf("%q is allowed", host)
		}
	}
	for _, bad := range []string{"", "*", "*.example.com", "a:80", "http://a", "::1", "[::1", "a/b", "[::1%lo]"} {
		if _, err := access.NewHosts(bad); !errors.Is(err, stint.Invalid) {
			t.Errorf("%q as a name: %v", bad, err)
		}
	}
}

func badHosts() []string {
	return []string{
		"", ":", ":80", "evil.example", "evil.example:7777", "localhost.evil.example", "evil.example#localhost", "localhost@evil.example", "localhost:80@evil.example",
		"127.0.0.1.evil.example", "localhost.", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::]", "::1", "::1:80", "[::1", "[::1]x", "[::1]:", "[::1]:a", "[::ffff:127.0.0.1]", "[::1%lo]",
		"localhost:", "localhost:x", "localhost:99999", "localhost ", " localhost", "localhost\t", "localhost,evil.example", "stint.example.com.evil.example", "xstint.example.com", "sub.localhost", "stínt.example.com", "127.0.0.2",
	}
}

func TestWhoIsLocal(t *testing.T) {
	loop, mapped, far := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("192.0.2.1")
	for name, c := range map[string]struct {
		peer  access.Peer
		trust access.Trust
		want  bool
	}{
		"loopback, no token":            {access.Peer{Addr: loop}, access.Trust{}, true},
		"mapped loopback, no token":     {access.Peer{Addr: mapped}, access.Trust{}, true},
		"loopback, tokens":              {access.Peer{Addr: loop}, access.Trust{Tokens: true}, false},
		"loopback, tokens, local admin": {access.Peer{Addr: loop}, access.Trust{Tokens: true, LocalAdmin: true}, true},
		"loopback behind a proxy":       {access.Peer{Addr: loop}, access.Trust{BehindProxy: true}, false},
		"the same with local admin":     {access.Peer{Addr: loop}, access.Trust{BehindProxy: true, LocalAdmin: true}, false},
		"forwarded, no token":           {access.Peer{Addr: loop, Forwarded: true}, access.Trust{}, false},
		"forwarded, local admin":        {access.Peer{Addr: loop, Forwarded: true}, access.Trust{LocalAdmin: true}, false},
		"far, no token":                 {access.Peer{Addr: far}, access.Trust{}, false},
		"far, local admin":              {access.Peer{Addr: far}, access.Trust{LocalAdmin: true}, false},
		"socket, no token":              {access.Peer{Unix: true}, access.Trust{}, true},
		"socket, tokens":                {access.Peer{Unix: true}, access.Trust{Tokens: true}, true},
		"socket, forwarded":             {access.Peer{Unix: true, Forwarded: true}, access.Trust{}, false},
		"socket behind a proxy":         {access.Peer{Unix: true}, access.Trust{Tokens: true, BehindProxy: true}, false},
		"an address that is not known":  {access.Peer{}, access.Trust{}, false},
	} {
		if got := c.trust.Local(c.peer); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// docs/access.md says what the code does.
func TestTheDocumentIsRight(t *testing.T) {
	b, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, s := range access.Scopes() {
		want := []string{""}
		for _, r := range access.Roles() {
			cell := ""
			if slices.Contains(r.Scopes(), s) {
				cell = "yes"
			}
			want = append(want, cell)
		}
		i := strings.Index(page, "\n| `"+string(s)+"` ")
		if i < 0 {
			t.Errorf("%s has no row", s)
			continue
		}
		row, _, _ := strings.Cut(page[i+1:], "\n")
		cells := strings.Split(strings.Trim(row, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !slices.Equal(cells[1:], want[1:]) {
			t.Errorf("%s: the roles are %q, want %q", s, cells[1:], want[1:])
		}
	}
	_, text := mint(t, access.Spec{Kind: access.User, Role: access.Viewer}, 1)
	for _, want := range []string{"\n    " + access.Pattern + "\n", "\n    " + text + "\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not have%s", want)
		}
	}
}

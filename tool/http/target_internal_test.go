package http

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// FuzzFill: whatever an argument is, the host, the other segments and the number of
// parameters stay as they are written.
func FuzzFill(f *testing.F) {
	for _, v := range []string{"x", "../..", "a/b", "?q=1", "#", "@evil.example", "é", "%2e%2e", "\r\n", "\\..\\"} {
		f.Add(v)
	}
	t0, err := parseTarget("https://a.example:8443/v1/{a}/z?q={a}&r=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, v string) {
		raw, err := stint.Marshal(map[string]string{"a": v})
		if err != nil {
			return
		}
		args, err := tool.ReadArgs(raw)
		if err != nil {
			t.Fatal(err)
		}
		address, wrong := t0.fill(args)
		if wrong != "" {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Host != "a.example:8443" || len(segments) != 4 || segments[1] != "v1" || segments[3] != "z" || u.Fragment != "" || u.User != nil {
			t.Errorf("%q made %s", v, address)
		}
		if seg, err := url.PathUnescape(segments[2]); err != nil || seg != v {
			t.Errorf("%q became %q", v, seg)
		}
		if q := u.Query(); len(q) != 2 || q.Get("q") != v || q.Get("r") != "1" {
			t.Errorf("%q made the query %v", v, q)
		}
	})
}

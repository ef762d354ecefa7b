package api_test

import (
	"testing"

	"github.com/stint-dev/stint/internal/access"
)

// Who may do what is a file: a route that is new, or that somebody else may use than
// before, has to be read in it.
func TestMatrix(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) { golden(t, "matrix.txt", r.table.Matrix()) })
}

// Each route that is not public refuses somebody without a token, and somebody whose role
// has not its scope, whatever else is sent.
func TestEachRouteIsGuarded(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		for _, route := range r.table {
			for _, role := range access.Roles() {
				principal := access.Token{Kind: access.User, Role: role}.Principal()
				c := call{method: route.Method, path: example(route.Pattern), token: r.texts[role], body: `{`}
				if out := r.do(c); (out.status == 403) != !route.Allows(principal) {
					t.Errorf("%s as %s: %d", route.Key(), role, out.status)
				}
			}
			c := call{method: route.Method, path: example(route.Pattern), token: "stint_user_x"}
			if out := r.do(c); (out.status == 401) != (route.Public == "") && out.status != 429 {
				t.Errorf("%s with a made-up token: %d", route.Key(), out.status)
			}
		}
	})
}

package access

import (
	"slices"

	"github.com/stint-dev/stint"
)

// Scope is the right to one kind of acts. Holding one scope gives no other.
type Scope string

// The scopes. Whoever has Admin makes tokens, and so can get all the others.
const (
	SessionsRead    Scope = "sessions:read"    // lists, sessions, logs, streams, approvals as they stand
	SessionsRun     Scope = "sessions:run"     // start, send, pause, stop, restart, roll back, branch
	ApprovalsDecide Scope = "approvals:decide" // approve, deny, edit
	TriggersFire    Scope = "triggers:fire"    // fire a schedule or a hook by hand
	MemoryWrite     Scope = "memory:write"     // write and forget long-term memory
	AuditRead       Scope = "audit:read"       // the system journal: what each person did
	Admin           Scope = "admin"            // tokens, configuration, retention, erasure
)

// Scopes returns all scopes, in the order of the documentation.
func Scopes() []Scope {
	return []Scope{SessionsRead, SessionsRun, ApprovalsDecide, TriggersFire, MemoryWrite, AuditRead, Admin}
}

// Role is a named set of scopes.
type Role string

// The roles. An operator does not decide what agents may do, and an approver does not
// run them: where two people are wanted, give one role to each.
const (
	Viewer        Role = "viewer"
	Operator      Role = "operator"
	Approver      Role = "approver"
	Administrator Role = "admin"
)

// Roles returns all roles, in the order of the documentation.
func Roles() []Role { return []Role{Viewer, Operator, Approver, Administrator} }

// Scopes returns the set of a role. An unknown role has none.
func (r Role) Scopes() []Scope {
	switch r {
	case Viewer:
		return []Scope{SessionsRead}
	case Operator:
		return []Scope{SessionsRead, SessionsRun, TriggersFire, MemoryWrite}
	case Approver:
		return []Scope{SessionsRead, ApprovalsDecide}
	case Administrator:
		return Scopes()
	}
	return nil
}

// ParseRole reads the name of a role; another text is [stint.Invalid].
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles(), r) {
		return r, nil
	}
	e := stint.Invalid.Errorf("role", "there is no role %q", s)
	e.Hint = "the roles are viewer, operator, approver and admin"
	return "", e
}

// ParseScope reads the name of a scope; another text is [stint.Invalid].
func ParseScope(s string) (Scope, error) {
	if c := Scope(s); slices.Contains(Scopes(), c) {
		return c, nil
	}
	e := stint.Invalid.Errorf("scope", "there is no scope %q", s)
	e.Hint = "the scopes are sessions:read, sessions:run, approvals:decide, triggers:fire, memory:write, audit:read and admin"
	return "", e
}

package access

import (
	"net/netip"
	"slices"
	"time"

	"github.com/stint-dev/stint"
)

// Principal is who a request comes from. The zero value is nobody and may do nothing.
type Principal struct {
	Token   string // its id; empty for somebody local
	Kind    Kind   // empty for somebody local
	Name    string
	Expires time.Time // zero: not by itself
	scopes  []Scope
}

// Principal returns who carries a token.
func (t Token) Principal() Principal {
	scopes := t.Scopes
	if t.Role != "" {
		scopes = t.Role.Scopes()
	}
	return Principal{Token: t.ID, Kind: t.Kind, Name: t.Name, Expires: t.Expires, scopes: slices.Clone(scopes)}
}

// Local returns who is on the same machine and needs no token: see [Trust].
func Local() Principal { return Principal{Name: "local", scopes: Scopes()} }

// Inside returns who is on the same machine and was started by a session: it needs no
// token to look at sessions and to run them, and may do nothing else. An agent decides
// nothing that it asks for, and makes no tokens with which it could.
func Inside(session string) Principal {
	return Principal{Kind: Agent, Name: "session:" + session, scopes: []Scope{SessionsRead, SessionsRun}}
}

// Can reports whether p has a scope. A kind that may never have it has not, whatever is
// stored in its token.
func (p Principal) Can(s Scope) bool { return slices.Contains(p.scopes, s) && !p.Kind.never(s) }

// Roles returns the roles that p has, which are those whose scopes it has all: what a rule
// on who decides about a question is held against. An agent, which decides nothing, may
// still be a viewer or an operator.
func (p Principal) Roles() []Role {
	var all []Role
	for _, r := range Roles() {
		if !slices.ContainsFunc(r.Scopes(), func(s Scope) bool { return !p.Can(s) }) {
			all = append(all, r)
		}
	}
	return all
}

// LoginCode is the spec of a code with which p logs in at a browser: it carries the rights
// of p, and what is redeemed for it ends with the token of p. It is [stint.Denied] for
// an agent: a browser is for a person.
func (p Principal) LoginCode() (Spec, error) {
	if p.Kind == Agent || p.Name == "" {
		e := stint.Denied.Errorf("login", "a login code is for a person")
		e.Hint = "ask with a token of kind user, or on the machine itself"
		return Spec{}, e
	}
	return Spec{Kind: Login, Name: p.Name, Scopes: slices.Clone(p.scopes), From: p.Token}, nil
}

// Exchange makes the Web token for a login code that came as p. Whoever stores the token
// ends the code in the same transaction, see [Redeemer]. What is no live login code is
// [stint.Denied].
func Exchange(code Token, p Presented, now time.Time, random [RandomBytes]byte) (Token, Secret, error) {
	if p.Kind != Login {
		return Token{}, Secret{}, Unknown()
	}
	if err := code.Verify(p, now); err != nil {
		return Token{}, Secret{}, err
	}
	return Mint(Spec{Kind: Web, Name: code.Name, Role: code.Role, Scopes: code.Scopes, From: code.From}, now, random)
}

// Peer is the other end of a connection.
type Peer struct {
	Unix      bool       // it came through a Unix socket
	Addr      netip.Addr // else its address
	Forwarded bool       // the request has a header that only proxies add
}

// Trust says whose requests need no token.
type Trust struct {
	Tokens      bool // a token for people or programs was made once, see [Keeper.Any]
	LocalAdmin  bool // --local-admin: loopback needs no token even so
	BehindProxy bool // a proxy stands in front
}

// Local reports whether a request from p is let in as [Local] when it carries no token.
//
// A Unix socket of mode 0600 is opened by whoever could open the database as well, so a
// token would protect nothing. A loopback connection is the same on a machine of one
// person, and asking them for a token before the first command works teaches people to
// turn tokens off. It can be another user of the machine, though, so that whoever makes
// a token, and thereby says that people differ, has ended it; an expired token does not
// begin it anew. Behind a proxy nobody is local: what it forwards comes from anywhere, over
// whichever socket it speaks.
func (t Trust) Local(p Peer) bool {
	switch {
	case t.BehindProxy || p.Forwarded:
		return false
	case p.Unix:
		return true
	case !p.Addr.Unmap().IsLoopback():
		return false
	}
	return !t.Tokens || t.LocalAdmin
}

package guard

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/problem"
)

// usedEvery is how exactly the last use of a token is known.
const usedEvery = time.Minute

// visitor is a principal that was let in, and how to ask whether it still would be.
type visitor struct {
	access.Principal

	again func(context.Context) (access.Principal, error)
}

// credentialError is the error of a credential that came and was not good, as opposed to
// one that did not come.
type credentialError struct{ error }

func (e *credentialError) Unwrap() error { return e.error }

func failed(err error) bool {
	var c *credentialError
	return errors.As(err, &c)
}

// authenticate finds out who sent a request. The header is taken before the cookie, and a
// header that is not good is an error even where none is needed: who says who he is does
// not become somebody else. A cookie that has ended is as none, since browsers keep them.
func (g *Guard) authenticate(r *http.Request, o origin) (visitor, error) {
	ctx := r.Context()
	if lines := r.Header["Authorization"]; len(lines) > 0 {
		scheme, text, ok := strings.Cut(lines[0], " ")
		if !ok || len(lines) > 1 || !strings.EqualFold(scheme, "Bearer") {
			e := stint.Denied.Errorf("token", "the Authorization header is no bearer token")
			e.Hint = "send one header, Authorization: Bearer stint_…"
			return visitor{}, unauthorized(e)
		}
		return g.token(ctx, text, access.Kind.Bearer)
	}
	var refused error
	if text, ok := cookie(r, o); ok {
		v, err := g.token(ctx, text, func(k access.Kind) bool { return k == access.Web })
		if err == nil || !errors.Is(err, stint.Denied) {
			return v, err
		}
		refused = err
	}
	p, err := g.local(ctx, o.peer)
	switch {
	case err == nil:
		return visitor{p, func(ctx context.Context) (access.Principal, error) { return g.local(ctx, o.peer) }}, nil
	case refused != nil && errors.Is(err, stint.Denied):
		return visitor{}, refused
	}
	return visitor{}, err
}

func unauthorized(err error) error {
	return problem.With(http.StatusUnauthorized, &credentialError{err})
}

// local returns the principal of a peer that needs no token.
func (g *Guard) local(ctx context.Context, p access.Peer) (access.Principal, error) {
	t := access.Trust{Tokens: true, LocalAdmin: g.config.LocalAdmin, BehindProxy: g.config.BehindProxy}
	if t.Local(p) {
		return g.config.Somebody(ctx), nil
	}
	if t.Tokens = false; t.Local(p) { // it depends on whether there are any
		any, err := g.config.Keeper.Any(ctx)
		switch {
		case err != nil:
			return access.Principal{}, g.unavailable(err)
		case !any:
			return g.config.Somebody(ctx), nil
		}
	}
	e := stint.Denied.Errorf("request", "it has no token")
	e.Hint = "send Authorization: Bearer TOKEN; stint token create makes one, where the store is"
	return access.Principal{}, problem.With(http.StatusUnauthorized, e)
}

// token lets in the owner of a token whose kind may come this way.
func (g *Guard) token(ctx context.Context, text string, may func(access.Kind) bool) (visitor, error) {
	p, err := access.Parse(text)
	if err == nil && !may(p.Kind) {
		err = access.Unknown()
	}
	if err != nil {
		return visitor{}, unauthorized(err)
	}
	now := time.Now()
	t, err := g.config.Keeper.Token(ctx, p.ID)
	switch {
	case errors.Is(err, stint.NotFound):
		return visitor{}, unauthorized(access.Unknown())
	case err != nil:
		return visitor{}, g.unavailable(err)
	}
	if err := t.Verify(p, now); err != nil {
		return visitor{}, unauthorized(err)
	}
	who, err := g.principal(ctx, t, now)
	if err != nil {
		return visitor{}, err
	}
	if now.Sub(t.LastUsed) >= usedEvery {
		if err := g.config.Keeper.Used(ctx, t.ID, now); err != nil { // not worth a refusal
			g.config.Log.Warn("the use of a token was not noted", "token", t.ID, "why", err)
		}
	}
	return visitor{who, func(ctx context.Context) (access.Principal, error) { return g.again(ctx, t.ID) }}, nil
}

// again returns the principal of a token that was verified before.
func (g *Guard) again(ctx context.Context, id string) (access.Principal, error) {
	now := time.Now()
	t, err := g.config.Keeper.Token(ctx, id)
	switch {
	case errors.Is(err, stint.NotFound):
		return access.Principal{}, access.Unknown()
	case err != nil:
		return access.Principal{}, g.unavailable(err)
	}
	if err := t.Live(now); err != nil {
		return access.Principal{}, err
	}
	return g.principal(ctx, t, now)
}

// principal returns who has a live token. One that was asked for with another ends with
// that one: whoever revokes a stolen token has ended the browsers that it opened.
func (g *Guard) principal(ctx context.Context, t access.Token, now time.Time) (access.Principal, error) {
	who := t.Principal()
	if t.From == "" {
		return who, nil
	}
	from, err := g.config.Keeper.Token(ctx, t.From)
	switch {
	case errors.Is(err, stint.NotFound):
		return access.Principal{}, unauthorized(access.Unknown())
	case err != nil:
		return access.Principal{}, g.unavailable(err)
	}
	if err := from.Live(now); err != nil {
		return access.Principal{}, unauthorized(err)
	}
	if from.Expires.Before(who.Expires) {
		who.Expires = from.Expires
	}
	return who, nil
}

// unavailable says that nobody can be let in now. Without an answer nobody is.
func (g *Guard) unavailable(err error) error {
	g.config.Log.Error("tokens cannot be looked up", "why", err)
	return stint.Unavailable.Errorf("token", "tokens cannot be looked up now")
}

// cookieName is the name of the cookie. With TLS a browser takes one of this name from this
// very host alone. Without, ports share their cookies, so each server has its own name.
func cookieName(secure bool, host string) string {
	if secure {
		return "__Host-stint"
	}
	if _, port, err := net.SplitHostPort(host); err == nil {
		return "stint-" + port
	}
	return "stint"
}

// cookie returns the token in the cookie. Where there is TLS, one that could be set without
// it is not looked at: another server of the host may have put it there.
func cookie(r *http.Request, o origin) (string, bool) {
	c, err := r.Cookie(cookieName(o.secure, r.Host))
	if err != nil {
		return "", false
	}
	return c.Value, c.Value != ""
}

// maxLogin bounds the body of a login, in bytes.
const maxLogin = 1 << 10

// Login returns the handler of a public POST route that takes {"code": "stint_login_…"} and
// answers 204 with a cookie. A link has the code behind #, where no server, log or
// preview sees it, and the page sends it here. A code that is used, old or made up is
// 401. Without a Redeemer it is 404.
func (g *Guard) Login() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := g.origin(r)
		w.Header().Set("Cache-Control", "no-store")
		if g.config.Redeemer == nil {
			problem.Write(w, stint.NotFound.Errorf("login", "nobody logs in here"))
			return
		}
		var in struct {
			Code string `json:"code"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLogin)).Decode(&in); err != nil {
			e := stint.Invalid.Errorf("login", "the body is no JSON object of at most %d bytes", maxLogin)
			e.Hint = `send {"code": "stint_login_…"}`
			problem.Write(w, e)
			return
		}
		t, secret, err := g.redeem(r.Context(), in.Code)
		if err != nil {
			g.refuse(w, o, err)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(o.secure, r.Host), Value: secret.Reveal(), Path: "/", MaxAge: int(time.Until(t.Expires) / time.Second),
			HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: o.secure,
		})
		w.WriteHeader(http.StatusNoContent)
	})
}

// Logout takes the cookie away. Whoever handles it also revokes the token of [From].
func Logout(w http.ResponseWriter, r *http.Request) {
	for _, secure := range []bool{true, false} {
		http.SetCookie(w, &http.Cookie{
			Name: cookieName(secure, r.Host), Path: "/", MaxAge: -1,
			HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
		})
	}
}

// redeem ends a login code and returns the token for the cookie.
func (g *Guard) redeem(ctx context.Context, text string) (access.Token, access.Secret, error) {
	none := func(err error) (access.Token, access.Secret, error) { return access.Token{}, access.Secret{}, err }
	p, err := access.Parse(text)
	if err != nil {
		return none(unauthorized(err))
	}
	code, err := g.config.Keeper.Token(ctx, p.ID)
	switch {
	case errors.Is(err, stint.NotFound):
		return none(unauthorized(access.Unknown()))
	case err != nil:
		return none(g.unavailable(err))
	}
	var random [access.RandomBytes]byte
	_, _ = rand.Read(random[:]) // it never fails: the process ends instead
	next, secret, err := access.Exchange(code, p, time.Now(), random)
	if err != nil {
		return none(unauthorized(err))
	}
	if _, err := g.principal(ctx, next, time.Now()); err != nil { // who asked for the code may be gone
		return none(err)
	}
	switch err := g.config.Redeemer.Redeem(ctx, code.ID, next); {
	case errors.Is(err, stint.Conflict), errors.Is(err, stint.NotFound):
		e := stint.Denied.Errorf("login", "the code was used before")
		e.Hint = "ask for a new link"
		return none(unauthorized(e))
	case err != nil:
		return none(g.unavailable(err))
	}
	return next, secret, nil
}

package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"pgregory.net/rapid"
)

// at is when the tests happen.
func at() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// random is bytes that differ with n.
func random(n byte) (b [access.RandomBytes]byte) {
	for i := range b {
		b[i] = n + byte(i)*7
	}
	return b
}

func mint(tb testing.TB, s access.Spec, n byte) (access.Token, string) {
	tb.Helper()
	if s.Name == "" {
		s.Name = "ana"
	}
	tok, secret, err := access.Mint(s, at(), random(n))
	if err != nil {
		tb.Fatal(err)
	}
	return tok, secret.Reveal()
}

// The form is a promise to secret scanners and to tokens that are already out.
func TestTheFormOfATokenStays(t *testing.T) {
	tok, text := mint(t, access.Spec{Kind: access.User, Role: access.Viewer}, 1)
	const want = "stint_user_0440y5gx4gnk4ea0_8x75aq33d9rqgzw6hpa9q8n9p2vvxhectfde3t7fyvyg82rj34g031fykgt"
	if text != want {
		t.Errorf("it is\n%s, want\n%s", text, want)
	}
	if tok.Created != at() || tok.Expires != at().Add(90*24*time.Hour) {
		t.Errorf("it lives from %s to %s", tok.Created, tok.Expires)
	}
	whole := regexp.MustCompile("^" + access.Pattern + "$")
	for _, k := range []access.Kind{access.User, access.Agent, access.CI, access.Login, access.Web} {
		if _, text := mint(t, access.Spec{Kind: k, Role: access.Viewer}, 9); !whole.MatchString(text) {
			t.Errorf("the pattern for scanners does not match %s", text)
		}
	}
}

func TestMintRefuses(t *testing.T) {
	good := access.Spec{Kind: access.User, Name: "ana", Role: access.Viewer}
	for name, c := range map[string]struct {
		change func(*access.Spec)
		want   stint.Code
	}{
		"no kind":             {func(s *access.Spec) { s.Kind = "" }, stint.Invalid},
		"another kind":        {func(s *access.Spec) { s.Kind = "root" }, stint.Invalid},
		"no name":             {func(s *access.Spec) { s.Name = "" }, stint.Invalid},
		"a control character": {func(s *access.Spec) { s.Name = "a\x1b[31m" }, stint.Invalid},
		"a long name":         {func(s *access.Spec) { s.Name = strings.Repeat("a", 65) }, stint.Invalid},
		"too long a life":     {func(s *access.Spec) { s.Lifetime = 367 * 24 * time.Hour }, stint.Invalid},
		"a past":              {func(s *access.Spec) { s.Lifetime = -1 }, stint.Invalid},
		"an agent for a year": {func(s *access.Spec) { s.Kind, s.Lifetime = access.Agent, 366*24*time.Hour }, stint.Invalid},
		"a role and scopes":   {func(s *access.Spec) { s.Scopes = []access.Scope{access.Admin} }, stint.Invalid},
		"nothing":             {func(s *access.Spec) { s.Role = "" }, stint.Invalid},
		"another role":        {func(s *access.Spec) { s.Role = "owner" }, stint.Invalid},
		"another scope":       {func(s *access.Spec) { s.Role, s.Scopes = "", []access.Scope{"*"} }, stint.Invalid},
		"an approving agent":  {func(s *access.Spec) { s.Kind, s.Role = access.Agent, access.Approver }, stint.Denied},
		"an agent as admin":   {func(s *access.Spec) { s.Kind, s.Role, s.Scopes = access.Agent, "", []access.Scope{access.Admin} }, stint.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			c.change(&s)
			_, _, err := access.Mint(s, at(), random(1))
			var e *stint.Error
			if !errors.As(err, &e) || e.Code != c.want || e.Hint == "" {
				t.Errorf("%v with hint %q, want %s", err, e.Hint, c.want)
			}
		})
	}
	if _, _, err := access.Mint(good, at(), [access.RandomBytes]byte{}); !errors.Is(err, stint.Invalid) {
		t.Errorf("bytes that nobody filled: %v", err)
	}
	if _, _, err := access.Mint(good, at(), random(1)); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// Every token that Mint makes is parsed and verified, and none that differs from it by
// anything: one character, two that changed places, one more, one less, another case.
func TestMutatedTokensAreRefused(t *testing.T) {
	const letters = "0123456789abcdefghjkmnpqrstvwxyzABCZiloU_-= \n\x00é"
	rapid.Check(t, func(t *rapid.T) {
		var b [access.RandomBytes]byte
		copy(b[:], rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, "random"))
		b[access.RandomBytes-1] |= 1
		kind := rapid.SampledFrom([]access.Kind{access.User, access.Agent, access.CI, access.Login, access.Web}).Draw(t, "kind")
		tok, secret, err := access.Mint(access.Spec{Kind: kind, Name: "ana", Role: access.Viewer}, at(), b)
		if err != nil {
			t.Fatal(err)
		}
		text := secret.Reveal()
		p, err := access.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tok.Verify(p, at()); err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, len(text)-2).Draw(t, "place")
		c := []rune(letters)[rapid.IntRange(0, len([]rune(letters))-1).Draw(t, "letter")]
		for _, bad := range []string{
			text[:i] + string(c) + text[i+1:], text[:i] + string(c) + text[i:], text[:i] + text[i+1:], text[:i],
			text[:i] + text[i+1:i+2] + text[i:i+1] + text[i+2:], strings.ToUpper(text), text + "=", " " + text, text + "\n",
		} {
			if bad == text {
				continue
			}
			if _, err := access.Parse(bad); !errors.Is(err, stint.Denied) {
				t.Fatalf("%q of %q: %v", bad, text, err)
			} else if strings.Contains(err.Error(), text[30:50]) {
				t.Fatalf("the error has the secret: %v", err)
			}
		}
	})
}

// A well-formed token that somebody made himself is no token.
func TestOnlyTheSecretVerifies(t *testing.T) {
	tok, text := mint(t, access.Spec{Kind: access.User, Role: access.Administrator}, 1)
	p, err := access.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	other := random(1)
	other[access.RandomBytes-1]++ // the same id, the last bit of the secret
	_, secret, err := access.Mint(access.Spec{Kind: access.User, Name: "ana", Role: access.Viewer}, at(), other)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := access.Parse(secret.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if forged.ID != tok.ID {
		t.Fatal("the forged one has another id")
	}
	revoked := tok
	revoked.Revoked = at()
	web := tok
	web.Kind = access.Web
	for name, c := range map[string]struct {
		tok  access.Token
		p    access.Presented
		now  time.Time
		good bool
	}{
		"right":               {tok, p, at(), true},
		"a moment before":     {tok, p, tok.Expires.Add(-1), true},
		"expired":             {tok, p, tok.Expires, false},
		"revoked":             {revoked, p, at(), false},
		"forged":              {tok, forged, at(), false},
		"stored as other":     {web, p, at(), false},
		"nothing":             {tok, access.Presented{}, at(), false},
		"nothing for nothing": {access.Token{}, access.Presented{}, at(), false},
	} {
		if err := c.tok.Verify(c.p, c.now); (err == nil) != c.good || err != nil && !errors.Is(err, stint.Denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Only who has the secret is told that it was revoked.
	if a, b := revoked.Verify(forged, at()), access.Unknown(); a.Error() != b.Error() {
		t.Errorf("a guess at a revoked token is told %v", a)
	}
}

// What is stored, in any form that it is printed in, lets nobody in.
func TestWhatIsStoredIsNoToken(t *testing.T) {
	var m access.Mem
	var texts []string
	for i, k := range []access.Kind{access.User, access.Agent, access.CI, access.Login, access.Web} {
		tok, text := mint(t, access.Spec{Kind: k, Role: access.Viewer}, byte(10+i))
		texts = append(texts, text)
		if err := m.Put(tok); err != nil {
			t.Fatal(err)
		}
	}
	j, err := json.Marshal(m.All())
	if err != nil {
		t.Fatal(err)
	}
	dump := fmt.Sprintf("%s\n%v\n%+v\n%#v", j, m.All(), m.All(), m.All())
	if got := regexp.MustCompile(access.Pattern).FindString(dump); got != "" {
		t.Errorf("it has the token %s", got)
	}
	for _, text := range texts {
		secret := text[strings.LastIndexByte(text, '_')+1:]
		if strings.Contains(dump, secret[:20]) {
			t.Errorf("it has the secret of %s", text)
		}
	}
	var back []access.Token
	if err := json.Unmarshal(j, &back); err != nil || !slices.EqualFunc(back, m.All(), func(a, b access.Token) bool { return a.ID == b.ID && a.Hash == b.Hash }) {
		t.Errorf("what was written is not read: %v", err)
	}
	for _, tok := range back { // the id and the hash, put together as a token
		h, err := tok.Hash.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := access.Parse("stint_" + string(tok.Kind) + "_" + tok.ID + "_" + string(h)[:59]); err == nil {
			t.Error("a hash is taken for a secret")
		}
	}
}

func TestASecretIsNotPrinted(t *testing.T) {
	_, s, err := access.Mint(access.Spec{Kind: access.User, Name: "ana", Role: access.Viewer}, at(), random(3))
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(map[string]any{"s": s})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%s %q %#v", s, s, s), fmt.Sprintf("%+v", struct{ S access.Secret }{s}), string(j)} {
		if strings.Contains(text, "stint_") {
			t.Errorf("it is printed: %s", text)
		}
	}
}

func TestHashesAreReadStrictly(t *testing.T) {
	var h access.Hash
	for _, bad := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("0", 66), strings.Repeat("g", 64)} {
		if err := h.UnmarshalText([]byte(bad)); !errors.Is(err, stint.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Of many that redeem one login code, one gets in.
func TestALoginCodeIsRedeemedOnce(t *testing.T) {
	var m access.Mem
	owner, _ := mint(t, access.Spec{Kind: access.User, Role: access.Operator}, 1)
	spec, err := owner.Principal().LoginCode()
	if err != nil {
		t.Fatal(err)
	}
	code, text := mint(t, spec, 2)
	if err := m.Put(code); err != nil {
		t.Fatal(err)
	}
	p, err := access.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	const many = 16
	var wg sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		wg.Go(func() {
			next, _, err := access.Exchange(code, p, at(), random(byte(100+i)))
			if err == nil {
				err = m.Redeem(t.Context(), code.ID, next)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	in := 0
	for _, err := range errs {
		switch {
		case err == nil:
			in++
		case !errors.Is(err, stint.Conflict):
			t.Error(err)
		}
	}
	if in != 1 || len(m.All()) != 2 {
		t.Errorf("%d got in, %d tokens are stored", in, len(m.All()))
	}
	for _, tok := range m.All() {
		if tok.Kind == access.Web && (tok.From != owner.ID || tok.Name != "ana" || !tok.Principal().Can(access.SessionsRun) || tok.Principal().Can(access.ApprovalsDecide)) {
			t.Errorf("what was made of it: %+v", tok)
		}
	}
	used, err := m.Token(t.Context(), code.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := access.Exchange(used, p, at(), random(200)); !errors.Is(err, stint.Denied) {
		t.Errorf("a used code: %v", err)
	}
}

func TestOnlyALiveCodeIsExchanged(t *testing.T) {
	code, text := mint(t, access.Spec{Kind: access.Login, Role: access.Viewer}, 1)
	user, other := mint(t, access.Spec{Kind: access.User, Role: access.Viewer}, 1)
	parse := func(s string) access.Presented {
		p, err := access.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, err := range map[string]error{
		"expired":  second(access.Exchange(code, parse(text), at().Add(5*time.Minute), random(2))),
		"a user's": second(access.Exchange(user, parse(other), at(), random(2))),
		"crossed":  second(access.Exchange(code, parse(other), at(), random(2))),
	} {
		if !errors.Is(err, stint.Denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := second(access.Exchange(code, parse(text), at(), random(2))); err != nil {
		t.Error(err)
	}
	for _, p := range []access.Principal{{}, access.Token{Kind: access.Agent, Name: "a", Role: access.Operator}.Principal()} {
		if _, err := p.LoginCode(); !errors.Is(err, stint.Denied) {
			t.Errorf("%+v gets a login code: %v", p, err)
		}
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func TestMemKeeps(t *testing.T) {
	ctx := context.Background()
	var m access.Mem
	if _, err := m.Token(ctx, "x"); !errors.Is(err, stint.NotFound) {
		t.Error(err)
	}
	if err := m.Revoke("x", at()); !errors.Is(err, stint.NotFound) {
		t.Error(err)
	}
	agent, _ := mint(t, access.Spec{Kind: access.Agent, Role: access.Viewer}, 1)
	user, _ := mint(t, access.Spec{Kind: access.User, Role: access.Viewer}, 2)
	any := func() bool {
		ok, err := m.Any(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if err := m.Put(agent); err != nil || any() {
		t.Errorf("an agent's token ends the trust in loopback: %v", err)
	}
	if err := m.Put(user); err != nil || !any() {
		t.Errorf("a person's token does not: %v", err)
	}
	if err := m.Put(user); !errors.Is(err, stint.Exists) {
		t.Error(err)
	}
	for _, d := range []time.Duration{2, 1} {
		if err := errors.Join(m.Used(ctx, user.ID, at().Add(d)), m.Revoke(user.ID, at().Add(3-d))); err != nil {
			t.Error(err)
		}
	}
	got, err := m.Token(ctx, user.ID)
	if err != nil || got.LastUsed != at().Add(2) || got.Revoked != at().Add(1) || !any() {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	for i, k := range []access.Kind{access.User, access.Agent, access.CI, access.Login, access.Web} {
		_, text := mint(f, access.Spec{Kind: k, Role: access.Viewer}, byte(i))
		f.Add(text)
	}
	f.Add("")
	f.Add("stint_user__")
	f.Add("stint_" + strings.Repeat("_", 90))
	whole := regexp.MustCompile("^" + access.Pattern + "$")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := access.Parse(text)
		switch {
		case err != nil && !errors.Is(err, stint.Denied):
			t.Errorf("%q: %v", text, err)
		case err != nil && p != (access.Presented{}):
			t.Errorf("%q is refused and read", text)
		case err == nil && (!whole.MatchString(text) || !strings.Contains(text, string(p.Kind)+"_"+p.ID+"_")):
			t.Errorf("%q is taken as %+v", text, p)
		}
	})
}

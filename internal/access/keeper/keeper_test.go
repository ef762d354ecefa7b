package keeper_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/keeper"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

// office is a server's tokens in a bubble of time.
type office struct {
	*testing.T
	store  *mem.Store
	engine *engine.Engine
	system *engine.System
	*keeper.Keeper
}

func in(t *testing.T, do func(o *office)) {
	synctest.Test(t, func(t *testing.T) {
		o := &office{T: t, store: mem.New()}
		o.open()
		do(o)
		o.close()
		storetest.Check(t, o.store)
	})
}

func (o *office) open() {
	o.Helper()
	var err error
	if o.engine, err = engine.New(o.Context(), o.store, engine.Options{Holder: "server"}); err == nil {
		o.system, err = o.engine.System(o.Context(), func(err error) { o.Errorf("lost: %v", err) })
	}
	if err == nil {
		o.Keeper, err = keeper.New(o.system)
	}
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) close() {
	o.Helper()
	if err := errors.Join(o.system.Close(), o.engine.Close()); err != nil {
		o.Error(err)
	}
}

// again is a server that was restarted.
func (o *office) again() {
	o.Helper()
	o.close()
	o.open()
}

func (o *office) mint(spec access.Spec, n byte) access.Token {
	o.Helper()
	var random [access.RandomBytes]byte
	for i := range random {
		random[i] = n + byte(i)*7
	}
	t, _, err := access.Mint(spec, time.Now(), random)
	if err != nil {
		o.Fatal(err)
	}
	return t
}

func (o *office) put(spec access.Spec, n byte) access.Token {
	o.Helper()
	t := o.mint(spec, n)
	if err := o.Put(o.Context(), t, "human:ann", nil); err != nil {
		o.Fatal(err)
	}
	return t
}

func (o *office) token(id string) access.Token {
	o.Helper()
	t, err := o.Token(o.Context(), id)
	if err != nil {
		o.Fatal(err)
	}
	return t
}

func wants(t *testing.T, err error, code stint.Code) {
	t.Helper()
	if stint.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestTokensOutliveTheServer(t *testing.T) {
	in(t, func(o *office) {
		if any, _ := o.Any(o.Context()); any {
			o.Error("there is a token at the beginning")
		}
		bot := o.put(access.Spec{Kind: access.Agent, Name: "bot", Role: access.Viewer}, 1)
		if any, _ := o.Any(o.Context()); any {
			o.Error("an agent's token is none of a person")
		}
		ann := o.put(access.Spec{Kind: access.User, Name: "ann", Role: access.Administrator}, 2)
		wants(o.T, o.Put(o.Context(), ann, "human:ann", nil), stint.Conflict)
		wants(o.T, o.Put(o.Context(), access.Token{ID: "x"}, "human:ann", nil), stint.Invalid)
		o.again()
		if o.token(ann.ID).Hash != ann.Hash || o.token(bot.ID).Kind != access.Agent || len(o.All()) != 2 {
			o.Errorf("got %+v", o.All())
		}
		if err := o.Revoke(o.Context(), ann.ID, "human:ann", "left", nil); err != nil {
			o.Error(err)
		}
		wants(o.T, o.Revoke(o.Context(), ann.ID, "human:ann", "", nil), stint.Conflict)
		wants(o.T, o.Revoke(o.Context(), "none", "human:ann", "", nil), stint.NotFound)
		<-time.After(31 * 24 * time.Hour)
		o.put(access.Spec{Kind: access.CI, Name: "ci", Role: access.Operator}, 3)
		o.again()
		if _, err := o.Token(o.Context(), ann.ID); stint.CodeOf(err) != stint.NotFound {
			o.Errorf("a token that ended a month ago is still listed: %v", err)
		}
		if any, _ := o.Any(o.Context()); !any {
			o.Error("that there was a token is forgotten")
		}
	})
}

func TestTokensEndWithTheirMaker(t *testing.T) {
	in(t, func(o *office) {
		ann := o.put(access.Spec{Kind: access.User, Name: "ann", Role: access.Administrator}, 1)
		bot := o.put(access.Spec{Kind: access.Agent, Name: "bot", Role: access.Viewer, From: ann.ID}, 2)
		bob := o.put(access.Spec{Kind: access.User, Name: "bob", Role: access.Viewer}, 3)
		if err := o.Revoke(o.Context(), ann.ID, "human:ann", "", nil); err != nil {
			o.Fatal(err)
		}
		if o.token(bot.ID).Revoked.IsZero() || !o.token(bob.ID).Revoked.IsZero() {
			o.Errorf("got %+v", o.All())
		}
	})
}

// Of two that redeem one code one gets in.
func TestACodeIsRedeemedOnce(t *testing.T) {
	in(t, func(o *office) {
		code := o.put(access.Spec{Kind: access.User, Name: "ann", Role: access.Viewer}, 1)
		var wg sync.WaitGroup
		var errs [8]error
		for i := range errs {
			next := o.mint(access.Spec{Kind: access.User, Name: "ann", Role: access.Viewer}, byte(10+i))
			wg.Go(func() { errs[i] = o.Redeem(o.Context(), code.ID, next) })
		}
		wg.Wait()
		in := 0
		for _, err := range errs {
			if err == nil {
				in++
			} else {
				wants(o.T, err, stint.Conflict)
			}
		}
		if in != 1 || len(o.All()) != 2 {
			o.Errorf("%d got in, %d tokens", in, len(o.All()))
		}
		wants(o.T, o.Redeem(o.Context(), "none", code), stint.NotFound)
	})
}

// A use is known at once, and costs an entry an hour.
func TestTheLastUse(t *testing.T) {
	in(t, func(o *office) {
		ann := o.put(access.Spec{Kind: access.User, Name: "ann", Role: access.Viewer}, 1)
		entries := func() int {
			es, err := o.store.Entries(o.Context(), stint.Range{Session: o.journal(), Kinds: []stint.Kind{stint.SystemRecorded}, Limit: 1000})
			if err != nil {
				o.Fatal(err)
			}
			return len(es)
		}
		before := entries()
		var last time.Time
		for range 150 {
			<-time.After(time.Minute)
			last = time.Now()
			if err := o.Used(o.Context(), ann.ID, last); err != nil {
				o.Fatal(err)
			}
		}
		if got := o.token(ann.ID).LastUsed; !got.Equal(last) {
			o.Errorf("last used %v, want %v", got, last)
		}
		if n := entries() - before; n != 3 {
			o.Errorf("%d entries", n)
		}
		o.again()
		if got := o.token(ann.ID).LastUsed; last.Sub(got) > time.Hour {
			o.Errorf("last used %v, want about %v", got, last)
		}
		wants(o.T, o.Used(o.Context(), "none", last), stint.NotFound)
	})
}

// journal is the id of the system journal.
func (o *office) journal() stint.ID {
	o.Helper()
	id, err := engine.SystemJournal(o.Context(), o.store)
	if err != nil {
		o.Fatal(err)
	}
	return id
}

// Whoever has no server's API asks by a message, and the answer is in the journal.
func TestObey(t *testing.T) {
	in(t, func(o *office) {
		ann := o.mint(access.Spec{Kind: access.User, Name: "ann", Role: access.Administrator}, 1)
		send := func(c any) {
			o.Helper()
			body, err := stint.Marshal(c)
			if err != nil {
				o.Fatal(err)
			}
			if err := o.store.Send(o.Context(), o.journal(), stint.Message{ID: "m-" + string(body[len(body)/2:]), Kind: stint.Prompt, From: "human:ann", Body: body}); err != nil {
				o.Fatal(err)
			}
			ms, err := o.system.Inbox(o.Context())
			if err != nil || len(ms) != 1 {
				o.Fatalf("%d messages, %v", len(ms), err)
			}
			if known, err := o.Obey(o.Context(), &ms[0]); !known || err != nil {
				o.Fatalf("known is %v, %v", known, err)
			}
		}
		send(keeper.Command{Verb: keeper.Create, Token: ann})
		send(keeper.Command{Verb: keeper.Revoke, ID: ann.ID, Reason: "lost"})
		send(keeper.Command{Verb: keeper.Revoke, ID: ann.ID})
		send(keeper.Command{Verb: "token.paint", ID: ann.ID})
		es, err := o.store.Entries(o.Context(), stint.Range{Session: o.journal(), Kinds: []stint.Kind{stint.SystemRecorded}, Limit: 100})
		if err != nil {
			o.Fatal(err)
		}
		var got []string
		for _, e := range es {
			got = append(got, string(e.Data))
		}
		for i, want := range []string{"token.created", "token.revoked", "token.revoke.refused", "token.paint.refused"} {
			if i >= len(got) || !strings.Contains(got[i], want) {
				o.Errorf("entry %d is not %s: %v", i, want, got)
			}
		}
		m := stint.Message{Body: []byte(`{"verb": "schedule.pause"}`)}
		if known, err := o.Obey(o.Context(), &m); known || err != nil {
			o.Errorf("it takes what is not for it: %v", err)
		}
	})
}

package storetest_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/store/storetest"
)

// mutantVariable names the mutant that TestBroken is to run the suite on.
const mutantVariable = "STINT_STORETEST_MUTANT"

// TestBroken runs the suite on a broken store when TestMutants asks for it, and
// else on the same store with nothing broken: what rejects is not the wrapping.
func TestBroken(t *testing.T) {
	damage := func(*broken) {}
	if name := os.Getenv(mutantVariable); name != "" {
		for _, m := range mutants() {
			if m.name == name {
				damage = m.damage
			}
		}
	}
	storetest.Run(t, func(*testing.T) stint.Store {
		s := newBroken()
		damage(s)
		return s
	})
}

// Each mutant breaks one rule, and the property that states the rule has to fail.
func TestMutants(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			if seen[m.name] {
				t.Fatal("two mutants have this name")
			}
			seen[m.name] = true
			path := strings.ReplaceAll("TestBroken/"+m.caught, " ", "_")
			var pattern []string
			for part := range strings.SplitSeq(path, "/") {
				pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
			}
			cmd := exec.Command(os.Args[0], "-test.run", strings.Join(pattern, "/"), "-test.timeout", "10m")
			cmd.Env = append(os.Environ(), mutantVariable+"="+m.name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the mutant passes %q:\n%s", m.caught, out)
			}
			if !strings.Contains(string(out), "--- FAIL: "+path+" ") || strings.Contains(string(out), "panic: ") {
				t.Errorf("%q did not fail, but something else:\n%s", m.caught, out)
			}
		})
	}
}

// A mutant is a way of breaking a store.
type mutant struct {
	name   string
	caught string // by this property, subject/name
	damage func(s *broken)
}

func mutants() []mutant {
	return slices.Concat(createMutants(), claimMutants(), leaseMutants(), renewMutants(), sendMutants(), inboxMutants(),
		watchMutants(), feedMutants(), fenceMutants(), queueMutants(), batchMutants(), sessionsMutants(), entriesMutants(),
		blobMutants(), meterMutants(), ledgerMutants(), newsMutants())
}

func createMutants() []mutant {
	// onCreate makes a mutant that changes what is created.
	onCreate := func(change func(b *stint.Batch, c *stint.Claim)) func(s *broken) {
		return func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				b.Keys = slices.Clone(b.Keys)
				change(&b, &c)
				return s.Store.Create(ctx, b, c)
			}
		}
	}
	return []mutant{
		{"keys of a create are not kept", "Create/the same key and digest name the first session and write nothing",
			onCreate(func(b *stint.Batch, _ *stint.Claim) { b.Keys = nil })},
		{"digests of keys are not compared", "Create/another digest is a conflict that names the first session",
			onCreate(func(b *stint.Batch, _ *stint.Claim) {
				for i := range b.Keys {
					b.Keys[i].Digest = stint.Hash{}
				}
			})},
		{"keys do not expire", "Create/an expired key may be used again",
			onCreate(func(b *stint.Batch, _ *stint.Claim) {
				for i := range b.Keys {
					b.Keys[i].Expires = time.Time{}
				}
			})},
		{"scopes of keys are one", "Create/keys differ by scope and by name",
			onCreate(func(b *stint.Batch, _ *stint.Claim) {
				for i := range b.Keys {
					b.Keys[i].Scope = ""
				}
			})},
		{"only the first key is looked at", "Create/one key that is there keeps the others from being taken",
			onCreate(func(b *stint.Batch, _ *stint.Claim) { b.Keys = b.Keys[:min(1, len(b.Keys))] })},
		{"a created session is claimed by nobody", "Create/a claim in the same transaction makes the creator the holder",
			onCreate(func(_ *stint.Batch, c *stint.Claim) { *c = stint.Claim{} })},
		{"a session is created over another", "Create/an id is taken once", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				l, err := s.Store.Create(ctx, b, c)
				if stint.CodeOf(err) == stint.Exists {
					return stint.Lease{Session: b.Session.ID}, nil
				}
				return l, err
			}
		}},
		{"a key's session is claimed for whoever creates it again", "Create/the same key and digest name the first session and write nothing",
			func(s *broken) {
				s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
					l, err := s.Store.Create(ctx, b, c)
					if c.Holder == "" || l.Session == b.Session.ID {
						return l, err
					}
					c.Session = l.Session
					ls, err := s.Store.Claim(ctx, c)
					if err != nil {
						return l, err
					}
					return ls[0], nil
				}
			}},
	}
}

func claimMutants() []mutant {
	onClaim := func(change func(c *stint.Claim)) func(s *broken) {
		return func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				change(&c)
				return s.Store.Claim(ctx, c)
			}
		}
	}
	return []mutant{
		{"Max is ignored", "Claim/at most Max are taken, and none to be had is no error", onClaim(func(c *stint.Claim) { c.Max = 99 })},
		{"runtimes are ignored", "Claim/only sessions with a runtime that was asked for are taken", onClaim(func(c *stint.Claim) { c.Runtimes = nil })},
		{"caps are ignored", "Claim/caps count the live leases of the whole store", onClaim(func(c *stint.Claim) { c.Caps = nil })},
		{"the cap under no name is ignored", "Claim/the cap under no name counts all agents", onClaim(func(c *stint.Claim) { delete(c.Caps, "") })},
		{"another session is taken than asked for", "Claim/one session is taken or the conflict names its holder",
			onClaim(func(c *stint.Claim) { c.Session = stint.ID{} })},
		{"none to be had is an error", "Claim/at most Max are taken, and none to be had is no error", func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				ls, err := s.Store.Claim(ctx, c)
				if err == nil && len(ls) == 0 {
					err = stint.NotFound
				}
				return ls, err
			}
		}},
		{"newest first", "Claim/pending sessions are taken oldest first", func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				ls, err := s.Store.Claim(ctx, c)
				slices.Reverse(ls)
				return ls, err
			}
		}},
		{"a conflict does not say why", "Claim/one session is taken or the conflict names what it waits for", func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				ls, err := s.Store.Claim(ctx, c)
				if stint.CodeOf(err) == stint.Conflict {
					err = stint.Conflict
				}
				return ls, err
			}
		}},
		{"times are waited for a second longer", "Claim/a wait with a time is over at that time", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				if b.Session.Wait != nil {
					w := *b.Session.Wait
					w.Until = w.Until.Add(time.Second)
					b.Session.Wait = &w
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"one session is given to two", "Race/eight runners race for forty sessions and each is held by one", func(s *broken) {
			var mu sync.Mutex
			var last []stint.Lease
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				mu.Lock()
				defer mu.Unlock()
				ls, err := s.Store.Claim(ctx, c)
				if len(last) > 0 {
					ls, last = append(ls, last[0]), nil
				} else {
					last = ls
				}
				return ls, err
			}
		}},
	}
}

func leaseMutants() []mutant {
	return []mutant{
		{"the epoch does not rise", "Lease/each claim raises the epoch", func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				ls, err := s.Store.Claim(ctx, c)
				for i := range ls {
					ls[i].Epoch = 1
				}
				return ls, err
			}
			unfenced(s)
		}},
		{"leases live ten times as long", "Lease/a live lease keeps others away until it expires", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				c.TTL *= 10
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"a dead holder's lease lives until it expires", "Lease/the lease of a dead holder is taken at once", func(s *broken) {
			s.hold = func(ctx context.Context, holder string) (func() error, error) {
				_, err := s.Store.Hold(ctx, holder)
				return func() error { return nil }, err
			}
		}},
		{"a holder's name can be held twice", "Lease/a living holder's name is its own", func(s *broken) {
			s.hold = func(ctx context.Context, holder string) (func() error, error) {
				release, err := s.Store.Hold(ctx, holder)
				if err != nil {
					return func() error { return nil }, nil //nolint:nilerr // that is what is broken
				}
				return release, nil
			}
		}},
		{"every holder is taken for living", "Lease/a holder that was never held is like a dead one", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				_, _ = s.Store.Hold(ctx, c.Holder)
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"the lease before is forgotten", "Lease/a lease not renewed by a living holder expired", func(s *broken) {
			s.claim = func(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
				ls, err := s.Store.Claim(ctx, c)
				for i := range ls {
					ls[i].Prior = stint.Released
				}
				return ls, err
			}
		}},
		{"a lease is never given back", "Lease/given back, a pending session is claimable", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Release = false
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"every append gives the lease back", "Append/a batch makes the session what its entries say", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Release = true
				s.Store.Append(ctx, l, b, done)
			}
		}},
	}
}

func renewMutants() []mutant {
	return []mutant{
		{"renewing asks for no epoch", "Lease/renewing tells which leases are lost", unfenced},
		{"renewing does nothing", "Lease/a renewed lease lives on, with its NOW line", func(s *broken) {
			s.renew = func(context.Context, time.Duration, []stint.Lease) ([]stint.ID, error) { return nil, nil }
		}},
		{"NOW is not kept", "Lease/a renewed lease lives on, with its NOW line", func(s *broken) {
			s.renew = func(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
				held = slices.Clone(held)
				for i := range held {
					held[i].Now = ""
				}
				return s.Store.Renew(ctx, ttl, held)
			}
		}},
		{"an expired lease is lost", "Lease/an expired lease that nobody took can be renewed", func(s *broken) {
			s.renew = func(ctx context.Context, ttl time.Duration, held []stint.Lease) (lost []stint.ID, err error) {
				for _, l := range held {
					if row, err := s.Store.Session(ctx, l.Session); err != nil || !row.Live {
						lost = append(lost, l.Session)
					}
				}
				return lost, err
			}
		}},
	}
}

// unfenced makes s write and renew under any epoch.
func unfenced(s *broken) {
	s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
		l.Epoch = s.epoch(ctx, l.Session)
		s.Store.Append(ctx, l, b, done)
	}
	s.renew = func(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
		held = slices.Clone(held)
		for i := range held {
			held[i].Epoch = s.epoch(ctx, held[i].Session)
		}
		return s.Store.Renew(ctx, ttl, held)
	}
}

func sendMutants() []mutant {
	onSend := func(change func(m *stint.Message)) func(s *broken) {
		return func(s *broken) {
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				change(&m)
				return s.Store.Send(ctx, id, m)
			}
		}
	}
	return []mutant{
		{"a message sent twice is two", "Send/one id with one content is one message", func(s *broken) {
			sent := map[string]bool{}
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				for sent[m.ID] {
					m.ID += " again"
				}
				sent[m.ID] = true
				return s.Store.Send(ctx, id, m)
			}
		}},
		{"bodies of messages are not compared", "Send/one id with other content is a conflict", onSend(func(m *stint.Message) { m.Body = []byte("x") })},
		{"kinds of messages are not compared", "Send/one id with other content is a conflict", onSend(func(m *stint.Message) { m.Kind = stint.Prompt })},
		{"data of messages is lost", "Send/a message lies in the inbox byte for byte, with the store's time", onSend(func(m *stint.Message) { m.Data = nil })},
		{"any message wakes", "Send/a waiting session is woken by the kinds it names", onSend(func(m *stint.Message) { m.Kind = stint.Resume })},
		{"no message wakes", "Send/a waiting session is woken by any control", onSend(func(m *stint.Message) { m.Kind = stint.Prompt })},
		{"what is refused is told as sent", "Send/an ended session takes a restart, a rollback or a branch, and else is a conflict that says so",
			func(s *broken) {
				s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
					_ = s.Store.Send(ctx, id, m)
					return nil
				}
			}},
		{"a session that has ended takes no decision", "Send/in each status a decision about an order is taken and wakes, and so does its deadline", func(s *broken) {
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				if row, err := s.Store.Session(ctx, id); err == nil && row.Session.Status.Ended() && m.Kind == stint.Decision {
					return stint.Conflict.Errorf("send", "it has ended")
				}
				return s.Store.Send(ctx, id, m)
			}
		}},
		{"a message sent again is judged again", "Send/what ended the session may be sent again", func(s *broken) {
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				if row, err := s.Store.Session(ctx, id); err == nil && row.Session.Accepts(m.Kind) != nil {
					return row.Session.Accepts(m.Kind)
				}
				return s.Store.Send(ctx, id, m)
			}
		}},
		{"message ids are of the whole store", "Send/two sessions may get messages of one id", func(s *broken) {
			sent := map[string]stint.ID{}
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				if first, ok := sent[m.ID]; ok && first != id {
					return stint.Conflict
				}
				sent[m.ID] = id
				return s.Store.Send(ctx, id, m)
			}
		}},
	}
}

func inboxMutants() []mutant {
	return []mutant{
		{"the inbox is sorted by id", "Send/the inbox is in the order of arrival, whatever the clock says", func(s *broken) {
			s.inbox = func(ctx context.Context, id stint.ID) ([]stint.Message, error) {
				ms, err := s.Store.Inbox(ctx, id)
				sort.Slice(ms, func(i, j int) bool { return ms[i].ID < ms[j].ID })
				return ms, err
			}
		}},
		{"a taken message stays", "Send/a taken message is gone from the inbox and stays known", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Taken = nil
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"a taken message is forgotten", "Send/a taken message is gone from the inbox and stays known", func(s *broken) {
			s.send = func(ctx context.Context, id stint.ID, m stint.Message) error {
				before, _ := s.Store.Inbox(ctx, id)
				err := s.Store.Send(ctx, id, m)
				after, _ := s.Store.Inbox(ctx, id)
				if !slices.ContainsFunc(after, func(in stint.Message) bool { return in.ID == m.ID }) && len(before) == len(after) {
					m.ID += " again"
					return s.Store.Send(ctx, id, m)
				}
				return err
			}
		}},
		{"unread is everybody's", "Send/rows and Unread count what nobody took", func(s *broken) {
			s.unread = func(ctx context.Context, holder string) ([]stint.ID, error) {
				ids, err := s.Store.Unread(ctx, "one")
				more, _ := s.Store.Unread(ctx, holder)
				all := map[stint.ID]bool{}
				for _, id := range append(ids, more...) {
					all[id] = true
				}
				return slices.Collect(maps.Keys(all)), err
			}
		}},
	}
}

func watchMutants() []mutant {
	return []mutant{
		{"Changed is silent", "Watch/Changed tells of a new session, a message and a lease given back", func(s *broken) {
			s.changed = func(context.Context) <-chan struct{} { return make(chan struct{}) }
		}},
		{"Changed does not end", "Watch/Changed ends with its context", func(s *broken) {
			s.changed = func(ctx context.Context) <-chan struct{} { return s.Store.Changed(context.WithoutCancel(ctx)) }
		}},
		{"Changed queues", "Watch/Changed merges what was not looked at", func(s *broken) {
			queue := make(chan struct{}, 100)
			s.changed = func(context.Context) <-chan struct{} { return queue }
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				queue <- struct{}{}
				return s.Store.Create(ctx, b, c)
			}
		}},
	}
}

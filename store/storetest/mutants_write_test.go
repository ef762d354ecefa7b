package storetest_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

func fenceMutants() []mutant {
	return []mutant{
		{"no epoch is asked for", "Append/a lease whose session was claimed again is fenced", unfenced},
		{"any epoch that was granted will do", "Race/runners that stall are overtaken and write nothing more", unfenced},
		{"expiry fences", "Append/an expired lease writes on as long as nobody took the session", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				if row, err := s.Store.Session(ctx, l.Session); err == nil && !row.Live {
					done(stint.Fenced)
					return
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"a lease that was given back writes on", "Append/a lease that was given back is fenced", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				if s.epoch(ctx, l.Session) == 0 {
					if ls, err := s.Store.Claim(ctx, stint.Claim{Holder: "ghost", TTL: time.Minute, Session: l.Session}); err == nil {
						l = ls[0]
					}
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"an entry that is there already is taken for written", "Append/an entry that is not the head's successor is a conflict", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				row, err := s.Store.Session(ctx, l.Session)
				if err == nil && len(b.Entries) > 0 && b.Entries[0].Seq <= row.Session.Head {
					done(nil)
					return
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
	}
}

func queueMutants() []mutant {
	return []mutant{
		{"a refusal is not told", "Append/a key that is there is a conflict, whatever its digest", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				s.Store.Append(ctx, l, b, func(error) { done(nil) })
			}
		}},
		{"done is called twice", "Append/a batch makes the session what its entries say", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				s.Store.Append(ctx, l, b, done)
				done(nil)
			}
		}},
		{"done is never called", "Append/an expired lease writes on as long as nobody took the session", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, _ func(error)) {
				s.Store.Append(ctx, l, b, func(error) {})
			}
		}},
		{"appends overtake each other", "Append/appends queued without waiting commit in order", func(s *broken) {
			var held []func()
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				held = append(held, func() { s.Store.Append(ctx, l, b, done) })
				if len(held) == 2 {
					held[1]()
					held[0]()
					held = nil
				}
			}
		}},
		{"what is queued behind a refusal is told as written", "Append/what is queued behind a refused append is refused", func(s *broken) {
			failed := false
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				err := s.appended(ctx, l, b)
				if failed {
					err = nil
				}
				failed = failed || err != nil
				done(err)
			}
		}},
		{"a refusal fails the group", "Append/neighbours of a refused append are not refused", func(s *broken) {
			var mu sync.Mutex
			var bad stint.ID
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				mu.Lock()
				defer mu.Unlock()
				var err error = stint.Fenced
				if bad.IsZero() || bad == l.Session {
					err = s.appended(ctx, l, b)
				}
				if bad = (stint.ID{}); err != nil {
					bad = l.Session
				}
				done(err)
			}
		}},
		{"a closed store is open", "Append/a closed store is unavailable", func(s *broken) { s.close = func() error { return nil } }},
	}
}

// batchMutants do not keep a batch together.
func batchMutants() []mutant {
	onAppend := func(change func(b *stint.Batch)) func(s *broken) {
		return func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				change(&b)
				s.Store.Append(ctx, l, b, done)
			}
		}
	}
	return []mutant{
		{"keys do not come with the batch", "Append/a key of an append binds creators too, and the other way round",
			onAppend(func(b *stint.Batch) { b.Keys = nil })},
		{"the status is not updated", "Append/a batch makes the session what its entries say",
			onAppend(func(b *stint.Batch) { b.Session.Status = stint.Pending })},
		{"the last entry of a batch is lost", "Append/a batch makes the session what its entries say",
			onAppend(func(b *stint.Batch) { b.Entries = b.Entries[:max(1, len(b.Entries)-1)] })},
		{"the wait is not kept", "Append/a batch makes the session what its entries say",
			onAppend(func(b *stint.Batch) {
				if w := b.Session.Wait; w != nil {
					b.Session.Wait = &stint.Wait{For: w.For, Since: w.Since, Until: w.Until}
				}
			})},
		{"bodies are written before the batch is judged", "Append/a batch that is refused for a key leaves nothing", func(s *broken) {
			early := map[stint.BlobRef][]byte{}
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				for ref, body := range b.Blobs {
					early[ref] = body
				}
				s.Store.Append(ctx, l, b, done)
			}
			s.blob = func(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
				if body, ok := early[ref]; ok {
					return body, nil
				}
				return s.Store.Blob(ctx, family, ref)
			}
		}},
		{"messages are taken before the batch is judged", "Append/a batch that is refused for its epoch or seq leaves nothing", func(s *broken) {
			taken := map[string]bool{}
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				for _, id := range b.Taken {
					taken[id] = true
				}
				s.Store.Append(ctx, l, b, done)
			}
			s.inbox = func(ctx context.Context, id stint.ID) ([]stint.Message, error) {
				ms, err := s.Store.Inbox(ctx, id)
				return slices.DeleteFunc(ms, func(m stint.Message) bool { return taken[m.ID] }), err
			}
		}},
		{"keys stay though the batch is refused", "Append/a batch that is refused for a limit leaves nothing", func(s *broken) {
			taken := map[string]bool{}
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				for _, key := range b.Keys {
					if taken[key.Name] {
						done(stint.Conflict)
						return
					}
					taken[key.Name] = true
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"entries are written though a key is taken", "Append/a batch that is refused for a key leaves nothing", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				err := s.appended(ctx, l, b)
				if stint.CodeOf(err) == stint.Conflict {
					b.Keys = nil
					_ = s.appended(ctx, l, b)
				}
				done(err)
			}
		}},
	}
}

func sessionsMutants() []mutant {
	onRows := func(change func(f *stint.Filter, rows []stint.Row) []stint.Row) func(s *broken) {
		return func(s *broken) {
			s.sessions = func(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				rows, err := s.Store.Sessions(ctx, f)
				return change(&f, rows), err
			}
		}
	}
	onFilter := func(change func(f *stint.Filter)) func(s *broken) {
		return func(s *broken) {
			s.sessions = func(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
				change(&f)
				return s.Store.Sessions(ctx, f)
			}
		}
	}
	return []mutant{
		{"oldest sessions first", "Sessions/an empty filter selects all, newest first",
			onRows(func(_ *stint.Filter, rows []stint.Row) []stint.Row { slices.Reverse(rows); return rows })},
		{"a page begins a session too late", "Sessions/pages are gapless, also among sessions created at one time",
			onRows(func(f *stint.Filter, rows []stint.Row) []stint.Row {
				if !f.After.IsZero() && len(rows) > 0 {
					rows = rows[1:]
				}
				return rows
			})},
		{"pages ignore their cursor", "Sessions/pages are gapless, also among sessions created at one time",
			onFilter(func(f *stint.Filter) { f.After = stint.ID{} })},
		{"labels are ignored", "Sessions/each member of a filter selects", onFilter(func(f *stint.Filter) { f.Labels = nil })},
		{"a text is ignored", "Sessions/each member of a filter selects", onFilter(func(f *stint.Filter) { f.Text = "" })},
		{"Since is exclusive", "Sessions/each member of a filter selects", onFilter(func(f *stint.Filter) {
			if !f.Since.IsZero() {
				f.Since = f.Since.Add(time.Microsecond)
			}
		})},
		{"Open wins over Statuses", "Sessions/members of a filter are combined by and", onFilter(func(f *stint.Filter) {
			if f.Agent != "" {
				f.Name = ""
			}
		})},
		{"Running is asked of the rows as stored", "Sessions/Running selects what is pending under a live lease",
			onRows(func(f *stint.Filter, rows []stint.Row) []stint.Row {
				return slices.DeleteFunc(rows, func(r stint.Row) bool { return f.Statuses != nil && !slices.Contains(f.Statuses, r.Session.Status) })
			})},
		{"a reader gets all", "Sessions/without a limit a reader gets 1,000", onFilter(func(f *stint.Filter) {
			if f.Limit == 0 {
				f.Limit = 1 << 30
			}
		})},
		{"short ids have four characters", "Sessions/a short id is the shortest unique suffix at its time", func(s *broken) {
			s.session = func(ctx context.Context, id stint.ID) (stint.Row, error) {
				row, err := s.Store.Session(ctx, id)
				row.Short = id.String()[26-4:]
				return row, err
			}
		}},
		{"short ids are no suffixes", "Sessions/a session is found by its short id and by longer suffixes",
			onFilter(func(f *stint.Filter) {
				if len(f.Short) > 5 {
					f.Short = f.Short[:5]
				}
			})},
	}
}

func entriesMutants() []mutant {
	onRange := func(change func(r *stint.Range)) func(s *broken) {
		return func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				change(&r)
				return s.Store.Entries(ctx, r)
			}
		}
	}
	onEntry := func(change func(e *stint.Entry)) func(s *broken) {
		return func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				es, err := s.Store.Entries(ctx, r)
				es = slices.Clone(es)
				for i := range es {
					change(&es[i])
				}
				return es, err
			}
		}
	}
	return []mutant{
		{"Last is ignored", "Entries/ranges select by seq, kind and number", onRange(func(r *stint.Range) { r.Last = false })},
		{"Until is exclusive", "Entries/ranges select by seq, kind and number", onRange(func(r *stint.Range) { r.Until = max(r.Until-1, 0) })},
		{"kinds are ignored", "Entries/ranges select by seq, kind and number", onRange(func(r *stint.Range) { r.Kinds = nil })},
		{"time orders", "Entries/seq orders, also when the clock goes back", func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				es, err := s.Store.Entries(ctx, r)
				es = slices.Clone(es)
				slices.SortStableFunc(es, func(a, b stint.Entry) int { return a.At.Compare(b.At) })
				return es, err
			}
		}},
		{"bodies are made valid text", "Entries/bytes come back as they were written",
			onEntry(func(e *stint.Entry) { e.Body = []byte(strings.ToValidUTF8(string(e.Body), "\ufffd")) })},
		{"bodies end at a zero byte", "Entries/bytes come back as they were written",
			onEntry(func(e *stint.Entry) { e.Body, _, _ = bytes.Cut(e.Body, []byte{0}) })},
		{"times are kept to the millisecond", "Entries/times are kept to the microsecond",
			onEntry(func(e *stint.Entry) { e.At = e.At.Truncate(time.Millisecond) })},
		{"times are local", "Entries/times are kept to the microsecond",
			onEntry(func(e *stint.Entry) { e.At = e.At.In(time.FixedZone("here", 3600)) })},
		{"the salt is lost", "Entries/every member of an entry comes back", onEntry(func(e *stint.Entry) { e.Salt = [16]byte{} })},
		{"the member of a group is lost", "Entries/every member of an entry comes back", onEntry(func(e *stint.Entry) { e.Pos.Sub = 0 })},
	}
}

func blobMutants() []mutant {
	return []mutant{
		{"a family's key changes", "Family/a family's key is 32 bytes, the same each time, and no other family's", func(s *broken) {
			n := byte(0)
			s.key = func(context.Context, stint.ID) ([]byte, error) {
				n++
				return bytes.Repeat([]byte{n}, 32), nil
			}
		}},
		{"families have one key", "Family/a family's key is 32 bytes, the same each time, and no other family's", func(s *broken) {
			s.key = func(ctx context.Context, _ stint.ID) ([]byte, error) { return s.Store.FamilyKey(ctx, stint.ID{}) }
		}},
		{"bodies do not come with the batch", "Family/a body that came with a batch is read back", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Blobs = nil
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"large bodies are cut", "Family/bodies of every size to 5 MiB are read back", func(s *broken) {
			s.blob = func(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
				body, err := s.Store.Blob(ctx, family, ref)
				return body[:min(len(body), 1<<20)], err
			}
		}},
		{"the size of a body is not compared", "Family/a body that has not the size of its name is corrupt", func(s *broken) {
			s.blob = func(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
				if ref.Size == 5 {
					ref.Size = 4
				}
				return s.Store.Blob(ctx, family, ref)
			}
		}},
		{"a body is everybody's", "Family/a body of another family, or that never came, is not found", func(s *broken) {
			owner := map[stint.BlobRef]stint.ID{}
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				for ref := range b.Blobs {
					owner[ref] = b.Session.Family
				}
				s.Store.Append(ctx, l, b, done)
			}
			s.blob = func(ctx context.Context, _ stint.ID, ref stint.BlobRef) ([]byte, error) {
				return s.Store.Blob(ctx, owner[ref], ref)
			}
		}},
		{"bodies are loaded with their entries", "Family/entries do not load bodies that lie outside the journal", func(s *broken) {
			s.entries = func(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
				es, err := s.Store.Entries(ctx, r)
				es = slices.Clone(es)
				for i := range es {
					if !es[i].Blob.IsZero() {
						es[i].Body = []byte("outside")
					}
				}
				return es, err
			}
		}},
	}
}

func meterMutants() []mutant {
	onMeters := func(change func(m *stint.Meter)) func(s *broken) {
		return func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Meters = slices.Clone(b.Meters)
				for i := range b.Meters {
					change(&b.Meters[i])
				}
				s.Store.Append(ctx, l, b, done)
			}
		}
	}
	return []mutant{
		{"limits are not asked", "Family/reservations fill a limit and no more", onMeters(func(m *stint.Meter) { m.Limit = -1 })},
		{"what is spent does not count", "Family/what is spent counts, what is settled is free again", onMeters(func(m *stint.Meter) { m.Spend = 0 })},
		{"nothing is settled", "Family/what is spent counts, what is settled is free again", onMeters(func(m *stint.Meter) { m.Reserve = max(m.Reserve, 0) })},
		{"a limit of none is zero", "Family/a negative limit is none, and use may pass it", onMeters(func(m *stint.Meter) { m.Limit = max(m.Limit, 0) })},
		{"metrics count for each other", "Family/metrics and families do not count for each other", onMeters(func(m *stint.Meter) { m.Metric = "all" })},
		{"meters of a create do not count", "Family/meters of a create count", func(s *broken) {
			s.create = func(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
				b.Meters = nil
				return s.Store.Create(ctx, b, c)
			}
		}},
		{"only the first meter of a batch counts", "Family/several meters of a batch count one after the other", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Meters = b.Meters[:min(len(b.Meters), 1)]
				s.Store.Append(ctx, l, b, done)
			}
		}},
		{"reservations are judged apart from being made", "Family/reservations at the same time do not pass the limit", func(s *broken) {
			s.append = func(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
				b.Meters = slices.Clone(b.Meters)
				for i := range b.Meters {
					b.Meters[i].Limit *= 2 // as if each of two saw the limit free
				}
				s.Store.Append(ctx, l, b, done)
			}
		}},
	}
}

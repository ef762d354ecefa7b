package replay_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

var record = flag.Bool("record", false, "record the golden journals that are not there yet; one that is there is never written anew")

// line is one line of a golden journal: an entry, or a body that lies outside of it. Data
// and bodies stand there as they are, so that a person can read them.
type line struct {
	Seq    stint.Seq       `json:"seq,omitempty"`
	Kind   stint.Kind      `json:"kind,omitempty"`
	Pos    stint.Position  `json:"pos,omitzero"`
	Epoch  int64           `json:"epoch,omitempty"`
	At     time.Time       `json:"at,omitzero"`
	Actor  stint.Actor     `json:"actor,omitempty"`
	Cause  stint.Seq       `json:"cause,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
	Blob   stint.BlobRef   `json:"blob,omitzero"`
	V      uint8           `json:"v,omitempty"`
	Salt   string          `json:"salt,omitempty"`
	Hash   stint.Hash      `json:"hash,omitzero"`
	ID     stint.ID        `json:"session,omitzero"`
}

// writeGolden keeps a session of a store.
func writeGolden(t *testing.T, path string, src stint.Store, id stint.ID) {
	t.Helper()
	row, err := src.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	es, err := src.Entries(t.Context(), stint.Range{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	put := func(l line, body []byte) {
		if l.Text = string(body); !utf8.Valid(body) {
			l.Text, l.Base64 = "", body
		}
		if err := enc.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	for i := range es {
		e := &es[i]
		if !e.Blob.IsZero() {
			body, err := src.Blob(t.Context(), row.Session.Family, e.Blob)
			if err != nil {
				t.Fatal(err)
			}
			put(line{Blob: e.Blob}, body)
		}
		put(line{Seq: e.Seq, Kind: e.Kind, Pos: e.Pos, Epoch: e.Epoch, At: e.At, Actor: e.Actor, Cause: e.Cause, Data: e.Data, Blob: e.Blob,
			V: e.Version, Salt: base64.StdEncoding.EncodeToString(e.Salt[:]), Hash: e.Hash, ID: e.Session}, e.Body)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// golden is one session as a store has it.
type golden struct {
	stint.Reader
	entries []stint.Entry
	blobs   map[stint.Hash][]byte
	session stint.Session
}

// readGolden reads a golden journal, and holds it to its hashes.
func readGolden(t *testing.T, name string) *golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{blobs: map[stint.Hash][]byte{}}
	prev := stint.Hash{}
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		body := cmp.Or(l.Text, string(l.Base64))
		if l.Seq == 0 {
			g.blobs[l.Blob.Sum] = []byte(body)
			continue
		}
		e := stint.Entry{Version: l.V, Session: l.ID, Seq: l.Seq, Epoch: l.Epoch, Pos: l.Pos, Kind: l.Kind, At: l.At, Actor: l.Actor, Cause: l.Cause,
			Data: l.Data, Blob: l.Blob, Hash: l.Hash}
		if body != "" {
			e.Body = []byte(body)
		}
		salt, err := base64.StdEncoding.DecodeString(l.Salt)
		if err != nil {
			t.Fatal(err)
		}
		copy(e.Salt[:], salt)
		if err := journal.Verify(&e, prev); err != nil {
			t.Fatal(err)
		}
		prev = e.Hash
		g.entries = append(g.entries, e)
	}
	if g.session, err = journal.Fold(stint.Session{}, g.entries); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *golden) Session(_ context.Context, id stint.ID) (stint.Row, error) {
	if id != g.session.ID {
		return stint.Row{}, stint.NotFound.Errorf("session", "there is no session %s", id)
	}
	return stint.Row{Session: g.session}, nil
}

func (g *golden) Entries(_ context.Context, r stint.Range) ([]stint.Entry, error) {
	var out []stint.Entry
	for _, e := range g.entries {
		if e.Seq > r.After && (r.Until == 0 || e.Seq <= r.Until) && (r.Kinds == nil || slices.Contains(r.Kinds, e.Kind)) {
			out = append(out, e)
		}
	}
	switch {
	case r.Limit == 0 || len(out) <= r.Limit:
	case r.Last:
		out = out[len(out)-r.Limit:]
	default:
		out = out[:r.Limit]
	}
	return out, nil
}

func (g *golden) Blob(_ context.Context, _ stint.ID, ref stint.BlobRef) ([]byte, error) {
	if b, ok := g.blobs[ref.Sum]; ok {
		return b, nil
	}
	return nil, stint.NotFound.Errorf("blob", "it is not there")
}

func (g *golden) FamilyKey(context.Context, stint.ID) ([]byte, error) { return make([]byte, 32), nil }

package view_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// exported is a line of an export as any program would read it.
type exported struct {
	V                                            byte
	Session, Kind, Actor, Salt, Hash, Commitment string
	Seq, Epoch, Cause                            uint64
	Pos                                          struct{ Line, Loop, Attempt, Step, Sub uint64 }
	AtUS                                         int64 `json:"at_us"`
	Erased                                       bool
	Data, Body                                   json.RawMessage
	Data64                                       string `json:"data_base64"`
	Body64                                       string `json:"body_base64"`
	Blob                                         struct {
		Sum  string
		Size uint64
	}
}

// checkExport follows the rule in the header of an export and nothing else. It
// returns the number of entries and the hash of the last.
func checkExport(r io.Reader) (n uint64, head string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<26)
	if !lines.Scan() {
		return 0, "", errors.New("no header")
	}
	var prev [32]byte
	for lines.Scan() {
		var e exported
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return n, head, err
		}
		sum := hashOf(&e, prev)
		if hex.EncodeToString(sum[:]) != e.Hash {
			return n, head, fmt.Errorf("entry %d does not have the hash of its line", e.Seq)
		}
		if n++; e.Seq != n {
			return n, head, fmt.Errorf("entry %d stands in the place of %d", e.Seq, n)
		}
		prev, head = sum, e.Hash
	}
	return n, head, lines.Err()
}

func hashOf(e *exported, prev [32]byte) [32]byte {
	text := func(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	unhex := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	plain := func(raw json.RawMessage, b64 string) []byte {
		if b64 == "" {
			return raw
		}
		b, _ := base64.StdEncoding.DecodeString(b64)
		return b
	}
	commitment := unhex(e.Commitment)
	if !e.Erased {
		m := hmac.New(sha256.New, unhex(e.Salt))
		b := text(text(nil, plain(e.Data, e.Data64)), plain(e.Body, e.Body64))
		if e.Blob.Sum == "" {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(append(append(b, 1), unhex(e.Blob.Sum)...), e.Blob.Size)
		}
		m.Write(b)
		commitment = m.Sum(nil)
	}
	b := append([]byte{e.V}, crockford(e.Session)...)
	for _, v := range []uint64{e.Seq, e.Epoch, e.Pos.Line, e.Pos.Loop, e.Pos.Attempt, e.Pos.Step, e.Pos.Sub} {
		b = binary.AppendUvarint(b, v)
	}
	b = text(b, []byte(e.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(e.AtUS))
	b = text(b, []byte(e.Actor))
	b = binary.AppendUvarint(b, e.Cause)
	return sha256.Sum256(append(append(b, prev[:]...), commitment...))
}

// crockford reads 26 characters as 16 bytes.
func crockford(s string) []byte {
	var out []byte
	acc, bits := uint32(0), -2
	for _, c := range s {
		acc = acc<<5 | uint32(strings.IndexRune("0123456789abcdefghjkmnpqrstvwxyz", c))
		for bits += 5; bits >= 8; {
			bits -= 8
			out = append(out, byte(acc>>bits))
		}
	}
	return out
}

// An export can be checked without this program, and a changed one is found.
func TestExport(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := long(w)
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "std\u202eerr"}, Body: []byte("\x1b[2J\xff\n")})
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte("{\n  \"two\": \"lines\"\n}")})
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte(`{"a" : 1.0, "b":9007199254740993, "<":"\u00e9é"}`)})
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte(` {"space":"around"} `)})
		row := k.row()
		var out bytes.Buffer
		if err := view.Export(t.Context(), w.store, &row, now(), &out); err != nil {
			t.Fatal(err)
		}
		n, head, err := checkExport(bytes.NewReader(out.Bytes()))
		if err != nil || n != uint64(row.Session.Head) || head != row.Session.HeadHash.String() {
			t.Fatalf("after %d entries the head is %s, want %s: %v", n, head, row.Session.HeadHash, err)
		}
		for _, verbatim := range []string{`"body":{"a" : 1.0, "b":9007199254740993, "<":"\u00e9é"}`, `"blob_body":{"text":"xxx`, `"data":{"why":"next"}`} {
			if !strings.Contains(out.String(), verbatim) {
				t.Errorf("the export has no %s", verbatim)
			}
		}
		lines := bytes.SplitAfter(out.Bytes(), []byte("\n"))
		for i := 1; i < len(lines)-1; i++ {
			changed := bytes.Clone(out.Bytes())
			at := bytes.Index(changed, lines[i]) + bytes.Index(lines[i], []byte(`"data`)) + 10
			changed[at] ^= 1
			if _, _, err := checkExport(bytes.NewReader(changed)); err == nil {
				t.Errorf("a change in line %d is not found", i+1)
			}
		}
	})
}

func TestExportSchema(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("small-1129").claim("worker/1")
		k.loop("first")
		k.complete(`{"n":1}`, "first", journal.Rollup{})
		k.end(stint.Completed, "", `"done"`)
		row := k.row()
		var out bytes.Buffer
		if err := view.Export(t.Context(), w.store, &row, now(), &out); err != nil {
			t.Fatal(err)
		}
		golden(t, "stint.export.1.jsonl", out.Bytes())
	})
}

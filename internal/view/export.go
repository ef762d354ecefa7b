package view

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// exportRule says how the lines of an export hang together, so that they can be
// checked without this program.
const exportRule = `Each line after this one is one entry, in order of seq. ` +
	`Numbers below are unsigned LEB128 varints unless said otherwise; a byte string is its length as such a number, then its bytes. ` +
	`commitment = HMAC-SHA256 under the 16 bytes of salt of: data as a byte string, body as a byte string, then one byte 0 if there is no blob, ` +
	`else one byte 1, the 32 bytes of blob.sum, and blob.size. ` +
	`The bytes of data and body are those of the member as it stands in the line (from the first byte of the JSON value to its last), ` +
	`or of data_base64 and body_base64 decoded (RFC 4648, with padding); a member that is absent is zero bytes. An entry with erased true has its commitment given instead of salt and bytes. ` +
	`hash = SHA-256 of: v (1 byte), session (the 16 bytes that its 26 characters stand for: Crockford base32, 130 bits of which the first 2 are zero), ` +
	`seq, epoch, the five members of pos in their order, kind as a byte string, at_us (microseconds since 1970, 8 bytes big-endian, two's complement), actor as a byte string, cause, ` +
	`the hash of the line before (32 bytes, zeros before the first), commitment (32 bytes). ` +
	`The hash of the last line is head_hash. blob_body and blob_body_base64 are the body that blob names; it is bound by an HMAC under a key of the family that an export does not hold.`

// exportHeader is the first line of an export.
type exportHeader struct {
	Schema   Schema     `json:"schema"`
	Exported *time.Time `json:"exported"`
	Session  stint.ID   `json:"session"`
	Name     string     `json:"name"`
	Agent    string     `json:"agent"`
	Family   stint.ID   `json:"family"`
	Entries  stint.Seq  `json:"entries"`
	HeadHash stint.Hash `json:"head_hash"`
	HashRule string     `json:"hash_rule"`
}

// exportEntry is the part of an entry's line before its bytes.
type exportEntry struct {
	Version uint8          `json:"v"`
	Session stint.ID       `json:"session"`
	Seq     stint.Seq      `json:"seq"`
	Epoch   int64          `json:"epoch"`
	Pos     stint.Position `json:"pos"`
	Kind    stint.Kind     `json:"kind"`
	At      *time.Time     `json:"at"`
	AtUS    int64          `json:"at_us"`
	Actor   stint.Actor    `json:"actor"`
	Cause   stint.Seq      `json:"cause"`
	Salt    string         `json:"salt,omitempty"`
	Erased  bool           `json:"erased"`
	Commit  stint.Hash     `json:"commitment,omitzero"`
	Hash    stint.Hash     `json:"hash"`
	Blob    stint.BlobRef  `json:"blob,omitzero"`
}

// Export writes the journal of row's session up to the row's head as JSON lines,
// schema stint.export/1: a header that says the hash rule in words, then each
// entry with all its bytes. JSON stands verbatim in the line where it fits on one
// and holds nothing that a terminal could act on, other bytes as base64. A body
// that is not there is left out. Nothing is checked: see [VerifySession].
func Export(ctx context.Context, src Source, row *stint.Row, now time.Time, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	s := &row.Session
	if err := WriteJSON(out, exportHeader{SchemaExport, whole(now), s.ID, s.Name, s.Agent.Name, s.Family, s.Head, s.HeadHash, exportRule}); err != nil {
		return err
	}
	b := bodies{src, s.Family}
	err := eachEntry(ctx, src, stint.Range{Session: s.ID, Until: s.Head}, func(e *stint.Entry) error {
		line, err := exportLine(ctx, b, e)
		if err != nil {
			return err
		}
		_, err = out.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func exportLine(ctx context.Context, b bodies, e *stint.Entry) ([]byte, error) {
	x := exportEntry{
		Version: e.Version, Session: e.Session, Seq: e.Seq, Epoch: e.Epoch, Pos: e.Pos, Kind: e.Kind, At: whole(e.At), AtUS: e.At.UnixMicro(),
		Actor: e.Actor, Cause: e.Cause, Erased: e.Erased, Hash: e.Hash, Blob: e.Blob,
	}
	if e.Erased {
		x.Commit = e.Commit
	} else {
		x.Salt = hex.EncodeToString(e.Salt[:])
	}
	line, err := encode(x)
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1]
	line = appendBytes(line, "data", e.Data)
	line = appendBytes(line, "body", e.Body)
	if !e.Blob.IsZero() && !e.Erased {
		body, found, err := b.maybe(ctx, e)
		if err != nil {
			return nil, err
		}
		if found {
			line = appendBytes(line, "blob_body", body)
		}
	}
	return append(line, '}', '\n'), nil
}

// appendBytes appends a member with bytes, as they are if they are JSON that can
// stand in a line.
func appendBytes(line []byte, name string, p []byte) []byte {
	if len(p) == 0 {
		return line
	}
	line = append(append(line, `,"`...), name...)
	if json.Valid(p) && utf8.Valid(p) && !bytes.ContainsAny(p, "\r\n") && p[0] > ' ' && p[len(p)-1] > ' ' && isSafe(string(p)) {
		return append(append(line, `":`...), p...)
	}
	line = append(line, `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(line, p), '"')
}

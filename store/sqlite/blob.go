package sqlite

import (
	"context"
	"sync"

	"github.com/klauspost/compress/zstd"
	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// packed is a body as it is kept.
type packed struct {
	ref  stint.BlobRef
	enc  int
	data []byte
}

// How a body is kept.
const (
	encPlain = 0
	encZstd  = 1
)

// codec compresses bodies. Its parts are made when the first body needs them and
// may be used concurrently; together they keep about a MiB.
type codec struct {
	enc func() *zstd.Encoder
	dec func() *zstd.Decoder
}

func newCodec() *codec {
	return &codec{
		enc: sync.OnceValue(func() *zstd.Encoder {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest),
				zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10))
			if err != nil {
				return nil // the options are right
			}
			return e
		}),
		dec: sync.OnceValue(func() *zstd.Decoder {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlob))
			if err != nil {
				return nil
			}
			return d
		}),
	}
}

// pack compresses bodies; it runs on the caller's goroutine, beside the committer.
func (c *codec) pack(blobs map[stint.BlobRef][]byte) []packed {
	if len(blobs) == 0 {
		return nil
	}
	all := make([]packed, 0, len(blobs))
	for ref, body := range blobs {
		p := packed{ref, encPlain, body}
		if small := c.enc().EncodeAll(body, nil); len(small) < len(body) {
			p.enc, p.data = encZstd, small
		}
		all = append(all, p)
	}
	return all
}

// unpack is the inverse of pack for one body.
func (c *codec) unpack(enc int64, data []byte, size int64) ([]byte, error) {
	if enc == encPlain {
		return data, nil
	}
	return c.dec().DecodeAll(data, make([]byte, 0, size))
}

// maxBlob bounds what one body may take when it is unpacked.
const maxBlob = 64 << 20

// Blob implements [stint.Blobs].
func (s *Store) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) (body []byte, err error) {
	var found bool
	var enc, size int64
	err = s.read(ctx, "blob", func(c *sqlite.Conn) error {
		found, err = one(c, "SELECT size, enc, data FROM blobs WHERE fid = (SELECT fid FROM families WHERE id = ?) AND sum = ?", func(st *sqlite.Stmt) {
			size, enc = st.ColumnInt64(0), st.ColumnInt64(1)
			body = column(st, 2)
		}, family.String(), ref.Sum[:])
		return err
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(stint.NotFound, "blob", stint.ID{}, "it was erased, or never written", "family %s has no body %s", family, ref.Sum)
	}
	if size == ref.Size && size <= maxBlob {
		body, err = s.codec.unpack(enc, body, size)
	}
	if err != nil || int64(len(body)) != ref.Size {
		return nil, refuse(stint.Corrupt, "blob", stint.ID{}, "keep a copy of the store; `stint verify` lists what is sound",
			"body %s has %d bytes, not %d", ref.Sum, len(body), ref.Size)
	}
	return body, nil
}

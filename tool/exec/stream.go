package exec

import (
	"fmt"
	"io"

	"github.com/stint-dev/stint/tool"
)

// drain copies a stream to its end, whatever becomes of the copy.
func drain(to io.Writer, from io.Reader) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
}

// tail keeps the end of what is written to it.
type tail struct {
	limit   int
	kept    []byte
	dropped int64
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.limit { // moved now and then, not at each write
		t.cut()
	}
	return len(p), nil
}

func (t *tail) cut() {
	if more := len(t.kept) - t.limit; more > 0 {
		t.dropped += int64(more)
		t.kept = append(t.kept[:0], t.kept[more:]...)
	}
}

// text is the end as text, and says what is not there.
func (t *tail) text() string {
	t.cut()
	b := t.kept
	for t.dropped > 0 && len(b) > 0 && b[0]&0xc0 == 0x80 { // the end of a character
		b = b[1:]
	}
	text := tool.Capped{Bytes: b}.Text()
	if t.dropped > 0 {
		text = fmt.Sprintf("[stint: %d bytes before these were not kept]\n%s", t.dropped, text)
	}
	return text
}

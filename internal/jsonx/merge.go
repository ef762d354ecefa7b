package jsonx

import (
	"bytes"
	"errors"
	"fmt"
)

// Merge applies an RFC 7396 merge patch to doc and returns the new document; both stay as
// they are. A null deletes its member, objects merge member by member, anything else
// replaces what was there with the patch's exact bytes; a patch that is no object
// replaces the document. Members of doc that the patch does not name keep their bytes and
// their order, new members follow in the order of the patch. An empty doc stands for {}.
// Both inputs are checked with the zero Limits, and errors wrap *SyntaxError.
func Merge(doc, patch []byte) ([]byte, error) {
	if len(doc) == 0 {
		doc = []byte("{}")
	}
	if err := Check(doc, Limits{}); err != nil {
		return nil, fmt.Errorf("the document to be patched: %w", err)
	}
	p, err := parse(patch)
	if err != nil {
		return nil, fmt.Errorf("the merge patch: %w", err)
	}
	m := merger{cursor: cursor{b: doc}, out: make([]byte, 0, len(doc)+len(patch))}
	m.space()
	m.out = append(m.out, doc[:m.i]...)
	m.value(p)
	m.out = append(m.out, doc[m.i:]...)
	return m.out, nil
}

// node is a value of a patch.
type node struct {
	quoted  []byte // as a member: the name as written, with its quotes
	name    []byte // the name unescaped
	raw     []byte // the value as written
	object  bool
	null    bool
	deletes bool    // an object that holds a null somewhere, arrays aside
	members []*node // of an object
	byName  map[string]*node
	used    bool // the document has this member
}

// parse checks a patch and gives its tree. Arrays are leaves.
func parse(b []byte) (*node, error) {
	if err := Check(b, Limits{}); err != nil {
		return nil, err
	}
	c := cursor{b: b}
	c.space()
	n := &node{}
	n.read(&c)
	return n, nil
}

func (n *node) read(c *cursor) {
	start := c.i
	n.null, n.object = c.b[c.i] == 'n', c.b[c.i] == '{'
	if !n.object {
		c.skip()
		n.raw = c.b[start:c.i]
		return
	}
	c.i++
	for c.more() {
		quoted := c.name()
		child := &node{quoted: quoted, name: unescape(quoted[1 : len(quoted)-1])}
		child.read(c)
		n.members = append(n.members, child)
		n.deletes = n.deletes || child.null || child.deletes
	}
	n.raw = c.b[start:c.i]
	if len(n.members) > few {
		n.byName = make(map[string]*node, len(n.members))
		for _, child := range n.members {
			n.byName[string(child.name)] = child
		}
	}
}

func (n *node) member(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for _, child := range n.members {
		if bytes.Equal(child.name, name) {
			return child
		}
	}
	return nil
}

// merger copies the document to out, changing what the patch changes.
type merger struct {
	cursor
	out []byte
}

// value passes a value of the document and writes what p makes of it. p is no null,
// unless it is the whole patch.
func (m *merger) value(p *node) {
	if p.object && m.b[m.i] == '{' {
		m.object(p)
		return
	}
	m.skip()
	m.put(p)
}

// object copies each member together with the white space before it, and at last that
// before the closing brace, so that an indented document stays as it was.
func (m *merger) object(p *node) {
	m.i++
	m.out = append(m.out, '{')
	empty := true
	after := m.i // after '{' or the last value: white space up to here belongs to nobody yet
	for {
		lead := m.i
		m.space()
		if m.b[m.i] == '}' { // only in {}, else the end is found behind a value
			break
		}
		quoted := m.name()
		at := m.i
		change := p.member(unescape(quoted[1 : len(quoted)-1]))
		if change != nil {
			change.used = true
		}
		if change != nil && change.null {
			m.skip()
		} else {
			m.comma(&empty)
			if change == nil {
				m.skip()
				at = m.i
			}
			m.out = append(m.out, m.b[lead:at]...)
			if change != nil {
				m.value(change)
			}
		}
		after = m.i
		m.space()
		if m.b[m.i] == '}' {
			break
		}
		if change == nil || !change.null {
			m.out = append(m.out, m.b[after:m.i]...)
		}
		m.i++
	}
	m.added(p, &empty)
	m.i++
	m.out = append(m.out, m.b[after:m.i]...)
}

func (m *merger) comma(empty *bool) {
	if !*empty {
		m.out = append(m.out, ',')
	}
	*empty = false
}

// added writes the members of p that the document does not have.
func (m *merger) added(p *node, empty *bool) {
	for _, child := range p.members {
		if child.used || child.null {
			continue
		}
		m.comma(empty)
		m.out = append(append(m.out, child.quoted...), ':')
		m.put(child)
	}
}

// put writes p where the document has nothing that could be merged with it: as it is
// written, or if it holds nulls, as an empty object patched with it.
func (m *merger) put(p *node) {
	if !p.deletes {
		m.out = append(m.out, p.raw...)
		return
	}
	empty := true
	m.out = append(m.out, '{')
	m.added(p, &empty)
	m.out = append(m.out, '}')
}

// maxKeys bounds what Keys returns, in bytes: names repeat in each path below them, so a
// small patch can have very long ones.
const maxKeys = 16 << 20

// Keys lists what a merge patch writes or deletes: the paths of its members that are no
// objects or are empty ones, as JSON Pointers (RFC 6901), in the order of the patch. A
// patch that is no object writes the whole document, whose pointer is "". The patch is
// checked with the zero Limits; an error is a wrapped *SyntaxError or says that the
// paths together take more than 16 MiB.
func Keys(patch []byte) ([]string, error) {
	n, err := parse(patch)
	if err != nil {
		return nil, fmt.Errorf("the merge patch: %w", err)
	}
	if n.object && len(n.members) == 0 {
		return nil, nil
	}
	var keys []string
	total := 0
	if !n.leaves(nil, func(path []byte) bool {
		keys = append(keys, string(path))
		total += len(path)
		return total <= maxKeys
	}) {
		return nil, errors.New("the paths of the merge patch take more than 16 MiB; use shorter names or less nesting")
	}
	return keys, nil
}

// leaves calls yield with the path of each leaf until it returns false. Paths share path's
// memory, so one must be copied to be kept.
func (n *node) leaves(path []byte, yield func([]byte) bool) bool {
	if len(n.members) == 0 {
		return yield(path)
	}
	for _, child := range n.members {
		if !child.leaves(child.appendTo(path), yield) {
			return false
		}
	}
	return true
}

// appendTo adds the member's part of a JSON Pointer.
func (n *node) appendTo(path []byte) []byte {
	path = append(path, '/')
	for _, c := range n.name {
		switch c {
		case '~':
			path = append(path, "~0"...)
		case '/':
			path = append(path, "~1"...)
		default:
			path = append(path, c)
		}
	}
	return path
}

// Conflict gives the first path, in the order of a, that two merge patches both write: the
// same path, or one inside a value that the other writes, of which the inner path is
// given. Two patches without a conflict give the same document in either order. It is ""
// if there is none, "#" if both replace the document or one does and the other is {}.
// Equal values conflict too, and an empty object counts as a value. Both are checked with
// the zero Limits, and errors wrap *SyntaxError.
func Conflict(a, b []byte) (path string, err error) {
	na, err := parse(a)
	if err != nil {
		return "", fmt.Errorf("the first merge patch: %w", err)
	}
	nb, err := parse(b)
	if err != nil {
		return "", fmt.Errorf("the second merge patch: %w", err)
	}
	if na.object && nb.object && (len(na.members) == 0 || len(nb.members) == 0) {
		return "", nil
	}
	found := na.conflict(nb, nil, func(p []byte) bool { path = string(p); return false })
	if found && path == "" {
		path = "#"
	}
	return path, nil
}

// conflict calls yield once with the first path, at or below the place of n and other,
// that both write, and reports whether there is one.
func (n *node) conflict(other *node, path []byte, yield func([]byte) bool) bool {
	if len(n.members) == 0 {
		n, other = other, n
	}
	if len(other.members) == 0 {
		n.leaves(path, yield)
		return true
	}
	for _, child := range n.members {
		if twin := other.member(child.name); twin != nil && child.conflict(twin, child.appendTo(path), yield) {
			return true
		}
	}
	return false
}

package sqlite

import (
	"sync"

	"zombiezen.com/go/sqlite"
)

// maxNames bounds the cache of names: an actor may be one of a million sessions.
const maxNames = 10_000

// names caches the table names, in which words that repeat have numbers. Rows of
// it never change.
type names struct {
	mu    sync.RWMutex
	ids   map[string]int64
	texts map[int64]string
}

func newNames() *names {
	return &names{ids: map[string]int64{}, texts: map[int64]string{}}
}

func (n *names) learn(id int64, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ids) >= maxNames {
		clear(n.ids)
		clear(n.texts)
	}
	n.ids[text], n.texts[id] = id, text
}

// forget drops the names that a rolled back transaction made.
func (n *names) forget(texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range texts {
		delete(n.texts, n.ids[t])
		delete(n.ids, t)
	}
}

// text returns the word of id.
func (n *names) text(c *sqlite.Conn, id int64) (string, error) {
	n.mu.RLock()
	t, ok := n.texts[id]
	n.mu.RUnlock()
	if ok {
		return t, nil
	}
	found, err := one(c, "SELECT text FROM names WHERE id = ?", func(st *sqlite.Stmt) { t = st.ColumnText(0) }, id)
	if found && err == nil {
		n.learn(id, t)
	}
	return t, err
}

// lookup returns the number of a word that may not have one yet: then ok is false.
func (n *names) lookup(c *sqlite.Conn, text string) (id int64, ok bool, err error) {
	n.mu.RLock()
	id, ok = n.ids[text]
	n.mu.RUnlock()
	if ok {
		return id, true, nil
	}
	ok, err = one(c, "SELECT id FROM names WHERE text = ?", func(st *sqlite.Stmt) { id = st.ColumnInt64(0) }, text)
	if ok && err == nil {
		n.learn(id, text)
	}
	return id, ok, err
}

// intern returns the number of a word, giving it one if need be.
func (w *writer) intern(text string) (int64, error) {
	id, ok, err := w.names.lookup(w.c, text)
	if ok || err != nil {
		return id, err
	}
	if err := exec(w.c, "INSERT INTO names(id, text) SELECT max(100, max(id) + 1), ? FROM names", text); err != nil {
		return 0, err
	}
	id = w.c.LastInsertRowID()
	w.names.learn(id, text)
	w.named = append(w.named, text)
	return id, nil
}

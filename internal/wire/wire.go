// Package wire is the JSON of the routes below /v1/store: what a store answers, with
// nothing left out and every byte as it was, so that a program on another machine reads a
// session as if it had the store.
//
// Most types are those of package stint with names for JSON, and are converted; the
// compiler refuses that once the two differ. Message and Key have members of raw JSON,
// which encoding/json would write anew, so that they go as bytes. Texts are UTF-8, as
// journals have them.
package wire

import (
	"time"

	"github.com/stint-dev/stint"
)

// Filter is [stint.Filter].
type Filter struct {
	Statuses []stint.Status    `json:"statuses,omitempty"`
	Open     bool              `json:"open,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Name     string            `json:"name,omitempty"`
	Short    string            `json:"short,omitempty"`
	Family   stint.ID          `json:"family,omitzero"`
	Trigger  string            `json:"trigger,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Asking   bool              `json:"asking,omitempty"`
	Text     string            `json:"text,omitempty"`
	Since    time.Time         `json:"since,omitzero"`
	Before   time.Time         `json:"before,omitzero"`
	After    stint.ID          `json:"after,omitzero"`
	Limit    int               `json:"limit,omitempty" minimum:"0"`
}

// Range is [stint.Range].
type Range struct {
	Session stint.ID     `json:"session"`
	After   stint.Seq    `json:"after,omitempty"`
	Until   stint.Seq    `json:"until,omitempty"`
	Kinds   []stint.Kind `json:"kinds,omitempty"`
	Last    bool         `json:"last,omitempty"`
	Limit   int          `json:"limit,omitempty" minimum:"0"`
}

// Entry is [stint.Entry] with all that its hash covers.
type Entry struct {
	Version uint8          `json:"v"`
	Session stint.ID       `json:"session"`
	Seq     stint.Seq      `json:"seq"`
	Epoch   int64          `json:"epoch"`
	Pos     stint.Position `json:"pos"`
	Kind    stint.Kind     `json:"kind"`
	At      time.Time      `json:"at"`
	Actor   stint.Actor    `json:"actor"`
	Cause   stint.Seq      `json:"cause,omitempty"`
	Data    []byte         `json:"data,omitempty"`
	Body    []byte         `json:"body,omitempty"`
	Blob    stint.BlobRef  `json:"blob,omitzero"`
	Salt    [16]byte       `json:"salt"`
	Erased  bool           `json:"erased,omitempty"`
	Commit  stint.Hash     `json:"commit,omitzero"`
	Hash    stint.Hash     `json:"hash"`
}

// Message is [stint.Message] without its To and keys, which are the business of a store's own
// machine.
type Message struct {
	ID   string            `json:"id"`
	Kind stint.MessageKind `json:"kind"`
	From stint.Actor       `json:"from,omitempty"`
	At   time.Time         `json:"at,omitzero"`
	Data []byte            `json:"data,omitempty"`
	Body []byte            `json:"body,omitempty"`
}

// FromMessage returns what is sent of m.
func FromMessage(m *stint.Message) Message {
	return Message{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At, Data: m.Data, Body: m.Body}
}

// Message returns what came.
func (m *Message) Message() stint.Message {
	return stint.Message{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At, Data: m.Data, Body: m.Body}
}

// Key is [stint.Key].
type Key struct {
	Scope   string     `json:"scope"`
	Name    string     `json:"name,omitempty"`
	Digest  stint.Hash `json:"digest,omitzero"`
	Ref     string     `json:"ref,omitempty"`
	Expires time.Time  `json:"expires,omitzero"`
	Source  string     `json:"source,omitempty"`
	At      time.Time  `json:"at,omitzero"`
	Note    []byte     `json:"note,omitempty"`
	Body    []byte     `json:"body,omitempty"`
}

// FromKey returns what is sent of k.
func FromKey(k *stint.Key) Key {
	return Key{k.Scope, k.Name, k.Digest, k.Ref, k.Expires, k.Source, k.At, k.Note, k.Body}
}

// Key returns what came.
func (k *Key) Key() stint.Key {
	return stint.Key{Scope: k.Scope, Name: k.Name, Digest: k.Digest, Ref: k.Ref, Expires: k.Expires, Source: k.Source, At: k.At, Note: k.Note, Body: k.Body}
}

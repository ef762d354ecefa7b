// Package stream tells over HTTP what happens, as Server-Sent Events: the entries of
// one session, and the rows of all. docs/events.md is the contract.
//
// Each event that records something has an id that is good for as long as the store:
// who comes back with it misses nothing and gets nothing twice, whichever process
// serves him then. Of a session that is the place in its journal; of the board it is a
// cursor of the store's feed, see [stint.Watcher].
//
// # One reader, many clients
//
//	store ─ Feed ─► hub: ring of the newest entries ─► client: how far it is
//	                                      └─ Publish ─► client: text of a model, not kept
//
// The hub reads the feed once for everybody. A client has no queue of its own but the
// number of the first entry in the ring that it has not got, so a thousand of them cost
// little more than their connections. One that begins behind the ring reads the store
// itself until it has caught up. One that had caught up and falls behind is sent away:
// with its id it goes on where it was.
package stream

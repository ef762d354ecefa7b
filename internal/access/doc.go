// Package access says who may do what over the network: tokens, scopes and roles, the
// table of routes, the names that a server answers to, and where it may listen. It is
// pure: the time and random bytes are arguments, and a [Keeper] is somebody else's.
// Package guard puts these rules before an HTTP handler.
//
// What is not allowed by a row of the [Table] and a scope of the [Principal] is denied.
// No error, no text form and no stored value of this package holds a usable token.
package access

// Package guard stands before the HTTP handlers of stint and lets in what package access
// allows. A server registers its routes on a [Mux], gives each a row in an access.Table,
// and serves what [Guard.Protect] makes of the two; a handler asks [From] who is there.
//
// Each answer has the headers that keep a browser from making more of it than it is. A
// request passes, in this order:
//
//  1. the names that the server answers to, on every method and route
//  2. the limits of headers, URL and path
//  3. the row of its route: what is not in the table does not exist
//  4. the limit of its body
//  5. the origin of the page that sent it
//  6. who sent it: a bearer token, a cookie, or somebody on the same machine
//  7. the scope of the row
//
// The context of a request that got in ends when its token expires, and within four
// seconds of its revocation; a second later nothing more is written. A response that is
// longer than that is a stream, and whoever reads it has to come back with a live token.
//
// X-Forwarded-For and X-Forwarded-Proto are believed from the proxies that the
// configuration names, and of each only the last value, which the nearest proxy wrote.
// Forwarded, X-Forwarded-Host and X-Real-IP are never believed: a proxy passes Host on.
package guard

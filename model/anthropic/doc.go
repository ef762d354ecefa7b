// Package anthropic is the Messages API: Anthropic's, and what speaks it at another base
// URL. It streams always and retries never; [model.Paced] does that.
//
// # What is the vendor's client's
//
// The request goes through github.com/anthropics/anthropic-sdk-go/v2: its addresses,
// headers, authentication, transport and event types. Its retries are off, and nothing
// is taken from the environment. A middleware keeps the bytes of the response.
//
// Three things go around it, since a case cannot be met through it:
//
//   - The body is written here. The client's encoder compacts embedded JSON and escapes <,
//     > and & in it, so that a call's arguments and a signed thinking block would not go
//     back as they came.
//   - Its Stream drops events that have no "event:" line, which some gateways leave out,
//     and so loses an answer without an error. Events are read with its decoder and take
//     their type from the data when the line is missing.
//   - Its Stream ends alike for an answer that is whole and for one that was cut. Here only
//     message_stop ends one well.
//
// # On the wire
//
// Blank texts of the assistant are left out, for the API refuses them; a message that
// has nothing else is sent as "(no text)". Opaque blocks of other providers and
// models are left out. With Request.Cache the system prompt (or the last tool) and the ends of the two
// newest messages of the user are marked for the prompt cache.
package anthropic

// Package model is the question to a language model and its answer: the vocabulary
// that agents, providers and the journal share. It imports nothing of ours, and no
// provider's types appear in it.
//
// # The shape
//
// A [Model] answers one [Request] at a time and streams. What it returns is whole or an
// [Error]: text that arrived before a stream broke is in Error.Partial, and nowhere
// else. [Paced] shares waiting and concurrency among all users of one provider.
//
//	agent ─► Paced ─► anthropic | openai | script ─► provider
//
// # Messages
//
// A request carries messages that alternate between [User] and [Assistant]. Each call
// that an assistant message makes has exactly one result, and the results stand in
// the order of the calls at the beginning of the next message. [Valid] holds a list of
// messages to that, and every Model asks it before it sends anything; a list that it
// accepts is accepted by the Messages API, by Chat Completions and by Responses.
//
// # Ids of calls
//
// Ids are unique in a request whatever the provider gave: some count from zero in every
// answer, some give none, some give characters that the next provider refuses. A Model
// passes each answer through [Request.Settle] before it returns it, so that a caller
// never renames anything: it appends the answer's message, then one with the results.
//
// # Arguments
//
// [Args] is the text of a call's arguments exactly as the model wrote it. It may be no
// JSON at all. [Args.Check] says whether it may be used, and only then may the tool run.
// The provider that gets the call again later would refuse text that is no object, and
// with it every later request; so [Args.Object] stands in on the wire, an object with the
// one member [Unusable] and the broken text in it. The message itself is not changed.
//
// # JSON
//
// Message, Answer and all that is in them have a stable JSON form, for journals. Text
// that JSON would change (arguments, opaque blocks) is kept as a JSON string, never as
// embedded JSON; arguments that are not UTF-8 become an object with their base64. So
// ten round trips give the bytes of the first.
package model

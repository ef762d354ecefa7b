// Package openai is the two APIs of OpenAI that answer with text, Chat Completions and
// Responses, and what speaks one of them at another base URL: vLLM, Ollama, llama.cpp,
// OpenRouter, gateways. It streams always and retries never; [model.Paced] does that.
//
// # What is the vendor's client's
//
// The request goes through github.com/openai/openai-go/v3: its addresses, headers,
// authentication, transport and event types. Its retries are off, and nothing is taken
// from the environment, which its constructor would do. A middleware keeps the bytes of
// the response.
//
// Three things go around it, since a case cannot be met through it:
//
//   - The body is written here. The client's encoder compacts embedded JSON and escapes <,
//     > and & in it, so that reasoning would not go back as it came.
//   - Its Stream takes "error": null, which gateways write into good chunks, for an error.
//     Events are read with its decoder.
//   - Its Stream ends alike for an answer that is whole and for one that was cut. Here only
//     a finish_reason, or response.completed and response.incomplete, end one well.
//
// # What is tolerated
//
// Of services other than OpenAI's own: no usage; chunks without choices; calls without
// an id, without an index, or all with index 0; arguments that are an object; a
// finish_reason of stop beside calls; no [DONE], if a finish_reason came; a connection
// that stays open after it, for ten seconds.
//
// # On the wire
//
// Opaque blocks go back to the model that made them: reasoning with its encrypted content
// with Responses, where nothing is stored at the provider, and what came beside the text as
// reasoning_content or reasoning with Chat Completions, where open models want to see it
// again while they call tools. An assistant's message that has nothing to send is
// sent as "(no text)". Request.Stop is not sent with Responses, which has no such thing.
// The bound of the answer is max_completion_tokens at OpenAI, and max_tokens at any
// other base URL, where the new name is often unknown; Options.OldMaxTokens decides else.
package openai

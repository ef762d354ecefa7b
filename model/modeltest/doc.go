// Package modeltest holds what a [model.Model] is tested with: [Server], a loopback
// service that speaks the Messages API, Chat Completions and Responses from a script and
// is as strict about what it is sent as the strictest of the real ones; and [Test], the
// suite that every Model over HTTP must pass. Models from elsewhere can use both.
//
// # Scenarios
//
// A scenario is JSON: {"steps":[…], "after":"repeat_last"}. Step k answers the k-th valid
// request; after the last one every answer is the text "done", or the last step again.
// With "by":"turn" step k answers a request with k answers in it. A {n} in the id of a call
// is the number of the request.
//
//	{"text":"…"}                                     a text, then the end of the turn
//	{"tools":[{"id":"t1","name":"n","input":{…}}]}   calls; "args_raw":"…" is argument text as it is
//	{"text":…,"tools":…,"stop":"max_tokens"}         the Messages API's word for why it ended
//	{"status":429,"headers":{…},"body":…}            no answer; "etype" names the error's type
//	{"inside":"overloaded_error"}                    an error in a stream that began well
//	{"cut":true,…}                                   the stream ends before its end
//	{"stall":true,…}                                 it stays open there and says nothing
//	{"linger":true,…}                                it stays open after what makes the answer whole
//	{"hang":true}                                    nothing comes at all
//	{"sse_file":"x.sse"}                             these bytes, then the end
//	{"usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":2}}
package modeltest

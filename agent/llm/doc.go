// Package llm is a language model with tools, as an agent.
//
// # One loop
//
// A loop is one call of the model and then, as one group and in the order of the answer,
// the calls that it asked for:
//
//	messages ─► model step ─► calls, one group of steps ─► results ─► next loop
//
// What a loop does follows from the state, the inbox and the recorded steps alone, so one
// that is begun again asks for the same steps in the same order. The input of a model
// step is {"messages":N,"sha256":…}, the hash of the request's JSON without its session:
// it stays small, and it tells whether the same was asked.
//
// # The state
//
// A JSON object. Its last member is the transcript, an array of [model.Message] that only
// grows at its end until it is compacted; before it stand the few small members that
// change. So what a loop adds to the store is about what was said in it.
//
// # Calls and results
//
// Every call has one result, in the order of the calls, in the same loop. A call that is
// not executed (its tool is unknown, its arguments cannot be used, the answer was cut) is
// a step too, of class read, that ends with a definite error: the text that the model
// gets. What the journal says of a call is what the model reads, whole or as a marked
// excerpt; with the first excerpt the tool read_result is offered for the rest.
//
// # Ends
//
// When the model ends its turn the session completes with {"text":…}, unless a tool
// finish, a [Rubric] or Spec.Interactive says otherwise. Three answers in a row that the
// output limit cut, three ends of turn in a row without finish, and a refusal end it as
// failed. Faults of the model that pass are tried again, the others fail the session.
package llm

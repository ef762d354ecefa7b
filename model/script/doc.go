// Package script is a model that plays a file: deterministic answers for tests, demos and
// work offline, without HTTP. It is as strict about what it is asked as the real services.
//
// # Which step answers
//
// Step k answers a request that has k answers in it, counted from 0: the position in the
// messages decides, and no counter. So a session that is killed and begun again, or begun
// again from an earlier loop, gets the answers that it got, and any number of sessions use
// one Model at once. Where an agent shortens its messages, the answers that are left count.
//
// # The file
//
// A file is one JSON object. Members that are not listed are refused.
//
//	{
//	  "model": "demo",                  what Name returns; default "script"
//	  "after": "end",                   after the last step: "end" (default) answers "done",
//	                                    "repeat" the last step again, "fail" is an error
//	  "steps": [{
//	    "text": "I look.",              what the model says; a step without tools says "ok"
//	    "thought": "hm",                heard as thinking, and no part of the answer
//	    "tools": [{"name": "read", "input": {"path": "a"}, "id": "t1"}],
//	                                    its calls; input goes out byte for byte; "args": "{\"a"
//	                                    in its place is any text; an id may be missing
//	    "stop": "length",               a model.Stop; default "tools" with tools, else "end"
//	    "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0},
//	                                    default: a quarter of the bytes asked and answered
//	    "delay": "1.5s",                before the answer
//	    "error": {"kind": "rate", "message": "slow down", "after": "2s", "times": 2}
//	                                    in place of the answer: a model.Kind; with times only the
//	                                    first so many requests at this position, per session and
//	                                    process, which is the one thing that is counted
//	  }]
//	}
package script

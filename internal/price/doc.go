// Package price says what tokens cost. Its table is a file in the binary with a version,
// which is recorded with each amount, so that an amount is never worked out anew. A file
// of the user's adds models and replaces prices.
//
// # The file
//
//	{
//	  "version": "mine-1",              recorded with each amount; 1 to 40 characters
//	  "date": "2026-11-29",             when the prices were looked up
//	  "models": [{
//	    "names": ["claude-opus-5-5", "my-*"],
//	    "input": "4", "output": "20",   US dollars per million tokens
//	    "cache_read": "0.20",           default: as input
//	    "cache_write": "5",             default: as input
//	    "long": {"over": 272000, "input": "8", "output": "30"}
//	                                    prices of the whole request when its prompt, with what
//	                                    came from a cache, has more tokens than that
//	  }]
//	}
//
// A name is that of a model, which a date or -latest may follow, or a pattern in which *
// stands for anything. A name wins over a pattern, and of patterns the one with the most
// other characters. The user's file wins over the table of the binary. [Set] and [Unset]
// change such a file; what else is in it stays, but for white space.
package price

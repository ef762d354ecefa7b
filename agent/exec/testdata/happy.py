from talk import say, hear, effect

loop = hear()
say({"type": "progress", "text": "reading the invoice"})
say({"type": "step", "id": 7, "name": "charge", "kind": "tool", "effect": "once", "input": {"invoice": 2512292042121000001}})
go = hear()
assert go["type"] == "proceed" and go["id"] == 7, go
effect("charge " + go["key"])
say('{"type":"result","id":7,"result":{"paid":12345678901234567890.10},"usage":{"input_tokens":10,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"cost":"0.21"}}')
say({"type": "log", "level": "warn", "text": "the card expires soon\nask for another"})
say({"type": "step", "id": 8, "name": "mail"})
go = hear()
say({"type": "result", "id": 8, "error": "mailbox full", "definite": True})
say({"type": "state", "patch": {"paid": [7], "open": None}})
say({"type": "end", "outcome": "complete", "reason": "invoice paid", "headline": "1 paid", "result": {"ok": True}, "extra": "ignored"})
hear()

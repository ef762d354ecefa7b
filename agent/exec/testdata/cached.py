import sys
from talk import say, hear, effect

loop = hear()
say({"type": "step", "id": 1, "name": "charge", "effect": "once", "input": {"n": 1}})
m = hear()
if m["type"] == "proceed":
    effect("charge " + m["key"])
    say({"type": "result", "id": 1, "result": {"paid": 1}})
say({"type": "step", "id": 2, "name": "mail", "effect": "once"})
m = hear()
if m["type"] == "proceed":
    effect("mail " + m["key"])
    say({"type": "result", "id": 2, "error": "mailbox full", "definite": True})
say({"type": "steps", "steps": [{"id": 3, "name": "a", "effect": "idempotent"}, {"id": 4, "name": "b", "effect": "idempotent"}]})
for m in sorted([hear(), hear()], key=lambda m: m["id"]):
    if m["type"] == "proceed":
        effect("group " + m["key"])
        if m["id"] == 3:
            say({"type": "result", "id": 3, "result": 3})
        else:
            say({"type": "result", "id": 4, "error": "no b", "definite": True})
if loop["attempt"] == 1:
    sys.exit("the first attempt dies here")
say({"type": "end", "outcome": "complete"})
hear()

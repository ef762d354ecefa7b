from talk import say, hear, effect

hear()
say({"type": "state", "patch": {"seen": 1}})
say({"type": "step", "id": 1, "name": "look", "effect": "read"})
hear()
say({"type": "result", "id": 1, "result": "two invoices"})
say({"type": "step", "id": 2, "name": "charge", "kind": "tool", "effect": "once"})
m = hear()
if m["type"] == "proceed":
    effect("charge " + m["key"])
hear()

from talk import say, hear, effect

hear()
say({"type": "steps", "steps": [
    {"id": 8, "name": "weather", "kind": "tool", "effect": "read", "input": {"city": "Bonn"}},
    {"id": 9, "name": "mail", "kind": "tool", "effect": "idempotent"},
    {"id": 5, "name": "model", "kind": "model", "effect": "read"},
]})
keys = {}
for _ in range(3):
    m = hear()
    assert m["type"] == "proceed", m
    keys[m["id"]] = m["key"]
for i in (5, 9, 8):
    effect(keys[i])
    say({"type": "result", "id": i, "result": i * 10})
say({"type": "step", "id": 10, "name": "sum"})
hear()
say({"type": "result", "id": 10, "result": 220})
say({"type": "end", "outcome": "continue", "headline": "three answers"})
hear()

from talk import say, hear

hear()
say({"type": "spawn", "id": 1, "agent": "worker", "name": "part-1", "input": {"n": 1}, "labels": {"of": "a"}, "limits": {"loops": 3, "cost": "0.50"}})
child = hear()
say({"type": "spawn", "id": 2, "agent": "none", "input": "a text", "detach": True})
hear()
say({"type": "step", "id": 3, "name": "look", "effect": "read"})
hear()
say({"type": "result", "id": 3, "result": 1})
say({"type": "end", "outcome": "wait", "wait": {"for": "child", "session": child["result"]["session"], "what": "the first part"}})
hear()

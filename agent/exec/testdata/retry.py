from talk import say, hear

hear()
say({"type": "step", "id": 1, "name": "fetch", "kind": "tool", "effect": "read"})
hear()
say({"type": "result", "id": 1, "error": "429 too many requests", "retry_after_ms": 1500})
say({"type": "end", "outcome": "fail", "reason": "the service is busy", "retry_after_ms": 60000})
hear()

import os
from talk import say, hear

loops = 0
while True:
    m = hear()
    if m is None:
        break
    loops += 1
    say({"type": "step", "id": 1, "name": "count", "effect": "read"})
    hear()
    say({"type": "result", "id": 1, "result": loops})
    say({"type": "state", "patch": {"loops": loops}})
    if loops < 3:
        say({"type": "end", "outcome": "continue"})
    else:
        say({"type": "end", "outcome": "wait", "wait": {"for": "message", "what": "another invoice"}})

"""Fetches something random and adds a note to its state, once a loop."""
import json
import random

import stint_agent as stint

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"


def loop(ctx):
    state = ctx.state or {"notes": []}
    for message in ctx.inbox:
        state["marks"] = message.json
    size = state["marks"]["bytes"]
    got = ctx.step("fetch", lambda: "".join(random.choices(LETTERS, k=size)), effect="read")
    state["notes"].append(got[:100])
    ctx.patch(state)
    if ctx.loop in state["marks"]["at"]:
        return stint.Wait.for_message(str(ctx.loop))
    return stint.Continue()


stint.main(loop)

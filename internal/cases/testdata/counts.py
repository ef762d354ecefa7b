"""Does as many steps as its argument says, in 25 loops or in some of a hundred, whatever it
was begun with, and ends with how many bytes that had."""
import sys

import stint_agent as stint

total = int(sys.argv[1])


def loop(ctx):
    state = ctx.state or {"done": 0, "bytes": sum(len(m.bytes) for m in ctx.inbox)}
    n = min(max(100, total // 25), total - state["done"])
    for i in range(n):
        ctx.step("count", lambda i=i: i, input=i, effect="read")
    state["done"] += n
    ctx.replace(state)
    return stint.Complete(result=state) if state["done"] == total else stint.Continue()


stint.main(loop)

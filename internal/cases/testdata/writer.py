"""Applies one of the writes in its second argument to its state a loop, as a patch
or as the whole new state. What it sees of the state is the result of a step."""
import json
import sys

import stint_agent as stint

how, writes = sys.argv[1], json.loads(sys.argv[2])


def loop(ctx):
    fresh = ctx.loop == 1
    saw = ctx.step("saw", lambda: "nothing" if fresh else ctx.state, effect="read")
    if ctx.loop > len(writes):
        return stint.Complete(result=saw)
    getattr(ctx, how)(writes[ctx.loop - 1])
    return stint.Continue()


stint.main(loop)

"""Begins with the state in its first argument. In the second loop each branch of the
second argument is a member of a group, and then writes the state as it says."""
import json
import sys

import stint_agent as stint

start, branches = json.loads(sys.argv[1]), json.loads(sys.argv[2])


def loop(ctx):
    if ctx.state is None:
        ctx.replace(start)
        return stint.Continue()
    values = ctx.group([stint.Call("branch", lambda b=b: b["value"], effect="read") for b in branches])
    for branch, value in zip(branches, values):
        getattr(ctx, branch["how"])(value, by=branch["by"])
    return stint.Complete()


stint.main(loop)

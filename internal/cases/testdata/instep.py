"""Changes its state in the function of a step, as its first argument says, dies, and
is begun again with that step answered from the journal."""
import os
import sys

import stint_agent as stint

how, where = sys.argv[1], sys.argv[2]


def loop(ctx):
    def count():
        try:
            getattr(ctx, how)({"n": 1})
            return "written"
        except RuntimeError as e:
            return str(e)

    if where == "group":
        said = ctx.group([stint.Call("count", count, effect="read")])[0]
    else:
        said = ctx.step("count", count, effect="read")
    if ctx.attempt == 1:
        os._exit(9)
    if where == "after":
        ctx.patch({"n": 1})
    return stint.Complete(result=said)


stint.main(loop)

"""Waits for a state, adds to its integers, and tries to write it back as Python has
read it."""
import stint_agent as stint


def loop(ctx):
    if ctx.state is None:
        return stint.Wait.for_message("a state")
    added = ctx.step("add", lambda: [ctx.state["big"] + 1, ctx.state["odd"] + 1], effect="read")
    try:
        ctx.replace(ctx.state)
        error = ""
    except ValueError as e:
        error = str(e)
    ctx.patch(dict(zip(("big", "odd"), added)))
    return stint.Complete(result={"raw": ctx.raw_state, "error": error})


stint.main(loop)

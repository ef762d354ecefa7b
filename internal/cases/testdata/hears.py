"""Listens for ever. Its state has, in order, the id in each message that it was given,
and the number of messages of each of its loops."""
import stint_agent as stint


def loop(ctx):
    state = ctx.state or {"heard": [], "loops": []}
    ctx.replace(
        {
            "heard": state["heard"] + [m.json["id"] for m in ctx.inbox],
            "loops": state["loops"] + [len(ctx.inbox)],
        }
    )
    return stint.Wait.for_message("the next event")


stint.main(loop)

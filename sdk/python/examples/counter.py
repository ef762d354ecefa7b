"""Counts to the number in the prompt, or to 10, one loop a number.

Kill it at any moment: it goes on from the last number that its state holds.
"""

import stint_agent as stint


def loop(ctx: stint.Loop) -> stint.Next:
    state = ctx.state or {"n": 0, "to": 10}
    for message in ctx.inbox:
        state["to"] = int(message.text)
    state["n"] += 1
    ctx.replace(state)
    if state["n"] >= state["to"]:
        return stint.Complete(result=state["n"], reason="counted")
    return stint.Continue(headline=f"{state['n']} of {state['to']}")


if __name__ == "__main__":
    stint.main(loop)

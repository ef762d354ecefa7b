"""Sends a mail: a line in the ledger that is its second argument, with the key that
it was sent under. The first argument is the effect of the step."""
import sys

import stint_agent as stint

effect, ledger = sys.argv[1:]


def send(key):
    with open(ledger, "a") as f:
        f.write(key + "\n")
    return "sent"


def loop(ctx):
    return stint.Complete(result=ctx.step("send", send, effect=effect))


stint.main(loop)

"""Sleeps in a step, waits for a person, and sleeps in a longer one. The arguments are
both times in seconds; with 0 as the first it does not wait."""
import sys
import time

import stint_agent as stint

first, slow = map(float, sys.argv[1:])


def loop(ctx):
    if ctx.loop == 1 and first:
        ctx.step("prepare", lambda: time.sleep(first), effect="read")
        return stint.Wait.for_message("may I?")
    ctx.step("slow", lambda: time.sleep(slow), effect="read")
    return stint.Complete()


stint.main(loop)

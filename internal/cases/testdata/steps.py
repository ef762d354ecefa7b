"""Does 200 steps in a loop. Before each it moves the clock that is a file to the next
of the times in its second argument."""
import os
import sys

import stint_agent as stint

clock, times = sys.argv[1], sys.argv[2].split(",")


def loop(ctx):
    for i in range(200):
        with open(clock + ".agent", "w") as f:
            f.write(times[i])
        os.replace(clock + ".agent", clock)
        ctx.step("count", lambda i=i: i, effect="read")
    return stint.Complete()


stint.main(loop)

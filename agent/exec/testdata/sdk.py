"""An agent with the Python SDK, for the other side of it: agent/exec itself."""
import os
import sys

import stint_agent as stint


def count(line):
    with open(os.environ["EFFECTS"], "a") as f:
        f.write(line + "\n")


def clerk(ctx):
    found = ctx.step("find", lambda: {"cents": 2100}, input=ctx.inbox[0].text, effect="read")
    ctx.step("charge", lambda key: count("charge " + key), input=found)
    parts = ctx.group([
        stint.Call(name, lambda key: stint.Result(key, stint.Usage(7, 1, 0, 0, "0.5")), effect="idempotent", kind="model")
        for name in ("a", "b", "c")
    ])
    try:
        ctx.step("mail", refuse)
    except stint.StepError as e:
        ctx.log(str(e), "warn")
    if ctx.attempt == 1:
        os._exit(9)
    ctx.patch({"paid": True, "old": None})
    return stint.Complete(result=parts, reason="paid", headline="1 paid")


def refuse():
    count("mail")
    raise stint.Definite("mailbox full")


def counter(ctx):
    n = (ctx.state or 0) + 1
    ctx.replace(n)
    ctx.log(f"process {os.getpid()}")
    return stint.Continue() if n < 3 else stint.Wait.for_message("more")


def doubt(ctx):
    def drop():
        raise OSError("connection lost")
    ctx.step("pay", drop)


def busy(ctx):
    def drop():
        raise stint.Retry(2, "busy")
    ctx.step("ask", drop, effect="read")


if __name__ == "__main__":
    stint.main(globals()[sys.argv[1]])

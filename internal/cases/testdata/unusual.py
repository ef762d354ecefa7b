"""Leaves a checkpoint, and then writes what JSON does not have: with the argument
"caught" all of it, one after another, and otherwise a set, as the argument says."""
import datetime
import decimal
import sys

import stint_agent as stint

HUGE = 1234567890123456789012345678901234567890
how = sys.argv[1]


def values():
    cyclic = {}
    cyclic["self"] = cyclic
    return {
        "date": datetime.date(2026, 3, 1),
        "bytes": b"\x00\xff",
        "set": {1, 2},
        "function": values,
        "decimal": decimal.Decimal("0.1"),
        "nan": float("nan"),
        "cyclic": cyclic,
        "key": {3: 4},
        "half": "a\ud800",
    }


def deep(value):
    return {"jobs": [1, 2, 3, {"done": value}]}


def write(ctx, how, value):
    if how == "result":
        ctx.step("make", lambda: value)
    elif how == "input":
        ctx.step("make", lambda: 1, input=value)
    else:
        getattr(ctx, how)(value)


def loop(ctx):
    if ctx.state is None:
        ctx.replace({"n": 1})
        return stint.Continue()
    if how != "caught":
        write(ctx, how, deep({1}))
        return stint.Complete()
    ctx.patch({"before": True})
    said = {}
    for name, value in values().items():
        for way in ("patch", "replace", "input", "result"):
            try:
                write(ctx, way, deep(value))
            except (TypeError, ValueError, stint.StepError) as e:
                said[f"{way} {name}"] = f"{type(e).__name__}: {e}"
    ctx.step("keep", lambda: (HUGE, -HUGE), input=HUGE)
    ctx.patch({"huge": HUGE, "tuple": (1, 2), "text": datetime.date(2026, 3, 1).isoformat()})
    return stint.Complete(result=said)


stint.main(loop)

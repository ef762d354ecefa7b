"""The agents that the tests start: python agents.py NAME."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from typing import Callable

import stint_agent as stint


def refund(ctx: stint.Loop) -> stint.Next:
    order = ctx.inbox[0].text.split()[-1]
    ctx.progress(f"looking up {order}")
    found = ctx.step("order", lambda: {"cents": 2100}, input=order, effect="read")
    charge = {"order": order, "cents": found["cents"]}
    ctx.step("refund", lambda key: {"receipt": "r-991"}, input=charge, effect="once")
    ctx.patch({"refunded": ctx.state["refunded"] + [order]})
    return stint.Wait.for_message("the next order", headline=f"refunded {order}")


def group(ctx: stint.Loop) -> stint.Next:
    got = ctx.group(
        [
            stint.Call("a", lambda: "never run", {"n": 1}, "read"),
            stint.Call("b", lambda key: key[:4], None, "idempotent"),
            stint.Call("c", lambda: stint.Result([1, 2], stint.Usage(12, 3, 0, 0, "0.21")), effect="read", kind="model"),
        ]
    )
    return stint.Complete(result=got)


def spawn(ctx: stint.Loop) -> stint.Next:
    ended = [m.child for m in ctx.inbox if m.child is not None]
    if ended:
        return stint.Complete(result={"child": ended[0].name, "outcome": ended[0].outcome, "said": ctx.inbox[0].json})
    try:
        ctx.spawn("none")
    except stint.StepError as e:
        ctx.log(str(e))
    child = ctx.spawn("worker", {"part": "100%"}, name="part-1", labels={"of": "a"}, limits={"loops": 3})
    ctx.spawn("worker", "as text", detach=True)
    return stint.Wait.for_child(child, "the first part")


def group_parked(ctx: stint.Loop) -> stint.Next:
    try:
        ctx.group([stint.Call(name, lambda: 1, effect="once") for name in ("a", "b", "c")])
    except stint.Parked as e:
        ctx.log(f"parked: {e.reason}", "warn")
        raise
    return stint.Fail("not parked")


def together(ctx: stint.Loop) -> stint.Next:
    both = threading.Barrier(2)
    ctx.group([stint.Call(name, lambda: both.wait(20) and None, effect="read") for name in ("a", "b")])
    return stint.Complete()


def group_errors(ctx: stint.Loop) -> stint.Next:
    def bad(what: str) -> None:
        raise OSError(what)

    def slow() -> int:
        """Is still at it when the loop's thread has all answers."""
        return subprocess.run([sys.executable, "-c", ""], check=True).returncode + 1

    try:
        ctx.group(
            [
                stint.Call("a", slow, effect="read"),
                stint.Call("b", lambda: bad("second"), effect="read"),
                stint.Call("c", lambda: bad("third"), effect="read"),
            ]
        )
    except OSError as e:
        print("caught", e)
        return stint.Complete(reason=str(e))
    return stint.Fail("no error")


def state(ctx: stint.Loop) -> stint.Next:
    ctx.patch({"n": ctx.state["n"] + 1, "who": "Zoë 🚲"})
    ctx.patch({"jobs": {"7": {"done": True}}}, by="worker-7")
    ctx.patch({"old": None}, by="worker-8")
    return stint.Continue()


def replace(ctx: stint.Loop) -> stint.Next:
    ctx.replace(None, by="writer")
    ctx.replace({"n": ctx.state["n"], "raw": ctx.raw_state, "list": (1, 2.5, -0.0)}, by="writer")
    ctx.patch({"n": "x"}, by="writer")
    return stint.Continue()


def keep(ctx: stint.Loop) -> "stint.Next | None":
    n = (ctx.state or {"n": 0})["n"] + 1
    ctx.step("count", lambda: n, effect="read", kind="step")
    ctx.patch({"n": n})
    if n == 1:
        return None
    return stint.Continue(headline=f"{n} of 3") if n < 3 else stint.Complete(result={"n": n}, reason="counted")


def outcome(ctx: stint.Loop) -> stint.Next:
    what = ctx.inbox[0].text
    noon = datetime(2026, 3, 2, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    if what == "retry":
        raise stint.Retry(1.5, "rate limited")
    if what == "raise":
        raise LookupError("no such order")
    if what == "wrong":
        return {"n": 1}  # type: ignore[return-value]
    if what == "bad result":
        return stint.Complete(result={"jobs": [{"done": {1}}]})
    return {
        "wait-time": stint.Wait.until(noon, "office hours"),
        "wait-message": stint.Wait.for_message("a word", until=noon + timedelta(microseconds=1500)),
        "complete": stint.Complete(result=[1, None], reason="done", headline="all done"),
        "complete-bare": stint.Complete(),
        "fail": stint.Fail("no access", result={"code": 403}),
    }[what]


def errors(ctx: stint.Loop) -> stint.Next:
    def drop() -> None:
        raise OSError("connection reset")

    def refuse(key: str) -> None:
        raise stint.Definite("card declined")

    seen = []
    try:
        ctx.step("fetch", drop, effect="read")
    except OSError as e:
        seen.append(f"{type(e).__name__}: {e}")
    for name in ("charge", "charge again"):
        try:
            ctx.step(name, refuse)
        except stint.StepError as e:
            seen.append(f"{e.step}: {e}")
    ctx.log("\n".join(seen), level="error")
    return stint.Fail("nothing worked")


def final(ctx: stint.Loop) -> None:
    def refuse() -> None:
        raise stint.Definite("account closed", final=True)

    ctx.step("charge", refuse)


def retry(ctx: stint.Loop) -> None:
    def busy() -> None:
        raise stint.Retry(0.25, "busy")

    ctx.step("ask", busy, effect="idempotent")


def doubt(ctx: stint.Loop) -> stint.Next:
    def drop() -> None:
        raise TimeoutError

    try:
        ctx.step("pay", drop)
    except TimeoutError:
        pass
    ctx.step("pay otherwise", drop)
    return stint.Complete()


def swallow(ctx: stint.Loop) -> stint.Next:
    """Catches all it can, which must not get past a park."""
    for _ in range(3):
        try:
            ctx.step("buy", lambda: 1)
        except BaseException as e:
            print("caught", type(e).__name__)
    return stint.Complete(reason="went on")


def polite(ctx: stint.Loop) -> stint.Next:
    """What an ordinary agent does about exceptions."""
    try:
        ctx.step("buy", lambda: 1)
    except Exception:
        pass
    finally:
        print("cleaned up")
    return stint.Complete(reason="went on")


def noise(ctx: stint.Loop) -> stint.Next:
    print('{"type":"end","outcome":"complete"}')
    print("to sys.stderr", file=sys.stderr)
    sys.stdout.write("to sys.stdout\n")
    sys.__stdout__.write("to the first sys.stdout\n")
    sys.__stdout__.flush()
    # The child writes to descriptor 1 and would eat stint's next line from 0.
    child = "import sys; print('child got', repr(sys.stdin.read()), flush=True)"
    ctx.step("child", lambda: subprocess.run([sys.executable, "-c", child], check=True).returncode, effect="read")
    return stint.Complete(result=sys.stdin.read())


def bad_values(ctx: stint.Loop) -> stint.Next:
    loop_in_itself: list = []  # type: ignore[type-arg]
    loop_in_itself.append(loop_in_itself)
    ctx.patch({"kept": 1})
    values: "list[dict[str, object]]" = [{"jobs": [0, {"done": {3}}]}, {"at": datetime(2026, 3, 2)}, {"x": loop_in_itself}, {"name": "\udcff"}]
    for value in values:
        for write in (ctx.patch, ctx.replace):
            try:
                write(value)
            except (TypeError, ValueError) as e:
                ctx.log(f"{type(e).__name__}: {e}", "debug")
    ctx.patch({"kept": 2})
    try:
        ctx.step("send", lambda: 1, input={"raw": b"x"})
    except TypeError as e:
        ctx.log(str(e))
    try:
        ctx.step("list", lambda: {"found": {1, 2}}, effect="read")
    except stint.StepError as e:
        ctx.log(str(e), "warn")
    return stint.Complete()


def misuse(ctx: stint.Loop) -> stint.Next:
    def inner() -> object:
        return ctx.step("inner", lambda: 1)

    calls: "list[Callable[[], object]]" = [
        lambda: ctx.step("", lambda: 1),
        lambda: ctx.step("n" * 201, lambda: 1),
        lambda: ctx.step("a", lambda: 1, kind="tools"),
        lambda: ctx.step("a", lambda: 1, effect="often"),
        lambda: ctx.step("a", 1),  # type: ignore[arg-type]
        lambda: ctx.step("a", lambda x, y: 1),
        lambda: ctx.group(["a"]),  # type: ignore[list-item]
        lambda: ctx.group([stint.Call("a", lambda: 1)] * 1001),
        lambda: ctx.patch([1]),  # type: ignore[arg-type]
        lambda: ctx.patch({}, by=1),  # type: ignore[arg-type]
        lambda: ctx.log("a", "loud"),
        lambda: ctx.step("outer", inner, effect="read"),
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except (TypeError, ValueError, RuntimeError) as e:
            refused += 1
            print(e)
    return stint.Complete(result=refused == len(calls), reason=str(ctx.group([])))


late = threading.Event()
told = threading.Event()


def straggler(ctx: stint.Loop) -> stint.Next:
    """Leaves a thread behind that uses a loop after its end."""

    def use() -> None:
        late.wait(20)
        try:
            ctx.log("too late")
        except RuntimeError as e:
            print(e)
        told.set()

    if ctx.loop == 1:
        threading.Thread(target=use).start()
        return stint.Continue()
    late.set()
    told.wait(20)
    return stint.Complete()


def mirror(ctx: stint.Loop) -> stint.Next:
    """Says what it was given."""
    s = ctx.session
    return stint.Complete(
        result={
            "session": [s.id, s.name, s.agent, dict(s.labels)],
            "position": [ctx.line, ctx.loop, ctx.attempt, ctx.epoch],
            "raw_state": ctx.raw_state,
            "state": ctx.state,
            "inbox": [
                [m.id, m.kind, m.sender, m.at.isoformat(), m.text, list(m.bytes), m.json if m.is_json else "none"]
                for m in ctx.inbox
            ],
        }
    )


def shape(ctx: stint.Loop) -> stint.Next:
    """Tells what a step returned when it ran."""
    got = ctx.step("shape", lambda: {"a": (1, 2)}, effect="read")
    return stint.Complete(result=type(got["a"]).__name__)


def quits(ctx: stint.Loop) -> stint.Next:
    sys.exit(3)


def chatty(ctx: stint.Loop) -> stint.Next:
    ctx.log("x" * (600 << 10))
    ctx.log("")
    ctx.progress("p" * 500 + "\udcff")
    ctx.log("name \udcff")
    return stint.Complete()


if __name__ == "__main__":
    if sys.argv[1] == "noise":
        print("before main")
    stint.main(globals()[sys.argv[1]])

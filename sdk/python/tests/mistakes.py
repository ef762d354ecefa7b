"""What people do wrong, or not quite as it was meant: python mistakes.py NAME."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

import stint_agent as stint


class Mute(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


async def fetch() -> int:
    return 1


def raises(e: BaseException) -> Callable[[], object]:
    def fn() -> object:
        raise e

    return fn


def within(ctx: stint.Loop) -> "Dict[str, Callable[[], object]]":
    """What a step's function does."""

    def elsewhere() -> None:
        """The same from a thread that the step started."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ctx.patch, {"a": 1}).result()

    def forked() -> None:
        pid = os.fork()
        if pid == 0:
            try:
                ctx.log("from the child")
            except RuntimeError as e:
                print(e, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)

    return {
        "patch": lambda: ctx.patch({"a": 1}),
        "replace": lambda: ctx.replace({"a": 1}),
        "patch elsewhere": elsewhere,
        "step": lambda: ctx.step("inner", lambda: 1),
        "group": lambda: ctx.group([stint.Call("inner", lambda: 1)]),
        "exit": lambda: sys.exit(3),
        "exit with a text": lambda: sys.exit("no access"),
        "interrupt": raises(KeyboardInterrupt()),
        "parks": raises(stint.Parked("later")),
        "mute": raises(Mute()),
        "blank": raises(ValueError("\n  \n")),
        "undecodable": raises(OSError("no file \udcff")),
        "many lines": raises(stint.Definite("declined\n  by the bank")),
        "no word": raises(stint.Definite("\n")),
        "long": raises(stint.Definite("é" * (40 << 10))),
        "generator": lambda: (n for n in (1, 2)),
        "coroutine": lambda: fetch(),
        "nan": lambda: {"rate": float("nan")},
        "keys": lambda: {1: "a"},
        "surrogate": lambda: {"name": "\ud800"},
        "huge": lambda: "x" * (32 << 20),
        "exception": lambda: ValueError("returned"),
        "next": lambda: stint.Continue(),
        "prints": lambda: print("for people"),
        "main": lambda: stint.main(lambda ctx: None),
        "forks": forked,
        "awaits": lambda: asyncio.run(fetch()),
    }


def step(ctx: stint.Loop) -> stint.Next:
    """Does one of those in a step, tells what became of it, and ends well."""
    what = ctx.inbox[0].text
    try:
        got = ctx.step("act", within(ctx)[what], effect="read")
    except Exception as e:
        got = f"{type(e).__name__}: {e}"
    return stint.Complete(result=got)


def step_of_group(ctx: stint.Loop) -> stint.Next:
    """The same, as a member of a group."""
    what = ctx.inbox[0].text
    try:
        got = ctx.group([stint.Call("act", within(ctx)[what], effect="read"), stint.Call("other", lambda: 2, effect="read")])
    except Exception as e:
        got = [f"{type(e).__name__}: {e}"]
    return stint.Complete(result=got[0])


def outside(ctx: stint.Loop) -> "Dict[str, Callable[[], object]]":
    """What a loop does between its steps."""

    def in_thread(fn: Callable[[], object]) -> object:
        caught: List[BaseException] = []

        def run() -> None:
            try:
                fn()
            except Exception as e:
                caught.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for e in caught:
            raise e
        return "fine"

    def fork() -> object:
        pid = os.fork()
        if pid == 0:
            return stint.Continue()
        os.waitpid(pid, 0)
        return "fine"

    def changed() -> object:
        ctx.state["n"] += 1
        return "fine"

    def written() -> object:
        ctx.state["n"] += 1
        ctx.replace(ctx.state)
        return "fine"

    def park() -> object:
        raise stint.Parked("later")

    def interrupted() -> object:
        # Whoever began the tests in the background may have had this signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        return "fine"

    def names() -> object:
        return [ctx.step("same", lambda i=i: i, effect="read") for i in range(2)]

    return {
        "step in a thread": lambda: in_thread(lambda: ctx.step("a", lambda: 1)),
        "patch in a thread": lambda: in_thread(lambda: ctx.patch({"a": 1})),
        "called too early": lambda: ctx.step("a", time.time()),  # type: ignore[arg-type]
        "async": lambda: ctx.step("a", fetch),
        "wants its input": lambda: ctx.step("a", lambda url: url, input="https://example.org"),
        "group of pairs": lambda: ctx.group([("a", lambda: 1)]),  # type: ignore[list-item]
        "group of a generator": lambda: ctx.group(stint.Call(n, lambda: 1, effect="read") for n in ("a", "b")),
        "same name": names,
        "changes the state": changed,
        "changes and writes": written,
        "forks": fork,
        "parks itself": park,
        "interrupted": interrupted,
        "asks people": lambda: input("sure? "),
        "class": lambda: stint.Continue,
        "coroutine": lambda: fetch(),
        "text": lambda: "done",
    }


def loop(ctx: stint.Loop) -> stint.Next:
    got: Any = outside(ctx)[ctx.inbox[0].text]()
    return stint.Complete(result=got) if got == "fine" or isinstance(got, list) else got


async def wrong(ctx: stint.Loop) -> stint.Next:
    return stint.Complete()


if __name__ == "__main__":
    if sys.argv[1] == "called":
        stint.main(stint.Complete())  # type: ignore[arg-type]
    if sys.argv[1] == "twice":
        stint.main(loop)
        stint.main(loop)
    stint.main(globals()[sys.argv[1]])

"""The life of an agent process: one loop after another until stdin ends."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from typing import Any, Callable, Dict, Optional

from . import _json
from ._errors import Parked, ProtocolError, Retry
from ._loop import Loop
from ._types import Continue, Next, _end, _line
from ._wire import Wire, take_over

VERSION = 1
"""The version of the protocol that is spoken here."""


def main(loop: Callable[[Loop], Optional[Next]]) -> None:
    """Serve stint: run loop for each ``loop`` message, and return when stdin ends.

    Call it once, and early: it takes over stdin and stdout, so that print() and the
    output of child processes go to stderr, which is the session's log. An exception
    out of loop ends the process with status 1 and a traceback on stderr; stint
    tries the loop again. Of that, ``Retry`` says when.
    """
    _check(loop)
    wire = take_over()
    try:
        while True:
            got = wire.recv()
            if got is None:
                return
            _serve(wire, loop, *got)
    except (Parked, ProtocolError) as e:
        _leave(wire.broken or str(e))


def _serve(wire: Wire, loop: Callable[[Loop], Optional[Next]], message: Dict[str, Any], text: str) -> None:
    ctx = _open(wire, message, text)
    end: Optional[str] = None
    try:
        end = _ending(loop(ctx))
        if ctx._lost_change():
            ctx.log("ctx.state was changed, and that is not kept; call ctx.replace(ctx.state), or ctx.patch", "warn")
    except Parked:
        if ctx._parked is None and wire.broken is None:
            traceback.print_exc()
            ctx._finish(None)
            _leave("the program raised Parked itself; return Wait.for_message() or Wait.until() to have the session wait")
    except Retry as e:
        ms = str(round(e.seconds * 1000))
        end = _end("fail", "", reason=_line(str(e)), retry_after_ms=ms)
    except Exception:
        if wire.broken is None:
            traceback.print_exc()
            ctx._finish(None)
            raise SystemExit(1) from None
    if wire.broken is not None:
        _leave(wire.broken)
    # A loop that was told to park has no end, whatever it made of that.
    ctx._finish(None if ctx._parked is not None else end)


def _check(loop: object) -> None:
    """Refuse what cannot be served, while there is a person to tell it to."""
    if not callable(loop):
        raise TypeError(f"main takes the loop function itself, not a {type(loop).__name__}: stint.main(loop)")
    if inspect.iscoroutinefunction(loop):
        raise TypeError("main takes an ordinary function; write stint.main(lambda ctx: asyncio.run(loop(ctx)))")
    if os.isatty(0):
        _leave(
            "this program is an agent, which stint starts and talks to over stdin and stdout; "
            "name it in stint.yaml, and use: stint run AGENT"
        )


def _open(wire: Wire, message: Dict[str, Any], text: str) -> Loop:
    if message["type"] != "loop":
        raise wire.violation(f"a message of type {message['type']} between loops")
    if message.get("v") != VERSION:
        raise wire.violation(
            f"version {message.get('v')} of the protocol is not known here, only {VERSION}; update stint-agent"
        )
    try:
        return Loop(wire, message, text)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        raise wire.violation(f"the loop message is not complete: {type(e).__name__} {e}") from e


def _ending(how: Optional[Next]) -> str:
    if how is None:
        how = Continue()
    if isinstance(how, type) and issubclass(how, Next):
        raise TypeError(f"a loop returned the class {how.__name__} itself; call it: {how.__name__}(...)")
    if not isinstance(how, Next):
        raise TypeError(
            f"a loop returns Continue, Complete, Wait, Fail or None, not {type(how).__name__}; "
            "give the state to ctx.patch or ctx.replace"
        )
    return how.to_json()


def _leave(why: str) -> None:
    print("stint_agent: " + _json.clean(why), file=sys.stderr)
    raise SystemExit(1)

"""One loop of a session, as the agent sees it."""

from __future__ import annotations

import inspect
import re
import threading
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import _json
from ._errors import Definite, Parked, Retry, StepError
from ._types import Call, Message, Result, Session, Usage, parse_message
from ._wire import Wire, quote

_KINDS = ("tool", "model", "step")
_EFFECTS = ("read", "idempotent", "once")
_LEVELS = ("debug", "info", "warn", "error")
_MAX_NAME = 200
_MAX_GROUP = 1000
_MAX_ERROR = 60 << 10  # bytes; stint cuts what is much longer
_NO_WORD = "the step failed without a word"
_MOST_COMPARED = 1 << 20  # characters of a state that is looked at for changes
_LOG_PIECE = 256 << 10


class Loop:
    """What a loop is given. It is good until the loop function returns.

    ``step`` and ``group`` are called one after another, from the thread the loop
    function runs in. ``patch`` and ``replace`` are called between steps, ``log`` and
    ``progress`` at any time, all four from any thread.
    """

    def __init__(self, wire: Wire, message: Dict[str, Any], text: str) -> None:
        spans = _json.members(text)
        s = message["session"]
        self.session = Session(id=s["id"], name=s["name"], agent=s["agent"], labels=dict(s.get("labels") or {}))
        """Which session this is."""
        self.line: int = message["line"]
        """The line of the session's life: 0, and one more for each restart or rollback."""
        self.loop: int = message["loop"]
        """This loop's number on the line, from 1."""
        self.attempt: int = message["attempt"]
        """Which attempt at this loop this is, from 1."""
        self.epoch: int = message["epoch"]
        """The lease under which it runs; it only grows."""
        begin, end = spans["state"]
        self.raw_state: str = text[begin:end]
        """The state this loop began from, as JSON text with every token as it was
        stored; "null" if there is none yet."""
        self.state: Any = message["state"]
        """The same as a Python value. It is a copy: changing it changes nothing
        until it is given to ``patch`` or ``replace``."""
        begin, _ = spans["inbox"]
        self.inbox: List[Message] = [parse_message(text[a:b]) for a, b in _json.items(text, begin)]
        """The messages taken for this loop, oldest first. Every attempt at the loop
        sees the same ones, and the next loop does not."""
        self._wire = wire
        self._last_id = 0
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._in_step = ""
        self._wrote = False
        self._over: Optional[str] = None
        self._parked: Optional[Parked] = None

    def step(
        self,
        name: str,
        fn: Callable[..., object],
        *,
        input: object = None,
        kind: str = "tool",
        effect: str = "once",
    ) -> Any:
        """Run fn as a durable step and return its result.

        Where the journal already has the step's result, that is returned and fn does
        not run. fn is given the idempotency key if it has a parameter for it: one
        that is required, or one named ``key``. It returns a JSON value, or a Result
        with usage; the value comes back as it will be read from the journal, so a
        tuple is a list.

        effect says what doing it again means: ``read``, run again freely;
        ``idempotent``, run again with the same key; ``once``, never by itself: after
        a crash between intent and result a person is asked.

        Raises Parked if the session has to stop here, StepError for an error that is
        the step's recorded result, and otherwise what fn raised.
        """
        outcome = self._steps([Call(name, fn, input, effect, kind)], group=False)[0]
        return outcome.unwrap()

    def group(self, calls: Iterable[Call]) -> List[Any]:
        """Run several steps at once, each in a thread of its own, and return their
        results in the order of calls. All of them finish before this returns; then
        Parked is raised if one is parked, else the first error in the order of
        calls."""
        calls = list(calls)
        if not calls:
            return []
        if len(calls) > _MAX_GROUP:
            raise ValueError(f"a group of {len(calls)} steps, and one has at most {_MAX_GROUP}; do it in several")
        outcomes = self._steps(calls, group=True)
        for outcome in outcomes:
            if isinstance(outcome.error, Parked):
                raise outcome.error
        return [outcome.unwrap() for outcome in outcomes]

    def spawn(
        self,
        agent: str,
        input: object = None,
        *,
        name: Optional[str] = None,
        labels: Optional[Dict[str, str]] = None,
        limits: Optional[Dict[str, object]] = None,
        detach: bool = False,
    ) -> str:
        """Begin a child session, which runs by itself, and return its id.

        It is a step: when the loop is begun again, the child that there is already is
        the one. A str as input is the text of the child's first message, any other
        value but None is JSON. Wait for its end with ``Wait.for_child``.

        Raises Parked if the session has to stop here, StepError if there is no such
        agent.
        """
        parts = ['"agent":' + _json.dumps(agent, "agent")]
        for key, value in (("name", name), ("input", input), ("labels", labels), ("limits", limits)):
            if value is not None:
                parts.append('"%s":%s' % (key, _json.dumps(value, key)))
        if detach:
            parts.append('"detach":true')
        line = '{"type":"spawn","id":%d,' + ",".join(parts).replace("%", "%%") + "}"
        outcome = self._steps([Call("spawn " + agent, lambda: None)], group=False, line=line)[0]
        return str(outcome.unwrap()["session"])

    def patch(self, changes: Dict[str, Any], *, by: Optional[str] = None) -> None:
        """Change the state the next loop begins from: members of changes replace those
        of the state, objects member by member, and None deletes (RFC 7396).

        by names a writer, where several share one loop; two that write the same
        member are a conflict, and the attempt fails. TypeError or ValueError, with
        the path, for what JSON cannot hold: then nothing of this patch counts.

        RuntimeError while a step runs: when the loop is begun again the step is
        answered from the journal, its function does not run, and what it had written
        would be lost. Return the value from the step and write it after that.
        """
        if not isinstance(changes, dict):
            raise TypeError(f"patch takes a dict of changes, not a {type(changes).__name__}; replace takes any value")
        self._write_state("patch", changes, by)

    def replace(self, state: object, *, by: Optional[str] = None) -> None:
        """Make state, any JSON value, the one the next loop begins from. Like
        ``patch``, not while a step runs."""
        self._write_state("replace", state, by)

    def log(self, text: str, level: str = "info") -> None:
        """Add to the session's log. level is debug, info, warn or error."""
        if level not in _LEVELS:
            raise ValueError(f"level is one of {', '.join(_LEVELS)}, not {level!r}")
        text = str(text)
        # A long text goes in pieces, so that logging never meets the limit of a line.
        for at in range(0, len(text) or 1, _LOG_PIECE):
            self._send('{"type":"log","level":"%s","text":%s}' % (level, quote(text[at : at + _LOG_PIECE])))

    def progress(self, text: str) -> None:
        """Show what the agent is doing now, in at most 120 characters. It is seen
        within a second and kept nowhere."""
        self._send('{"type":"progress","text":%s}' % quote(str(text)[:120]))

    def _write_state(self, how: str, value: object, by: Optional[str]) -> None:
        if by is not None and not isinstance(by, str):
            raise TypeError(f"by is the name of a writer, not a {type(by).__name__}")
        writer = "" if by is None else ',"by":' + quote(by)
        line = '{"type":"state","%s":%s%s}' % (how, _json.dumps(value, how), writer)
        self._wire.check_process()  # in a forked child the lock may never be free
        with self._lock:
            if self._in_step:
                raise RuntimeError(
                    f"ctx.{how} while {self._in_step} runs: that would be lost when the loop is begun again; "
                    f"return the value from the step and call ctx.{how} after it"
                )
            self._write(line)
            self._wrote = True

    def _send(self, line: str) -> None:
        self._wire.check_process()
        with self._lock:
            self._write(line)

    def _write(self, line: str) -> None:
        # Under the lock, so that a thread that outlives the loop cannot write after
        # the loop's end, where stint would take it for a fault.
        if self._over is not None:
            raise RuntimeError(f"{self._over}; a thread of it still uses its Loop")
        self._wire.send(line)

    def _lost_change(self) -> bool:
        """True if the program changed ``state`` itself and wrote nothing: most likely
        it believes that this is kept."""
        if self._wrote or len(self.raw_state) > _MOST_COMPARED:
            return False
        try:
            return bool(self.state != _json.loads(self.raw_state))
        except Exception:  # something is in it that cannot even be compared
            return True

    def _finish(self, line: Optional[str]) -> None:
        """Write the end of the loop, if it has one, and close this object."""
        with self._lock:
            self._over = f"loop {self.loop} is over"
            if line is not None:
                self._wire.send(line)

    def _steps(self, calls: List[Call], group: bool, line: str = "") -> "List[_Outcome]":
        if self._parked is not None:
            raise self._parked
        with self._lock:
            if self._in_step:
                raise RuntimeError(f"{self._in_step} is already running; run steps at once with ctx.group")
            if self._over is None and threading.get_ident() != self._thread:
                raise RuntimeError(
                    "a step is begun by the thread that the loop runs in, because its place in the order of steps counts; "
                    "run steps at once with ctx.group"
                )
            self._in_step = "a group" if group else f"step {calls[0].name}"
        try:
            declared = [_Member(self, self._last_id + i, call) for i, call in enumerate(calls, 1)]
            self._last_id += len(declared)
            if line:
                self._send(line % declared[0].id)
            elif group:
                self._send('{"type":"steps","steps":[%s]}' % ",".join("{%s}" % m.declaration for m in declared))
            else:
                self._send('{"type":"step",%s}' % declared[0].declaration)
            return self._collect(declared, group)
        finally:
            self._in_step = ""

    def _collect(self, declared: "List[_Member]", group: bool) -> "List[_Outcome]":
        """Take one answer for each member, start those that may run, await them."""
        waiting = {m.id: m for m in declared}
        while waiting:
            answer = self._wire.answer()
            member = waiting.pop(_id(answer), None)
            if member is None:
                raise self._wire.violation(f"an answer of type {answer['type']} for a step that awaits none")
            if not self._settle(member, answer):
                if group:
                    member.start(answer["key"])
                else:
                    member.run(answer["key"])
        for m in declared:
            m.join()
        return [m.outcome for m in declared]

    def _settle(self, member: "_Member", answer: Dict[str, Any]) -> bool:
        """Take the answer to a step. False if it is to be run now."""
        kind = answer["type"]
        if kind == "proceed" and isinstance(answer.get("key"), str):
            return False
        if kind == "result" and ("result" in answer or isinstance(answer.get("error"), str)):
            if "result" in answer:
                member.outcome = _Outcome(answer["result"], None)
            else:
                member.outcome = _Outcome(None, StepError(answer["error"], step=member.call.name, cached=True))
            return True
        if kind == "park":
            self._parked = Parked(str(answer.get("reason") or ""))
            member.outcome = _Outcome(None, self._parked)
            return True
        raise self._wire.violation(f"no answer to a step: type {kind}")


class _Outcome:
    """How a step came out."""

    __slots__ = ("value", "error")

    def __init__(self, value: Any, error: Optional[BaseException]) -> None:
        self.value = value
        self.error = error

    def unwrap(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _Member:
    """A step that has been declared: alone, or one of a group."""

    def __init__(self, loop: Loop, id: int, call: Call) -> None:
        if not isinstance(call, Call):
            raise TypeError(f"a group is made of Call, not of {type(call).__name__}")
        if not isinstance(call.name, str) or not 1 <= len(call.name) <= _MAX_NAME:
            raise ValueError(f"a step's name has 1 to {_MAX_NAME} characters: {call.name!r:.80}")
        if call.kind not in _KINDS:
            raise ValueError(f"step {call.name}: kind is one of {', '.join(_KINDS)}, not {call.kind!r}")
        if call.effect not in _EFFECTS:
            raise ValueError(f"step {call.name}: effect is one of {', '.join(_EFFECTS)}, not {call.effect!r}")
        self._keyed = _wants_key(call.fn, call.name)
        self.loop = loop
        self.id = id
        self.call = call
        self.declaration = '"id":%d,"name":%s,"kind":"%s","effect":"%s"' % (
            id,
            _json.dumps(call.name, "the step's name"),
            call.kind,
            call.effect,
        )
        if call.input is not None:
            self.declaration += ',"input":' + _json.dumps(call.input, f"input of step {call.name}")
        self.outcome = _Outcome(None, RuntimeError("the step has no outcome yet"))
        self._thread: Optional[threading.Thread] = None

    def start(self, key: str) -> None:
        # A daemon, so that a step that hangs cannot keep a process that is to go.
        self._thread = threading.Thread(target=self._run_apart, args=(key,), name=f"step {self.call.name}", daemon=True)
        self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run_apart(self, key: str) -> None:
        try:
            self.run(key)
        except BaseException as e:  # carried over to the loop's thread
            self.outcome = _Outcome(None, e)

    def run(self, key: str) -> None:
        """Run the function and tell stint its result."""
        try:
            got = self._call(key)
        except Definite as e:
            self._refuse(_text(e), e, final=e.final)
        except Retry as e:
            self._tell_error(_text(e), retry_after_ms=round(e.seconds * 1000))
            self.outcome = _Outcome(None, e)
        except BaseException as e:
            # Also sys.exit() and an interrupt: they say why the step has no result,
            # and then go their way through the loop.
            if self.loop._wire.broken is not None:
                raise
            self._tell_error(_describe(e))
            self.outcome = _Outcome(None, e)
        else:
            self._tell_result(got)

    def _call(self, key: str) -> object:
        if self._keyed == "named":
            return self.call.fn(key=key)
        return self.call.fn(key) if self._keyed else self.call.fn()

    def _tell_result(self, got: object) -> None:
        result = got if isinstance(got, Result) else Result(got)
        try:
            if result.usage is not None and not isinstance(result.usage, Usage):
                raise TypeError(f"usage is a Usage, not a {type(result.usage).__name__}")
            value = _json.dumps(result.value, f"result of step {self.call.name}")
            usage = _json.dumps(result.usage.to_json()) if result.usage is not None else ""
            line = '{"type":"result","id":%d,"result":%s%s}' % (self.id, value, ',"usage":' + usage if usage else "")
        except (TypeError, ValueError) as e:
            # The effect happened, but its result cannot be kept. Doing it again gives
            # no better one, so this is the result, and no attempt mends it.
            self._refuse(str(e), e, final=True)
            return
        self.loop._send(line)
        self.outcome = _Outcome(_json.loads(value), None)

    def _refuse(self, text: str, cause: Exception, final: bool) -> None:
        """Make an error the step's recorded result, in the words that it will have
        when it comes out of the journal."""
        text = _recorded(text)
        self._tell_error(text, definite=True, final=final)
        error = StepError(text, step=self.call.name)
        error.__cause__ = cause
        self.outcome = _Outcome(None, error)

    def _tell_error(
        self, text: str, definite: bool = False, final: bool = False, retry_after_ms: Optional[int] = None
    ) -> None:
        line = '{"type":"result","id":%d,"error":%s' % (self.id, quote(_recorded(text)))
        if definite:
            line += ',"definite":true'
        if retry_after_ms is not None:
            line += ',"retry_after_ms":%d' % retry_after_ms
        if final:
            line += ',"final":true'
        self.loop._send(line + "}")


def _text(e: BaseException) -> str:
    try:
        return str(e)
    except Exception:  # not even that works
        return ""


def _describe(e: BaseException) -> str:
    text = _text(e).strip()
    return f"{type(e).__name__}: {text}" if text else type(e).__name__


def _recorded(text: str) -> str:
    """An error's text as the journal keeps it."""
    text = _json.clean(text.strip() or _NO_WORD)
    data = text.encode()
    if len(data) <= _MAX_ERROR:
        return text
    return data[: _MAX_ERROR - len("…".encode())].decode("utf-8", "ignore") + "…"


def _id(answer: Dict[str, Any]) -> int:
    id = answer.get("id")
    return id if isinstance(id, int) and not isinstance(id, bool) else 0


def _wants_key(fn: Callable[..., object], name: str) -> str:
    """How fn takes the key: "named" by its parameter key, "first" by the one that it
    requires, "" not at all. A default value is the usual way to bind a loop
    variable, so a parameter that has one is left alone."""
    if not callable(fn):
        raise TypeError(f"step {name}: fn is a function, not a {type(fn).__name__}; write lambda: ... around a call")
    if inspect.iscoroutinefunction(fn):
        raise TypeError(f"step {name}: fn is an async function, which nobody would await; write lambda: asyncio.run(...)")
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # a built-in that does not tell
        return ""
    required = [
        p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    named = [p for p in parameters if p.name == "key" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    left = [p for p in required if p not in named]
    if named and not left:
        return "named"
    if not named and len(left) <= 1 and all(p.kind != p.KEYWORD_ONLY and _KEY.match(p.name) for p in left):
        return "first" if left else ""
    raise TypeError(
        f"step {name}: fn requires {' and '.join(p.name for p in left)}, and all that it is given is the idempotency "
        "key, to a parameter named key; bind other arguments, as in lambda: fn(x)"
    )


# Names that a parameter for the key has. With any other, the function expects
# something else, such as the step's input, and would take the key for that.
_KEY = re.compile(r"(\w*_)?[kK]ey\Z|k\Z|_\w*\Z")

"""What a loop is given, and what it returns."""

from __future__ import annotations

import base64
import builtins
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Callable, Dict, Mapping, Optional, Union

from . import _json


@dataclass(frozen=True)
class Session:
    """Which session this is."""

    id: str
    name: str
    agent: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    """One message of the inbox. Its body is what the sender gave: JSON, text, or bytes."""

    id: str
    kind: str
    """``prompt``, ``decision`` for the answer to an approval, ``child`` for the end of a
    child session."""
    sender: str
    """Who sent it: ``human:ana``, ``schedule:nightly``, ``hook:github``, ``session:ID``."""
    at: datetime
    bytes: builtins.bytes
    """The body. JSON is without the white space between its tokens."""
    is_json: bool
    child: Optional["ChildEnd"] = None
    """With kind ``child``: which session ended, and how. The body is its result."""

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 show as U+FFFD."""
        return self.bytes.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body's JSON value, read anew each time. ValueError if the body is none."""
        if not self.is_json:
            raise ValueError(f"message {self.id} from {self.sender} is not JSON; its text begins {self.text[:60]!r}")
        return _json.loads(self.text)


@dataclass(frozen=True)
class ChildEnd:
    """The end of a child session."""

    session: str
    name: str
    agent: str
    outcome: str
    """``completed``, ``failed``, ``stopped`` or ``canceled``."""
    reason: str = ""


Money = Union[str, int, float, Decimal]
_MONEY = re.compile(r"\d{1,10}(\.\d{1,9})?\Z")
_NANO = Decimal("0.000000001")


@dataclass(frozen=True)
class Usage:
    """What a step used, normally a model call. What is not known stays 0 or None."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: Optional[Money] = None
    """US dollars, only where the provider itself reports them: best a string like
    "0.21" or a Decimal. Rounded to nine decimal places. None: stint computes it."""

    def to_json(self) -> Dict[str, object]:
        """The protocol's form, without what is 0. ValueError for what it refuses."""
        out: Dict[str, object] = {}
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 1 << 53:
                raise ValueError(f"usage: {name} is a count of tokens, not {count!r}")
            if count:
                out[name] = count
        if self.cost is not None:
            out["cost"] = _money(self.cost)
        return out


def _money(cost: Money) -> str:
    text = cost if isinstance(cost, str) else ""
    if isinstance(cost, (int, float, Decimal)) and not isinstance(cost, bool):
        amount = Decimal(repr(cost)) if isinstance(cost, float) else Decimal(cost)
        if amount.is_finite() and 0 <= amount < 9 * 10**9:
            text = format(amount.quantize(_NANO, ROUND_HALF_EVEN).normalize() + 0, "f")
    if not _MONEY.match(text) or Decimal(text) >= 9 * 10**9:
        raise ValueError(f'usage: cost is an amount of dollars like "0.21", below nine billion, not {cost!r}')
    return text


@dataclass(frozen=True)
class Result:
    """Return it from a step's function to report usage along with the value."""

    value: object = None
    usage: Optional[Usage] = None


@dataclass(frozen=True)
class Call:
    """One member of a group: see ``Loop.group``."""

    name: str
    fn: Callable[..., object]
    input: object = None
    effect: str = "once"
    kind: str = "tool"


class Next:
    """How a loop ended: one of Continue, Complete, Wait, Fail."""

    headline: str

    def to_json(self) -> str:
        """The members of the protocol's ``end`` message, as JSON."""
        raise NotImplementedError("return Continue, Complete, Wait or Fail")


def _end(outcome: str, headline: str, **more: str) -> str:
    """Build an ``end`` message. Values of more are JSON; empty ones are left out."""
    parts = ['"type":"end"', f'"outcome":"{outcome}"']
    parts += [f'"{name}":{text}' for name, text in more.items() if text]
    if headline:
        parts.append('"headline":' + _line(headline))
    return "{" + ",".join(parts) + "}"


def _line(text: str) -> str:
    """A text for people as a JSON string; an empty one as nothing."""
    return _json.dumps(_json.clean(str(text))) if text else ""


@dataclass(frozen=True)
class Continue(Next):
    """Go on with the next loop at once. Returning None means the same."""

    headline: str = ""
    """One line on what changed, for lists of sessions."""

    def to_json(self) -> str:
        return _end("continue", self.headline)


@dataclass(frozen=True)
class Complete(Next):
    """The work is done: the session ends as completed."""

    result: object = None
    reason: str = ""
    headline: str = ""

    def to_json(self) -> str:
        result = "" if self.result is None else _json.dumps(self.result, "result")
        return _end("complete", self.headline, reason=_line(self.reason), result=result)


@dataclass(frozen=True)
class Fail(Next):
    """The work cannot be done, and no further attempt can mend that: the session
    ends as failed. Raise an exception instead to have the loop tried again."""

    reason: str
    result: object = None
    headline: str = ""

    def to_json(self) -> str:
        result = "" if self.result is None else _json.dumps(self.result, "result")
        return _end("fail", self.headline, reason=_line(self.reason), result=result)


@dataclass(frozen=True)
class Wait(Next):
    """Park the session. Make it with ``Wait.for_message``, ``Wait.until`` or
    ``Wait.for_child``."""

    waits_for: str
    what: str = ""
    time: Optional[datetime] = None
    headline: str = ""
    session: str = ""

    @classmethod
    def for_message(cls, what: str = "", *, until: Optional[datetime] = None, headline: str = "") -> "Wait":
        """Wait for a prompt; what says for whom it may concern which. until, if
        given, ends the wait too."""
        return cls("message", what, until, headline)

    @classmethod
    def until(cls, time: datetime, what: str = "", *, headline: str = "") -> "Wait":
        """Wait until a time, which must carry its time zone."""
        return cls("time", what, time, headline)

    @classmethod
    def for_child(cls, session: str = "", what: str = "", *, until: Optional[datetime] = None, headline: str = "") -> "Wait":
        """Wait for the end of a child session: this one, or any. Without such a child
        that is open the next loop follows at once."""
        return cls("child", what, until, headline, session)

    def __post_init__(self) -> None:
        if self.waits_for not in ("message", "time", "child"):
            raise ValueError(f"a session waits for a message, a time or a child, not for {self.waits_for!r}")
        if self.time is None and self.waits_for == "time":
            raise ValueError("Wait.until wants a datetime")
        if self.time is not None:
            _rfc3339(self.time)

    def to_json(self) -> str:
        parts = [f'"for":"{self.waits_for}"']
        if self.session:
            parts.append('"session":' + _line(self.session))
        if self.time is not None:
            parts.append(f'"until":"{_rfc3339(self.time)}"')
        if self.what:
            parts.append('"what":' + _line(self.what))
        return _end("wait", self.headline, wait="{" + ",".join(parts) + "}")


def _rfc3339(time: datetime) -> str:
    if not isinstance(time, datetime):
        raise TypeError(f"the end of a wait is a datetime, not a {type(time).__name__}")
    if time.utcoffset() is None:
        raise ValueError(
            f"{time.isoformat()} has no time zone; "
            "write datetime.now(timezone.utc) + ..., or time.astimezone() for local time"
        )
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)\Z")


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time; digits beyond microseconds are dropped. Python before
    3.11 reads neither Z nor fractions of other lengths than 3 and 6."""
    m = _TIME.match(text)
    if not m:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    date, clock, fraction, zone = m.groups()
    micros = ((fraction or "") + "000000")[:6]
    zone = "+00:00" if zone in "Zz" else zone
    return datetime.fromisoformat(f"{date}T{clock}.{micros}{zone}")


def parse_message(text: str) -> Message:
    """Read a message of the inbox from its JSON."""
    spans = _json.members(text)
    m = _json.loads(text)
    if "body" in spans:
        begin, end = spans["body"]
        body = text[begin:end].encode()
    elif "base64" in spans:
        body = base64.b64decode(m["base64"], validate=True)
    else:
        body = m["text"].encode()
    return Message(
        id=m["id"],
        kind=m["kind"],
        sender=m["from"],
        at=parse_time(m["at"]),
        bytes=body,
        is_json="body" in spans,
        child=_child(m.get("child")),
    )


def _child(m: Optional[Dict[str, Any]]) -> Optional[ChildEnd]:
    if m is None:
        return None
    return ChildEnd(m["session"], m["name"], m["agent"], m["outcome"], m.get("reason", ""))

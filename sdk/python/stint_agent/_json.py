"""JSON as the protocol needs it: what cannot be stored is refused where it is
written, with its path, and integers of any size keep their digits."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import json
import math
import os
import re
from typing import Any, Iterator, List, Set, Tuple, Union

MAX_VALUE = 32 << 20
"""The most bytes one value may have: a state, a patch, an input, a result."""

MAX_DEPTH = 500
"""How deep a value may nest. stint reads lines nested 512 deep, and the members of
the message around the value count."""

# Python refuses to convert integers of more than 4,300 digits, or of 640 if so
# configured, because the conversion takes quadratic time. What has to be exact is
# converted in pieces below that.
_SAFE_DIGITS = 600
_SAFE_BITS = 1900

_Step = Union[str, int]


def dumps(value: object, what: str = "") -> str:
    """Write value as compact JSON.

    Tuples become arrays. Everything else that JSON has no form for is a TypeError,
    and what it has a form for but cannot hold (NaN, a value that contains itself,
    half of a surrogate pair, more than 32 MiB) a ValueError. Both name the path to
    it, after what: "patch: $.jobs[3].done: ...".
    """
    huge = _check(value, what)
    text = "".join(_pieces(value)) if huge else _encode(value)
    # Only text that is near the limit has to be measured exactly.
    if len(text) * 4 > MAX_VALUE:
        size = len(text.encode())
        if size > MAX_VALUE:
            raise ValueError(
                f"{_prefix(what)}$: {size} bytes of JSON, and a value may have {MAX_VALUE}; "
                "store large data outside and keep a reference"
            )
    return text


def loads(text: str) -> Any:
    """Read JSON. Integers are exact; NaN and Infinity are refused."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer with more digits than Python converts at once
        return _EXACT_DECODER.decode(text)


def members(text: str, start: int = 0) -> "dict[str, Tuple[int, int]]":
    """Find where the values of the JSON object at text[start:] begin and end."""
    spans = {}
    for at in _elements(text, start, "{"):
        name, end = _STRINGS.raw_decode(text, at)
        begin = _space(text, _space(text, end) + 1)  # passes the colon
        spans[name] = (begin, _skip(text, begin))
    return spans


def items(text: str, start: int = 0) -> "list[Tuple[int, int]]":
    """Find where the elements of the JSON array at text[start:] begin and end."""
    return [(at, _skip(text, at)) for at in _elements(text, start, "[")]


def clean(text: str) -> str:
    """Make any string one that UTF-8 can carry: half of a surrogate pair, which
    Python uses for undecodable bytes of file names, becomes an escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _exact_int(digits: str) -> int:
    if len(digits) <= _SAFE_DIGITS:
        return int(digits)
    if digits[0] == "-":
        return -_exact_int(digits[1:])
    low = len(digits) // 2
    return int(_exact_int(digits[:-low]) * 10**low + _exact_int(digits[-low:]))


def _exact_digits(n: int) -> str:
    if n < 0:
        return "-" + _exact_digits(-n)
    if n.bit_length() <= _SAFE_BITS:
        return int.__repr__(n)
    low = n.bit_length() * 3 // 20  # about half of the digits, of which a bit is 0.301
    high, rest = divmod(n, 10**low)
    return _exact_digits(high) + _exact_digits(rest).zfill(low)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_EXACT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_exact_int)
# For finding spans the values of numbers do not matter, so no integer is converted.
_STRINGS = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def _encode(value: object) -> str:
    return _ENCODER.encode(value)


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _skip(text: str, at: int) -> int:
    return _STRINGS.raw_decode(text, at)[1]


def _elements(text: str, start: int, opening: str) -> Iterator[int]:
    """Yield where each element or member of the container at start begins. text is
    known to be valid JSON."""
    at = _space(text, start)
    if text[at : at + 1] != opening:
        raise ValueError(f"no {opening} at {at}")
    closing = "}" if opening == "{" else "]"
    at = _space(text, at + 1)
    while text[at] != closing:
        yield at
        end = _skip(text, at)
        if opening == "{":
            end = _skip(text, _space(text, _space(text, end) + 1))
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)


class _Frame:
    """A container that is being looked through, and where in it."""

    __slots__ = ("container", "entries", "step")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.entries: Iterator[Tuple[Any, Any]] = iter(
            container.items() if isinstance(container, dict) else enumerate(container)
        )
        self.step: Any = None


def _check(root: object, what: str) -> bool:
    """Refuse what cannot be stored. True if there is an integer that Python would
    not write by itself. No recursion, so no value is too deep for it."""
    frames: List[_Frame] = []
    open_ids: Set[int] = set()
    huge = False

    def path() -> str:
        return _prefix(what) + "$" + "".join(_step(f.step) for f in frames)

    def leaf(value: object) -> bool:
        nonlocal huge
        if value is None or isinstance(value, bool):
            return True
        if isinstance(value, str):
            if not value.isascii():
                _check_text(value, path)
            return True
        if isinstance(value, int):
            huge = huge or value.bit_length() > _SAFE_BITS
            return True
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"{path()}: JSON cannot hold {value}")
            return True
        return False

    def enter(value: object) -> None:
        if not isinstance(value, (dict, list, tuple)):
            raise TypeError(f"{path()}: JSON cannot hold a {type(value).__name__}{_advice(value)}")
        if id(value) in open_ids:
            raise ValueError(f"{path()}: the value contains itself")
        if len(frames) >= MAX_DEPTH:
            raise ValueError(f"{path()[:200]}...: nested more than {MAX_DEPTH} deep")
        open_ids.add(id(value))
        frames.append(_Frame(value))

    if not leaf(root):
        enter(root)
    while frames:
        frame = frames[-1]
        named = isinstance(frame.container, dict)
        for frame.step, value in frame.entries:
            if named:
                _check_name(frame.step, path)
            if not leaf(value):
                enter(value)
                break
        else:
            frames.pop()
            open_ids.discard(id(frame.container))
    return huge


def _check_name(name: object, path: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{path()}: a name in a JSON object is a string, not a {type(name).__name__}; write str(key)")
    if not name.isascii():
        _check_text(name, path)


def _check_text(text: str, path: Any) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise ValueError(
            f"{path()}: half of a surrogate pair at character {e.start}; JSON in UTF-8 cannot hold it"
        ) from None


def _prefix(what: str) -> str:
    return what + ": " if what else ""


_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def _step(step: _Step) -> str:
    if isinstance(step, int) and not isinstance(step, bool):
        return f"[{step}]"
    if isinstance(step, str):
        if _PLAIN.match(step):
            return "." + step
        return "[" + json.dumps(step[:64]) + "]"
    return f"[{repr(step)[:64]}]"


def _advice(value: object) -> str:
    if isinstance(value, (set, frozenset)):
        return "; write sorted(value) or list(value)"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "; write it as text, or as base64"
    if hasattr(value, "isoformat"):
        return "; write value.isoformat()"
    if type(value).__name__ in ("Decimal", "Fraction", "UUID") or isinstance(value, os.PathLike):
        return "; write str(value)"
    if isinstance(value, enum.Enum):
        return "; write value.value or value.name"
    if isinstance(value, complex):
        return "; write [value.real, value.imag]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "; write dataclasses.asdict(value)"
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return "; write value.tolist()"
    if inspect.isawaitable(value):
        return "; it was not awaited: write asyncio.run(...)"
    if isinstance(value, BaseException):
        return "; raise it, or write str(value)"
    if isinstance(value, collections.abc.Mapping):
        return "; write dict(value)"
    if isinstance(value, collections.abc.Iterable):
        return "; write list(value)"
    if callable(value):
        return "; was it meant to be called?"
    return ""


def _pieces(value: Any) -> Iterator[str]:
    """Write a value that _check has passed and that has a huge integer in it."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield _exact_digits(value)
    elif isinstance(value, dict):
        yield "{"
        for i, name in enumerate(value):
            yield ("," if i else "") + _encode(name) + ":"
            yield from _pieces(value[name])
        yield "}"
    elif isinstance(value, (list, tuple)):
        yield "["
        for i, element in enumerate(value):
            if i:
                yield ","
            yield from _pieces(element)
        yield "]"
    else:
        yield _encode(value)

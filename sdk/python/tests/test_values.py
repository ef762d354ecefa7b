"""Values on their way to JSON and back, and the small types."""

from __future__ import annotations

import enum
import functools
import json
import math
import pathlib
import random
import unittest
from collections import OrderedDict
from datetime import datetime, timezone
from decimal import Decimal
from types import MappingProxyType as mappingproxy
from typing import Any, Callable, List, Tuple, Type

import stint_agent as stint
from stint_agent import _json
from stint_agent._loop import _wants_key
from stint_agent._types import parse_time


class Plain(enum.Enum):
    A = 1


class Array:
    """Like a number or an array of numpy."""

    def tolist(self) -> object: ...


def value(r: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    kind = r.randrange(8 if depth < 4 else 6)
    if kind == 0:
        return r.choice([None, True, False])
    if kind == 1:
        return r.choice([-1, 1]) * r.getrandbits(r.choice([3, 31, 64, 200]))
    if kind == 2:
        return r.choice([0.0, -0.0, 0.1, 1e300, -5e-324, r.random()])
    if kind < 6:
        return "".join(r.choice('az"\\/\n\x00\x7fé€🚲\u2028\ufeff') for _ in range(r.randrange(6)))
    if kind == 6:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {f"k{i}" + value_name(r): value(r, depth + 1) for i in range(r.randrange(4))}


def value_name(r: random.Random) -> str:
    return r.choice(["", " x", '"', "é", "\n"])


def digits_of(n: int) -> str:
    """The decimal digits of any integer, a piece at a time."""
    sign, n, out = ("-", -n, "") if n < 0 else ("", n, "")
    while n >= 10**500:
        n, rest = divmod(n, 10**500)
        out = str(rest).zfill(500) + out
    return sign + str(n) + out


class Writing(unittest.TestCase):
    def test_any_value_comes_back(self) -> None:
        for seed in range(500):
            v = value(random.Random(seed))
            text = _json.dumps(v)
            self.assertNotIn("\n", text)
            self.assertEqual(repr(_json.loads(text)), repr(v))
            self.assertEqual(json.loads(text), v)

    def test_integers_of_any_size(self) -> None:
        r = random.Random(1)
        for bits in (1899, 1900, 1901, 1902, 2200, 14284, 14290, 60000, 300000):
            n = r.getrandbits(bits) | 1 << (bits - 1)
            for signed in (n, -n, 1 << bits, 10 ** (bits // 4), 10 ** (bits // 4) - 1):
                text = _json.dumps({"n": [signed, "é", 1.5, True, None, {}]})
                self.assertEqual(text, '{"n":[' + digits_of(signed) + ',"é",1.5,true,null,{}]}')
                self.assertEqual(_json.loads(text)["n"][0], signed)

    def test_what_python_writes_as_json_too(self) -> None:
        class Colour(enum.IntEnum):
            RED = 3

        class Word(str, enum.Enum):
            A = "a"

        self.assertEqual(_json.dumps((1, OrderedDict(a=Colour.RED), Word.A)), '[1,{"a":3},"a"]')

    def test_shared_is_not_cyclic(self) -> None:
        shared = [1]
        self.assertEqual(_json.dumps({"a": shared, "b": [shared, shared]}), '{"a":[1],"b":[[1],[1]]}')

    def refused(self, kind: Type[Exception], v: object, said: str) -> None:
        with self.subTest(said):
            with self.assertRaises(kind) as caught:
                _json.dumps(v, "state")
            self.assertTrue(str(caught.exception).startswith("state: $" + said), str(caught.exception))

    def test_refused_with_its_path(self) -> None:
        cyclic: Any = {"a": [0, {}]}
        cyclic["a"][1]["b"] = cyclic
        self.refused(TypeError, {1, 2}, ": JSON cannot hold a set")
        self.refused(TypeError, {"jobs": [0, 1, 2, {"done": object()}]}, ".jobs[3].done: JSON cannot hold a object")
        self.refused(TypeError, {"a b": b"x"}, '["a b"]: JSON cannot hold a bytes; write it as text')
        self.refused(TypeError, [datetime(2026, 1, 1)], "[0]: JSON cannot hold a datetime; write value.isoformat()")
        self.refused(TypeError, {"f": print}, ".f: JSON cannot hold a builtin_function_or_method; was it meant")
        self.refused(TypeError, {"d": Decimal(1)}, ".d: JSON cannot hold a Decimal; write str(value)")
        self.refused(TypeError, {"p": pathlib.Path("a")}, ".p: JSON cannot hold a PosixPath; write str(value)")
        self.refused(TypeError, (n for n in (1, 2)), ": JSON cannot hold a generator; write list(value)")
        self.refused(TypeError, {"m": mappingproxy({})}, ".m: JSON cannot hold a mappingproxy; write dict(value)")
        self.refused(TypeError, [{}.keys()], "[0]: JSON cannot hold a dict_keys; write list(value)")
        self.refused(TypeError, {"e": Plain.A}, ".e: JSON cannot hold a Plain; write value.value or value.name")
        self.refused(TypeError, {"e": OSError("x")}, ".e: JSON cannot hold a OSError; raise it, or write str(value)")
        self.refused(TypeError, stint.Usage(), ": JSON cannot hold a Usage; write dataclasses.asdict(value)")
        self.refused(TypeError, {"a": Array()}, ".a: JSON cannot hold a Array; write value.tolist()")
        self.refused(TypeError, 1j, ": JSON cannot hold a complex; write [value.real, value.imag]")
        self.refused(TypeError, {"a": {3: 1}}, ".a[3]: a name in a JSON object is a string, not a int; write str(key)")
        self.refused(TypeError, {None: 1}, "[None]: a name")
        self.refused(TypeError, {True: 1}, "[True]: a name")
        self.refused(ValueError, {"x": [math.nan]}, ".x[0]: JSON cannot hold nan")
        self.refused(ValueError, {"x": -math.inf}, ".x: JSON cannot hold -inf")
        self.refused(ValueError, cyclic, ".a[1].b: the value contains itself")
        self.refused(ValueError, {"s": ["ok", "a\ud800"]}, ".s[1]: half of a surrogate pair at character 1")
        self.refused(ValueError, {"a\udc80": 1}, '["a\\udc80"]: half of a surrogate pair')

    def test_depth(self) -> None:
        deep: Any = 1
        for _ in range(500):
            deep = [deep]
        self.assertEqual(_json.loads(_json.dumps(deep)), deep)
        self.refused(ValueError, [deep], "[0][0][0]")
        big: Any = 1 << 3000
        for _ in range(500):
            big = {"a": big}
        self.assertEqual(_json.loads(_json.dumps(big)), big)
        for _ in range(100_000):
            deep = [deep]
        self.refused(ValueError, deep, "[0][0][0]")

    def test_size(self) -> None:
        limit = _json.MAX_VALUE
        self.assertEqual(len(_json.dumps("x" * (limit - 2))), limit)
        self.refused(ValueError, "x" * (limit - 1), f": {limit + 1} bytes of JSON")
        self.refused(ValueError, "é" * (limit // 2), f": {limit + 2} bytes of JSON")


class Reading(unittest.TestCase):
    def test_refused(self) -> None:
        for text in ("", "{", "NaN", "[Infinity]", "-Infinity", "1 2", "{'a':1}", "[1,]", "9" * 5000 + "x"):
            with self.subTest(text[:20]), self.assertRaises(ValueError):
                _json.loads(text)

    def test_spans(self) -> None:
        text = ' { "a" : [ 1 , "}" , {} ] , "b":"\\"," ,"c":{"a":2},"n":' + "1" * 9000 + ' , "e": null } '
        spans = _json.members(text)
        got = {name: text[a:b] for name, (a, b) in spans.items()}
        self.assertEqual(
            got, {"a": '[ 1 , "}" , {} ]', "b": '"\\","', "c": '{"a":2}', "n": "1" * 9000, "e": "null"}
        )
        self.assertEqual([text[a:b] for a, b in _json.items(text, spans["a"][0])], ["1", '"}"', "{}"])
        self.assertEqual((_json.members("{ }"), _json.items("[]")), ({}, []))
        with self.assertRaises(ValueError):
            _json.items("{}")

    def test_clean(self) -> None:
        self.assertEqual(_json.clean("a\udcffé🚲"), "a\\udcffé🚲")

    def test_times(self) -> None:
        want = datetime(2026, 3, 2, 9, 30, 0, 250000, timezone.utc)
        for text in ("2026-03-02T09:30:00.25Z", "2026-03-02t09:30:00.2500009z", "2026-03-02T11:30:00.25+02:00"):
            self.assertEqual(parse_time(text), want)
        for text in ("2026-03-02", "2026-03-02T09:30:00", "2026-03-02T09:30:00Z\n", "tomorrow"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_time(text)


class Types(unittest.TestCase):
    def test_usage(self) -> None:
        costs: List[Tuple[Any, str]] = [
            ("0.21", "0.21"),
            (0.1, "0.1"),
            (1e-9, "0.000000001"),
            (1e-12, "0"),
            (3, "3"),
            (10**9, "1000000000"),
            (Decimal("1.5e2"), "150"),
            (Decimal("0.1234567895"), "0.12345679"),
            (0.0, "0"),
            (-0.0, "0"),
        ]
        for cost, text in costs:
            with self.subTest(cost):
                self.assertEqual(stint.Usage(1, cost=cost).to_json(), {"input_tokens": 1, "cost": text})
        self.assertEqual(stint.Usage().to_json(), {})
        bad: Any
        for bad in ("", "1e3", "-1", "$3", "0.1234567890", -1, math.nan, math.inf, True, 9 * 10**9, "9000000000", []):
            with self.subTest(bad), self.assertRaises(ValueError):
                stint.Usage(cost=bad).to_json()
        for count in (-1, 1.5, True, "1", 1 << 53):
            with self.subTest(count), self.assertRaises(ValueError):
                stint.Usage(output_tokens=count).to_json()  # type: ignore[arg-type]

    def test_wait_wants_a_time_zone(self) -> None:
        with self.assertRaisesRegex(ValueError, "no time zone"):
            stint.Wait.until(datetime(2026, 3, 2))
        with self.assertRaisesRegex(TypeError, "a datetime, not a str"):
            stint.Wait.until("2026-03-02")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "wants a datetime"):
            stint.Wait("time")
        with self.assertRaisesRegex(ValueError, "not for 'rain'"):
            stint.Wait("rain")

    def test_retry_is_bounded(self) -> None:
        self.assertEqual(stint.Retry(2592000).seconds, 2592000)
        for seconds in (-1, math.nan, math.inf, 2592001):
            with self.subTest(seconds), self.assertRaises(ValueError):
                stint.Retry(seconds)

    def test_parked_is_no_exception(self) -> None:
        self.assertFalse(issubclass(stint.Parked, Exception))

    def test_message(self) -> None:
        m = stint.Message("m", "prompt", "human:ana", datetime.now(timezone.utc), b"no json", False)
        with self.assertRaisesRegex(ValueError, "message m from human:ana is not JSON"):
            m.json

    def test_who_is_given_the_key(self) -> None:
        class Thing:
            def bare(self) -> None: ...
            def keyed(self, key: str) -> None: ...
            def __call__(self, idempotency_key: str) -> None: ...

        def two(a: int, key: str) -> None: ...
        def only_named(*, key: str) -> None: ...
        def optional(a: int = 1, key: str = "") -> None: ...
        def other_keyword(*, a: int) -> None: ...

        good: List[Tuple[Callable[..., object], str]] = [
            (lambda: 1, ""),
            (lambda k: 1, "first"),
            (lambda _: 1, "first"),
            (lambda key: 1, "named"),
            (lambda i=3: 1, ""),
            (lambda *args, **kwargs: 1, ""),
            (Thing().bare, ""),
            (Thing().keyed, "named"),
            (Thing(), "first"),
            (functools.partial(two, 1), "named"),
            (only_named, "named"),
            (optional, "named"),
            (dict, ""),
        ]
        for fn, want in good:
            self.assertEqual(_wants_key(fn, "s"), want, fn)
        async def later() -> None: ...

        # The last takes what it would be given for the URL.
        bad: List[Any] = [two, other_keyword, lambda a, b: 1, 3, later, functools.partial(later), lambda url: 1]
        for fn in bad:
            with self.subTest(fn), self.assertRaisesRegex(TypeError, "step s: fn"):
                _wants_key(fn, "s")


if __name__ == "__main__":
    unittest.main()

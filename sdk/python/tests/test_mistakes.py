"""What people do wrong with the SDK either works or gets an error that says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Optional, Tuple

from tests.fake import HERE, PATIENCE, SDK, Agent, loop, prompt

LOST = (
    "RuntimeError: ctx.{} while {} runs: that would be lost when the loop is begun again; "
    "return the value from the step and call ctx.{} after it"
)
PARKED = "Parked: later"
Gone, Same = object(), object()
"""The process ends; what ctx.step raises is what stint is told."""


def mistakes(name: str) -> Agent:
    return Agent(HERE / "mistakes.py", name)


class InAStep(unittest.TestCase):
    """By what the function does: what stint is told, what ctx.step raises or returns
    (None: the process ends), and what stands on stderr."""

    def act(self, what: str, group: bool) -> "Tuple[Dict[str, Any], Optional[Dict[str, Any]], int, str]":
        with mistakes("step_of_group" if group else "step") as a:
            a.send(loop(inbox=[prompt(what)]))
            declared = a.recv()
            self.assertEqual(declared["type"], "steps" if group else "step")
            a.proceed(1)
            told = a.recv()
            self.assertEqual((told["type"], told["id"]), ("result", 1), told)
            if group:
                a.proceed(2)
                self.assertEqual(a.recv(), {"type": "result", "id": 2, "result": 2})
            line = a.line()
            code, stderr = a.close() if line is not None else (a.process.wait(PATIENCE), a.stderr())
            return told, json.loads(line) if line is not None else None, code, stderr

    def check(self, what: str, told: "Dict[str, Any]", got: object, said: str = "") -> None:
        for group in (False, True):
            with self.subTest(what, group=group):
                answer, end, code, stderr = self.act(what, group)
                answer = {k: v for k, v in answer.items() if k not in ("type", "id")}
                text = json.dumps(told, ensure_ascii=False).replace("step act runs", "a group runs" if group else "step act runs")
                text = text.replace("step act is", "a group is" if group else "step act is")
                self.assertEqual(answer, json.loads(text))
                if got is Gone:
                    self.assertIsNone(end)
                    self.assertNotEqual(code, 0)
                else:
                    want = json.loads(text)["error"] if got is Same else got
                    done: Dict[str, Any] = {"type": "end", "outcome": "complete"}
                    self.assertEqual((end, code), (done if want is None else {**done, "result": want}, 0))
                self.assertIn(said, stderr)

    def refused(self, what: str, text: str) -> None:
        """A result that cannot be kept is an error that is recorded, for good."""
        text = "result of step act: $" + text
        self.check(what, {"error": text, "definite": True, "final": True}, "StepError: " + text)

    def test_state(self) -> None:
        for what, how in (("patch", "patch"), ("replace", "replace"), ("patch elsewhere", "patch")):
            self.check(what, {"error": LOST.format(how, "step act", how)}, Same)

    def test_steps_in_steps(self) -> None:
        for what in ("step", "group"):
            self.check(what, {"error": "RuntimeError: step act is already running; run steps at once with ctx.group"}, Same)

    def test_leaves(self) -> None:
        self.check("exit", {"error": "SystemExit: 3"}, Gone)
        self.check("exit with a text", {"error": "SystemExit: no access"}, Gone, "no access")
        self.check("interrupt", {"error": "KeyboardInterrupt"}, Gone, "KeyboardInterrupt")
        self.check("parks", {"error": PARKED}, Gone, "the program raised Parked itself")

    def test_texts_of_errors(self) -> None:
        self.check("blank", {"error": "ValueError"}, "ValueError: \n  \n")
        self.check("undecodable", {"error": "OSError: no file \\udcff"}, Gone, "result: $: half of a surrogate pair")
        self.check("mute", {"error": "Mute"}, Gone, "Mute")

    def test_recorded_errors_read_the_same_both_times(self) -> None:
        for what, text in (
            ("many lines", "declined\n  by the bank"),
            ("no word", "the step failed without a word"),
            ("long", "é" * 30718 + "…"),
        ):
            self.check(what, {"error": text, "definite": True}, "StepError: " + text)
            self.assertLessEqual(len(text.encode()), 60 << 10)

    def test_results(self) -> None:
        self.refused("generator", ": JSON cannot hold a generator; write list(value)")
        self.refused("coroutine", ": JSON cannot hold a coroutine; it was not awaited: write asyncio.run(...)")
        self.refused("nan", ".rate: JSON cannot hold nan")
        self.refused("keys", "[1]: a name in a JSON object is a string, not a int; write str(key)")
        self.refused("surrogate", ".name: half of a surrogate pair at character 0; JSON in UTF-8 cannot hold it")
        self.refused(
            "huge", ": 33554434 bytes of JSON, and a value may have 33554432; store large data outside and keep a reference"
        )
        self.refused("exception", ": JSON cannot hold a ValueError; raise it, or write str(value)")
        self.refused("next", ": JSON cannot hold a Continue; write dataclasses.asdict(value)")

    def test_fine(self) -> None:
        self.check("prints", {"result": None}, None, "for people\n")
        self.check("awaits", {"result": 1}, 1)
        self.check("forks", {"result": None}, None, "a child process cannot talk to stint")
        text = "RuntimeError: stint.main was called before; a program calls it once, and it serves every loop"
        self.check("main", {"error": text}, Same)


class Outside(unittest.TestCase):
    """What is done between steps."""

    def lines(self, what: str, state: str = "null") -> "Tuple[List[Dict[str, Any]], int, str]":
        with mistakes("loop") as a:
            a.send(loop(state, inbox=[prompt(what)]))
            got: List[Dict[str, Any]] = []
            while not got or got[-1]["type"] != "end":
                line = a.line()
                if line is None:
                    return got, a.process.wait(PATIENCE), a.stderr()
                got.append(json.loads(line))
                calls = got[-1].get("steps", [got[-1]] if got[-1]["type"] == "step" else [])
                for call in calls:
                    a.proceed(call["id"])
            return got, *a.close()

    def fails(self, what: str, said: str, state: str = "null") -> None:
        with self.subTest(what):
            got, code, stderr = self.lines(what, state)
            self.assertEqual(got, [])
            self.assertNotEqual(code, 0)
            self.assertIn(said, stderr)

    def ends(self, what: str, kinds: "List[str]", result: object, state: str = "null") -> "List[Dict[str, Any]]":
        with self.subTest(what):
            got, code, stderr = self.lines(what, state)
            self.assertEqual(([m["type"] for m in got], code), (kinds, 0), stderr)
            self.assertEqual(got[-1], {"type": "end", "outcome": "complete", "result": result})
            return got
        return []

    def test_refused(self) -> None:
        self.fails("step in a thread", "a step is begun by the thread that the loop runs in")
        self.fails("called too early", "step a: fn is a function, not a float; write lambda: ... around a call")
        self.fails("async", "step a: fn is an async function, which nobody would await; write lambda: asyncio.run(...)")
        self.fails("wants its input", "step a: fn requires url, and all that it is given is the idempotency key")
        self.fails("group of pairs", "a group is made of Call, not of tuple")
        self.fails("parks itself", "return Wait.for_message() or Wait.until() to have the session wait")
        self.fails("interrupted", "KeyboardInterrupt")
        self.fails("asks people", "EOFError")
        self.fails("class", "a loop returned the class Continue itself; call it: Continue(...)")
        self.fails("coroutine", "a loop returns Continue, Complete, Wait, Fail or None, not coroutine")
        self.fails("text", "a loop returns Continue, Complete, Wait, Fail or None, not str")

    def test_fine(self) -> None:
        self.ends("patch in a thread", ["state", "end"], "fine")
        self.ends("group of a generator", ["steps", "result", "result", "end"], [1, 1])
        got = self.ends("same name", ["step", "result", "step", "result", "end"], [0, 1])
        self.assertEqual([m["id"] for m in got[:4]], [1, 1, 2, 2])
        self.ends("forks", ["end"], "fine")

    def test_state_changed_in_place(self) -> None:
        got = self.ends("changes the state", ["log", "end"], "fine", '{"n":1}')
        self.assertEqual(got[0]["level"], "warn")
        self.assertIn("call ctx.replace(ctx.state)", got[0]["text"])
        self.ends("changes and writes", ["state", "end"], "fine", '{"n":1}')


class Main(unittest.TestCase):
    def run_it(self, name: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(HERE / "mistakes.py"), name],
            env={"PYTHONPATH": str(SDK), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            **more,
        )

    def test_what_it_is_given(self) -> None:
        for name, said in (
            ("wrong", "main takes an ordinary function; write stint.main(lambda ctx: asyncio.run(loop(ctx)))"),
            ("called", "main takes the loop function itself, not a Complete: stint.main(loop)"),
            ("twice", "stint.main was called before"),
        ):
            with self.subTest(name):
                done = self.run_it(name, input="")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(said, done.stderr)

    def test_started_by_hand(self) -> None:
        ours, theirs = os.openpty()
        try:
            done = self.run_it("loop", stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("stint run AGENT", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""What an agent written with the SDK says, and when: a real process, real pipes."""

from __future__ import annotations

import json
import unittest
from typing import Any, Dict, List

from tests.fake import agent, golden, loop, prompt

DONE = '{"type":"end","outcome":"complete"}'


class Golden(unittest.TestCase):
    """Each agent says exactly what its transcript says, and then exits as it should."""

    def check(self, name: str, transcript: str = "", code: int = 0) -> str:
        with agent(name) as a:
            a.play(golden(transcript or name))
            # Out of a failed loop the agent goes by itself; else it awaits the next one.
            got, stderr = a.gone() if code else a.close()
        self.assertEqual(got, code, stderr)
        if code == 0:
            self.assertEqual(stderr, "")
        return stderr

    def test_one_loop(self) -> None:
        self.check("refund")

    def test_begun_again_with_its_steps_in_the_journal(self) -> None:
        self.check("refund", "refund-again")

    def test_parked(self) -> None:
        self.check("refund", "refund-parked")

    def test_group_out_of_order(self) -> None:
        self.check("group")

    def test_group_parked_while_a_sibling_runs(self) -> None:
        self.check("group_parked")

    def test_children(self) -> None:
        self.check("spawn")
        self.check("spawn", "spawn-ended")

    def test_state_patches(self) -> None:
        self.check("state")

    def test_state_replaced(self) -> None:
        self.check("replace")

    def test_process_kept_over_loops(self) -> None:
        self.check("keep")

    def test_outcomes(self) -> None:
        for name in ("wait-time", "wait-message", "complete", "complete-bare", "fail", "retry"):
            with self.subTest(name):
                self.check("outcome", "outcome-" + name)

    def test_errors_of_steps(self) -> None:
        self.check("errors")

    def test_definite_and_final(self) -> None:
        stderr = self.check("final", code=1)
        self.assertIn("StepError: account closed", stderr)

    def test_retry_from_a_step(self) -> None:
        self.check("retry")

    def test_in_doubt(self) -> None:
        self.check("doubt")


class Park(unittest.TestCase):
    def test_parked_again_without_asking(self) -> None:
        """An agent that catches everything is parked all the same: it declares no
        further step and writes no end."""
        with agent("swallow") as a:
            a.send(loop())
            self.assertEqual(a.recv()["type"], "step")
            a.send('{"type":"park","id":1,"reason":"paused"}')
            code, stderr = a.close()
        self.assertEqual((code, stderr.count("caught Parked")), (0, 3), stderr)

    def test_except_exception_lets_it_through(self) -> None:
        with agent("polite") as a:
            a.send(loop())
            self.assertEqual(a.recv()["type"], "step")
            a.send('{"type":"park","id":1,"reason":"paused"}')
            code, stderr = a.close()
        self.assertEqual((code, stderr), (0, "cleaned up\n"))

    def test_parked_process_serves_the_next_loop(self) -> None:
        with agent("polite") as a:
            a.send(loop())
            a.recv()
            a.send('{"type":"park","id":1,"reason":"paused"}', loop(attempt=1))
            self.assertEqual(a.recv()["id"], 1)
            a.proceed(1)
            self.assertEqual(a.recv(), {"type": "result", "id": 1, "result": 1})
            self.assertEqual(a.recv(), {"type": "end", "outcome": "complete", "reason": "went on"})
            self.assertEqual(a.close()[0], 0)


class Steps(unittest.TestCase):
    def test_result_is_as_the_journal_will_have_it(self) -> None:
        for answer in ('{"type":"proceed","id":1,"key":"k","step":"1.1"}', '{"type":"result","id":1,"result":{"a":[1,2]}}'):
            with self.subTest(answer), agent("shape") as a:
                a.send(loop())
                self.assertEqual(a.recv()["name"], "shape")
                a.send(answer)
                if "proceed" in answer:
                    self.assertEqual(a.recv(), {"type": "result", "id": 1, "result": {"a": [1, 2]}})
                self.assertEqual(a.recv(), {"type": "end", "outcome": "complete", "result": "list"})
                self.assertEqual(a.close(), (0, ""))


class Groups(unittest.TestCase):
    def test_members_run_at_the_same_time(self) -> None:
        with agent("together") as a:
            a.send(loop())
            self.assertEqual(len(a.recv()["steps"]), 2)
            a.proceed(2)
            a.proceed(1)
            got = sorted(a.recv()["id"] for _ in range(2))
            self.assertEqual(got, [1, 2])
            self.assertEqual(a.line(), DONE)
            self.assertEqual(a.close()[0], 0)

    def test_first_error_in_the_order_of_calls(self) -> None:
        with agent("group_errors") as a:
            a.send(loop())
            self.assertEqual(len(a.recv()["steps"]), 3)
            results: Dict[int, Any] = {}
            for id in (3, 2, 1):
                a.proceed(id)
                got = a.recv()
                results[got["id"]] = got
            self.assertEqual(results[1], {"type": "result", "id": 1, "result": 1})
            self.assertEqual(results[2]["error"], "OSError: second")
            self.assertEqual(results[3]["error"], "OSError: third")
            self.assertEqual(a.recv(), {"type": "end", "outcome": "complete", "reason": "second"})
            self.assertEqual(a.close(), (0, "caught second\n"))

    def test_park_comes_before_an_error(self) -> None:
        with agent("group_errors") as a:
            a.send(loop())
            self.assertEqual(len(a.recv()["steps"]), 3)
            a.proceed(2)
            self.assertEqual(a.recv()["error"], "OSError: second")
            a.send('{"type":"park","id":3,"reason":"paused"}')
            a.proceed(1)
            self.assertEqual(a.recv(), {"type": "result", "id": 1, "result": 1})
            self.assertEqual(a.close(), (0, ""))


class Endings(unittest.TestCase):
    def test_exception_ends_the_process(self) -> None:
        for what, said in (
            ("raise", "LookupError: no such order"),
            ("wrong", "a loop returns Continue, Complete, Wait, Fail or None, not dict"),
            ("bad result", "TypeError: result: $.jobs[0].done: JSON cannot hold a set"),
        ):
            with self.subTest(what), agent("outcome") as a:
                a.send(loop(inbox=[prompt(what)]))
                code, stderr = a.gone()
                self.assertEqual(code, 1)
                self.assertIn("Traceback", stderr)
                self.assertIn(said, stderr)

    def test_exit_code_of_sys_exit(self) -> None:
        with agent("quits") as a:
            a.send(loop())
            self.assertEqual(a.gone(), (3, ""))

    def test_nothing_to_do(self) -> None:
        with agent("keep") as a:
            self.assertEqual(a.close(), (0, ""))

    def test_stint_goes_within_a_step(self) -> None:
        for name, caught in (("swallow", 3), ("polite", 0)):
            with self.subTest(name), agent(name) as a:
                a.send(loop())
                self.assertEqual(a.recv()["type"], "step")
                code, stderr = a.close()
                self.assertEqual((code, stderr.count("caught Parked")), (1, caught), stderr)
                self.assertIn("stint closed stdin within the loop", stderr)

    def test_stint_no_longer_reads(self) -> None:
        with agent("swallow", hang_up_after=1) as a:
            a.send(loop())
            self.assertEqual(a.recv()["type"], "step")
            a.proceed(1)
            code, stderr = a.gone()
            self.assertEqual((code, stderr.count("caught Parked")), (1, 3), stderr)
            self.assertIn("stint no longer reads", stderr)

    def test_thread_that_outlives_its_loop(self) -> None:
        with agent("straggler") as a:
            a.send(loop())
            self.assertEqual(a.recv(), {"type": "end", "outcome": "continue"})
            a.send(loop(loop=2))
            self.assertEqual(a.line(), DONE)
            self.assertEqual(a.close(), (0, "loop 1 is over; a thread of it still uses its Loop\n"))


class Pipes(unittest.TestCase):
    def test_stray_output_goes_to_stderr(self) -> None:
        with agent("noise") as a:
            a.send(loop())
            self.assertEqual(a.recv()["name"], "child")
            a.proceed(1)
            self.assertEqual(a.recv(), {"type": "result", "id": 1, "result": 0})
            self.assertEqual(a.recv(), {"type": "end", "outcome": "complete", "result": ""})
            code, stderr = a.close()
        self.assertEqual(code, 0)
        self.assertEqual(
            stderr.splitlines(),
            [
                "before main",
                '{"type":"end","outcome":"complete"}',
                "to sys.stderr",
                "to sys.stdout",
                "to the first sys.stdout",
                "child got ''",
            ],
        )

    def test_long_and_odd_texts(self) -> None:
        with agent("chatty") as a:
            a.send(loop())
            pieces = [a.recv() for _ in range(3)]
            self.assertEqual("".join(p["text"] for p in pieces), "x" * (600 << 10))
            self.assertEqual(a.recv(), {"type": "log", "level": "info", "text": ""})
            self.assertEqual(a.recv(), {"type": "progress", "text": "p" * 120})
            self.assertEqual(a.recv(), {"type": "log", "level": "info", "text": "name \\udcff"})
            self.assertEqual(a.line(), DONE)
            self.assertEqual(a.close(), (0, ""))

    def test_what_stint_may_not_send(self) -> None:
        for sent, said in (
            (b"\n", "not JSON"),
            (b"[]\n", "not an object with a type"),
            (b'{"type":1}\n', "not an object with a type"),
            (b'{"type":"loop","v":1', "ended within a line"),
            (b'{"type":"loop","v":NaN}\n', "not JSON"),
            (b'{"type":"\xff"}\n', "not JSON"),
            (b'{"type":"proceed","id":1,"key":"k","step":"1.1"}\n', "type proceed between loops"),
            (b'{"type":"bonus"}\n', "type bonus between loops"),
            (b'{"type":"loop","v":2}\n', "version 2 of the protocol is not known"),
            (b'{"type":"loop","v":1}\n', "the loop message is not complete"),
        ):
            with self.subTest(sent), agent("keep") as a:
                a.send_bytes(sent)
                code, stderr = a.close()
                self.assertEqual(code, 1)
                self.assertIn(said, stderr)

    def test_what_stint_may_not_answer(self) -> None:
        for answer, said in (
            ('{"type":"proceed","id":2,"key":"k","step":"1.1"}', "a step that awaits none"),
            ('{"type":"proceed","id":true,"key":"k","step":"1.1"}', "a step that awaits none"),
            ('{"type":"proceed","id":1}', "no answer to a step: type proceed"),
            ('{"type":"result","id":1}', "no answer to a step: type result"),
            ('{"type":"result","id":1,"error":1}', "no answer to a step: type result"),
            ('{"type":"bonus","id":1}', "no answer to a step: type bonus"),
            (loop(), "an answer of type loop"),
        ):
            with self.subTest(answer), agent("swallow") as a:
                a.send(loop())
                self.assertEqual(a.recv()["type"], "step")
                a.send(answer)
                code, stderr = a.gone()
                self.assertEqual(code, 1)
                self.assertIn(said, stderr)
                self.assertIn("caught ProtocolError", stderr)

    def test_unknown_members_are_ignored(self) -> None:
        with agent("keep") as a:
            a.send(loop(bonus={"a": 1}))
            self.assertEqual(a.recv()["type"], "step")
            a.send('{"bonus":[],"type":"proceed","id":1,"key":"k","step":"1.1"}')
            self.assertEqual(a.recv(), {"type": "result", "id": 1, "result": 1})
            self.assertEqual(a.recv()["type"], "state")
            self.assertEqual(a.recv(), {"type": "end", "outcome": "continue"})
            self.assertEqual(a.close(), (0, ""))


class Given(unittest.TestCase):
    """What a loop is given."""

    def mirror(self, line: str) -> Dict[str, Any]:
        with agent("mirror") as a:
            a.send(line)
            got = a.recv()
            self.assertEqual(a.close(), (0, ""))
        self.assertEqual(got["outcome"], "complete")
        result = got["result"]
        assert isinstance(result, dict)
        return result

    def test_who_and_where(self) -> None:
        got = self.mirror(loop(line=2, loop=7, attempt=3, epoch=11))
        self.assertEqual(got["session"], ["01jz6q8c4v5m0n9r3x7k2t1abc", "refunds", "refunder", {"team": "billing"}])
        self.assertEqual(got["position"], [2, 7, 3, 11])
        self.assertEqual((got["state"], got["raw_state"], got["inbox"]), (None, "null", []))

    def test_state_keeps_its_tokens(self) -> None:
        digits = "7" * 5000
        raw = '{"state":{"inbox":[]},"a":1.50,"b":1e2,"c":"\\u00e9\\/","n":' + digits + "}"
        got = self.mirror(loop(state=raw))
        self.assertEqual(got["raw_state"], raw)
        self.assertEqual(got["state"]["state"], {"inbox": []})
        self.assertEqual(got["state"]["n"], digits)

    def test_bodies(self) -> None:
        base: Dict[str, Any] = {"id": "m", "kind": "prompt", "from": "hook:git", "at": "2026-03-02T11:30:00.123456789+02:00"}
        messages: List[Dict[str, Any]] = [
            {**base, "text": "héllo"},
            {**base, "text": ""},
            {**base, "body": {"b": 1.5, "n": None}},
            {**base, "body": None, "kind": "decision"},
            {**base, "base64": "/wBB"},
        ]
        got = self.mirror(loop(inbox=messages))["inbox"]
        when = "2026-03-02T11:30:00.123456+02:00"
        self.assertEqual(got[0], ["m", "prompt", "hook:git", when, "héllo", list("héllo".encode()), "none"])
        self.assertEqual(got[1][4:], ["", [], "none"])
        self.assertEqual(got[2][4:], ['{"b":1.5,"n":null}', list(b'{"b":1.5,"n":null}'), {"b": 1.5, "n": None}])
        self.assertEqual((got[3][1], got[3][4], got[3][6]), ("decision", "null", None))
        self.assertEqual(got[4][4:], ["\ufffd\x00A", [255, 0, 65], "none"])


class Refused(unittest.TestCase):
    def test_values_that_json_cannot_hold(self) -> None:
        with agent("bad_values") as a:
            a.send(loop())
            self.assertEqual(a.recv(), {"type": "state", "patch": {"kept": 1}})
            logged = []
            while (got := a.recv())["type"] == "log":
                logged.append(got["text"])
            want = [
                "TypeError: {}: $.jobs[1].done: JSON cannot hold a set; write sorted(value) or list(value)",
                "TypeError: {}: $.at: JSON cannot hold a datetime; write value.isoformat()",
                "ValueError: {}: $.x[0]: the value contains itself",
                "ValueError: {}: $.name: half of a surrogate pair at character 0; JSON in UTF-8 cannot hold it",
            ]
            self.assertEqual(logged, [w.format(how) for w in want for how in ("patch", "replace")])
            self.assertEqual(got, {"type": "state", "patch": {"kept": 2}})
            self.assertEqual(
                a.recv()["text"], "input of step send: $.raw: JSON cannot hold a bytes; write it as text, or as base64"
            )
            step = a.recv()
            self.assertEqual((step["name"], step["type"]), ("list", "step"))
            a.proceed(step["id"])
            bad = "result of step list: $.found: JSON cannot hold a set; write sorted(value) or list(value)"
            self.assertEqual(
                a.recv(), {"type": "result", "id": step["id"], "error": bad, "definite": True, "final": True}
            )
            self.assertEqual(a.recv(), {"type": "log", "level": "warn", "text": bad})
            self.assertEqual(a.line(), DONE)
            self.assertEqual(a.close(), (0, ""))

    def test_misuse(self) -> None:
        with agent("misuse") as a:
            a.send(loop())
            step = a.recv()
            self.assertEqual(step["name"], "outer")
            a.proceed(step["id"])
            self.assertEqual(
                a.recv()["error"], "RuntimeError: step outer is already running; run steps at once with ctx.group"
            )
            self.assertEqual(a.recv(), {"type": "end", "outcome": "complete", "reason": "[]", "result": True})
            self.assertEqual(a.close()[0], 0)


class Transcripts(unittest.TestCase):
    def test_harness_notices_a_difference(self) -> None:
        """A transcript with another ending than the agent's is refused."""
        with agent("refund") as a, self.assertRaisesRegex(AssertionError, "line 10"):
            a.play(golden("refund").replace("refunded A-18", "refunded A-19"))

    def test_lines_are_compact_json(self) -> None:
        for name in ("refund", "group", "state", "errors"):
            for line in golden(name).splitlines():
                message = json.loads(line[2:])
                self.assertEqual(next(iter(message)), "type")


if __name__ == "__main__":
    unittest.main()

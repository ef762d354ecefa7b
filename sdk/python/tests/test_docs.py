"""docs/exec-protocol.md says what is so: its transcript is one of the tested ones, its
agents work, and its tables name the members that the schema has."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
from typing import Dict, List, Set

from tests.fake import PATIENCE, SDK, Agent, golden, loop, prompt

DOCS = SDK.parent.parent / "docs"
TEXT = (DOCS / "exec-protocol.md").read_text(encoding="utf-8")
SCHEMA = json.loads((DOCS / "exec-protocol.schema.json").read_text(encoding="utf-8"))

TABLES = {
    "stint to the agent": ["loop", "message", "finished", "proceed", "answer", "park"],
    "The agent to stint": ["step", "steps", "spawn", "result", "log", "progress", "state", "end"],
}


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)
    if len(found) != 1:
        raise AssertionError(f"{len(found)} blocks of {language}")
    return str(found[0])


def tables(section: str) -> List[Set[str]]:
    """The names in the first column of each table of a section."""
    found: List[Set[str]] = []
    body = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    for line in body.splitlines():
        if line.startswith("| member"):
            found.append(set())
        elif line.startswith("| `"):
            found[-1].update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return found


class Docs(unittest.TestCase):
    def test_transcript(self) -> None:
        self.assertEqual(block("jsonl"), golden("refund"))

    def test_members(self) -> None:
        for section, names in TABLES.items():
            found = tables(section)
            self.assertEqual(len(found), len(names), section)
            for name, members in zip(names, found):
                self.assertEqual(members, set(SCHEMA["$defs"][name]["properties"]) - {"type"}, name)

    def test_members_described_in_a_cell(self) -> None:
        for name in ("session", "usage", "wait"):
            for member in SCHEMA["$defs"][name]["properties"]:
                self.assertIn(f"`{member}`", TEXT, f"{name}.{member}")

    def test_every_message_is_of_the_schema(self) -> None:
        listed = {"toAgent": TABLES["stint to the agent"], "toStint": TABLES["The agent to stint"]}
        for side, names in listed.items():
            refs = [r["$ref"].rsplit("/", 1)[1] for r in SCHEMA["$defs"][side]["oneOf"]]
            self.assertEqual(refs, [n for n in names if n not in ("message", "finished")])

    def test_python_agent(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "agent.py"
            script.write_text(block("python"), encoding="utf-8")
            self.assertLessEqual(len(block("python").splitlines()), 17)
            for state, answer, outcome in (
                ("null", "proceed", "continue"),
                ('{"seen":2}', "result", "complete"),
                ("null", "park", ""),
            ):
                with self.subTest(answer), Agent(script) as a:
                    a.send(loop(state))
                    self.assertEqual(a.recv()["effect"], "read")
                    if answer == "proceed":
                        a.proceed(1)
                        self.assertGreater(a.recv()["result"], 0)
                    elif answer == "result":
                        a.send('{"type":"result","id":1,"result":7,"cached":true}')
                    else:
                        a.send('{"type":"park","id":1,"reason":"paused"}')
                    if outcome:
                        self.assertEqual(a.recv()["type"], "state")
                        self.assertEqual(a.recv()["outcome"], outcome)
                    self.assertEqual(a.gone(), (0, ""))

    def test_readme(self) -> None:
        """The program at the top of the SDK's own page, with a shop that sells."""
        text = (SDK / "README.md").read_text(encoding="utf-8")
        (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        shop = """
class shop:
    find = staticmethod(lambda order: {"order": order, "cents": 2100})
    refund = staticmethod(lambda order, idempotency_key: [order, idempotency_key])
"""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "agent.py"
            script.write_text(shop + program, encoding="utf-8")
            with Agent(script) as a:
                a.send(loop('{"refunded":["A-17"]}', inbox=[prompt("A-18")]))
                found = {"order": "A-18", "cents": 2100}
                step = a.recv()
                self.assertEqual((step["name"], step["effect"], step["input"]), ("find order", "read", "A-18"))
                a.proceed(1)
                self.assertEqual(a.recv()["result"], found)
                step = a.recv()
                self.assertEqual((step["name"], step["effect"], step["input"]), ("refund", "idempotent", found))
                a.proceed(2, "key-2")
                self.assertEqual(a.recv()["result"], ["A-18", "key-2"])
                self.assertEqual(a.recv()["patch"], {"refunded": ["A-17", "A-18"]})
                self.assertEqual(a.recv()["wait"], {"for": "message", "what": "the next order"})
                self.assertEqual(a.close(), (0, ""))

    def test_shell_agent(self) -> None:
        for answer, want in (
            ('{"type":"proceed","id":1,"key":"k","step":"1.1"}', ["step", "result", "end"]),
            ('{"type":"result","id":1,"result":"Monday","cached":true}', ["step", "end"]),
            ('{"type":"park","id":1,"reason":"paused"}', ["step"]),
        ):
            with self.subTest(answer):
                done = subprocess.run(
                    ["sh", "-c", block("sh")],
                    input=loop() + "\n" + answer + "\n",
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                    timeout=PATIENCE,
                )
                said: List[Dict[str, object]] = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertEqual([m["type"] for m in said], want)


if __name__ == "__main__":
    unittest.main()

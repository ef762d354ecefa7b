"""The examples, as a stint would run them."""

from __future__ import annotations

import hashlib
import json
import pathlib
import tempfile
import unittest
from typing import Any, Dict, List, Optional, Tuple

from tests.fake import SDK, Agent, loop, prompt

EXAMPLES = SDK / "examples"


class Stint:
    """Takes a session through its loops, each in a process of its own."""

    def __init__(self, script: str, **env: str) -> None:
        self.script = script
        self.env = env
        self.state: Any = None
        self.loop = 0
        self.end: Dict[str, Any] = {}

    def once(self, text: str = "", die_after: str = "", journal: "Optional[Dict[int, Any]]" = None) -> Dict[int, Any]:
        """Run one loop and return the results of its steps. die_after names a step
        after whose result the process is killed, as if stint had not heard of it.
        journal has results from before."""
        journal = dict(journal or {})
        inbox = [prompt(text)] if text else []
        state = self.state
        with Agent(EXAMPLES / self.script, env=self.env) as a:
            a.send(loop(json.dumps(state), inbox, loop=self.loop + 1))
            while True:
                m = a.recv()
                if m["type"] == "step" and m["id"] in journal:
                    a.send(json.dumps({"type": "result", "id": m["id"], "result": journal[m["id"]], "cached": True}))
                elif m["type"] == "step":
                    place = f"{self.loop + 1}.{m['id']}"
                    a.send(json.dumps({"type": "proceed", "id": m["id"], "key": f"key-{place}", "step": place}))
                    got = a.recv()
                    if m["name"] == die_after:
                        return journal
                    journal[m["id"]] = got["result"]
                elif m["type"] == "state":
                    state = m["replace"]
                elif m["type"] == "end":
                    self.end, self.state, self.loop = m, state, self.loop + 1
                    code, stderr = a.close()
                    assert (code, stderr) == (0, ""), stderr
                    return journal

    def to_the_end(self, text: str = "", die_after: str = "") -> int:
        """Run loops until one completes or fails; in each, die once at the step
        named, if any. Returns the number of loops."""
        while self.end.get("outcome", "continue") == "continue":
            journal = self.once(text, die_after) if die_after else None
            self.once(text, journal=journal)
            text = ""
        return self.loop


class Counter(unittest.TestCase):
    def test_counts(self) -> None:
        s = Stint("counter.py")
        self.assertEqual(s.to_the_end("3"), 3)
        self.assertEqual(s.end, {"type": "end", "outcome": "complete", "reason": "counted", "result": 3})
        self.assertEqual(s.state, {"n": 3, "to": 3})


class RepoDigest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "digest.jsonl"
        self.root = pathlib.Path(folder.name) / "repo"
        for name, text in (
            ("main.go", "package main\n\nfunc main() {\n}\n"),
            ("b/z.go", "package b\n\ntype T int\n\nfunc (T) F() {}\nfunc g() {}"),
            ("b/a.go", "package b\r\n"),
            ("b/note.txt", "func not code\n"),
            ("b.x/x.go", ""),
            ("b/c/deep/d.go", "package deep\n"),
            ("vendor/v/v.go", "package v\n"),
            (".git/g.go", "package g\n"),
            ("_old/o.go", "package o\n"),
            ("b/testdata/t.go", "package t\n"),
            ("empty/readme", ""),
        ):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    want: List[Tuple[str, int, int, int, int]] = [
        (".", 1, 4, 1, 0),
        ("b", 2, 7, 2, 1),
        ("b.x", 1, 0, 0, 0),
        ("b/c/deep", 1, 1, 0, 0),
    ]

    def written(self) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def check(self, s: Stint) -> None:
        got = [(w["package"], w["files"], w["lines"], w["funcs"], w["types"]) for w in self.written()]
        self.assertEqual(got, self.want)
        self.assertEqual(len({w["key"] for w in self.written()}), 4)
        self.assertEqual(s.end["result"], {"packages": 4, "files": 5, "lines": 12})
        self.assertEqual(s.state["next"], None)
        self.assertEqual(s.state["done"][1], {"package": "b", "files": 2, "lines": 7})

    def test_one_package_a_loop(self) -> None:
        s = Stint("repo_digest.py", STINT_DIGEST_FILE=str(self.out))
        self.assertEqual(s.to_the_end(str(self.root)), 4)
        self.check(s)
        whole = hashlib.sha256()
        for name in ("a.go", "z.go"):
            whole.update(f"{hashlib.sha256((self.root / 'b' / name).read_bytes()).hexdigest()}  {name}\n".encode())
        self.assertEqual(self.written()[1]["sum"], whole.hexdigest())

    def test_each_line_once_over_crashes(self) -> None:
        for step in ("first package", "digest package", "append line"):
            with self.subTest(step):
                self.out.unlink(missing_ok=True)
                s = Stint("repo_digest.py", STINT_DIGEST_FILE=str(self.out), STINT_DIGEST_ROOT=str(self.root))
                s.once(die_after=step)
                if step != "first package":
                    s.to_the_end(die_after=step)
                s.to_the_end()
                self.check(s)

    def test_half_a_line_is_removed(self) -> None:
        self.out.write_bytes(b'{"key":"other"}\n{"key":"key-1.')
        s = Stint("repo_digest.py", STINT_DIGEST_FILE=str(self.out), STINT_DIGEST_ROOT=str(self.root))
        s.once()
        self.assertEqual([w["key"] for w in self.written()], ["other", "key-1.3"])

    def test_nothing_there(self) -> None:
        s = Stint("repo_digest.py", STINT_DIGEST_FILE=str(self.out), STINT_DIGEST_ROOT=str(self.root / "empty"))
        self.assertEqual(s.to_the_end(), 1)
        self.assertEqual(s.end["result"], {"packages": 0, "files": 0, "lines": 0})
        self.assertFalse(self.out.exists())

    def test_no_folder(self) -> None:
        s = Stint("repo_digest.py")
        self.assertEqual(s.to_the_end(), 1)
        self.assertEqual(s.end["outcome"], "fail")


if __name__ == "__main__":
    unittest.main()

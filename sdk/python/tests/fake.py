"""A stint that is small enough to be part of a test: it starts an agent and talks to
it over its pipes. Every wait has a deadline."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
from typing import Any, Dict, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent
SDK = HERE.parent
PATIENCE = 60.0
"""Seconds. Nothing takes as long; a test that fails for it has found a hang."""

SESSION = {"id": "01jz6q8c4v5m0n9r3x7k2t1abc", "name": "refunds", "agent": "refunder", "labels": {"team": "billing"}}


def loop(state: str = "null", inbox: "List[Dict[str, Any]] | None" = None, **more: Any) -> str:
    """A loop message. state is JSON text, so that it can be any."""
    head: Dict[str, Any] = {"type": "loop", "v": 1, "session": SESSION, "line": 0, "loop": 1, "attempt": 1, "epoch": 4}
    tail: Dict[str, Any] = {"inbox": inbox or [], "steps": []}
    for name, value in more.items():
        (tail if name in tail else head)[name] = value
    return _compact(head)[:-1] + ',"state":' + state + "," + _compact(tail)[1:]


def prompt(text: str) -> Dict[str, Any]:
    return {"id": "m-2", "kind": "prompt", "from": "human:ana", "at": "2026-03-02T09:30:00Z", "text": text}


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Agent:
    """A running agent. Use it in a with statement, which ends the process."""

    def __init__(self, script: pathlib.Path, *args: str, hang_up_after: int = 0, env: Optional[Dict[str, str]] = None) -> None:
        """hang_up_after: how many lines to read before the pipe is closed; 0: never."""
        self._stderr = tempfile.TemporaryFile()
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, str(script), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={
                **kept,
                "PYTHONPATH": str(SDK),
                "PYTHONDONTWRITEBYTECODE": "1",
                "STINT_PROTOCOL": "1",
                "TZ": "IST-5:30",  # so that local time taken for UTC is seen
                **(env or {}),
            },
        )
        self._hang_up_after = hang_up_after
        self._lines: "queue.Queue[Optional[str]]" = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        self._stderr.close()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._hang_up_after -= 1
            if self._hang_up_after == 0:  # before the line is handed on, so that the test knows
                self.process.stdout.close()
            self._lines.put(line.decode())
            if self._hang_up_after == 0:
                break
        self._lines.put(None)

    def send(self, *lines: str) -> None:
        assert self.process.stdin
        for line in lines:
            self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> Optional[str]:
        """The agent's next line, or None at the end of its output."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no line within {PATIENCE} s; stderr: {self.stderr()}") from None
        if line is not None and not line.endswith("\n"):
            raise AssertionError(f"half a line: {line!r}")
        return None if line is None else line[:-1]

    def recv(self) -> Dict[str, Any]:
        """The agent's next message."""
        line = self.line()
        if line is None:
            raise AssertionError(f"the agent's output ended; stderr: {self.stderr()}")
        # Longer integers than Python converts by itself stay text.
        message = json.loads(line, parse_int=lambda digits: int(digits) if len(digits) < 640 else digits)
        if not isinstance(message, dict):
            raise AssertionError(f"no object: {line}")
        return message

    def close(self) -> Tuple[int, str]:
        """End the agent's input; its exit code and stderr. It may write nothing more."""
        assert self.process.stdin
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.gone()

    def gone(self) -> Tuple[int, str]:
        """Wait for the agent's own exit; its exit code and stderr."""
        line = self.line()
        if line is not None:
            raise AssertionError(f"unexpected line: {line}")
        return self.process.wait(PATIENCE), self.stderr()

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    def play(self, transcript: str) -> None:
        """Send the > lines of a transcript and want the < lines, byte for byte."""
        for number, line in enumerate(transcript.splitlines(), 1):
            side, text = line[:2], line[2:]
            if side == "> ":
                self.send(text)
            elif side == "< ":
                got = self.line()
                if got != text:
                    raise AssertionError(f"line {number}\n want {text}\n  got {got}\n{self.stderr()}")
            else:
                raise AssertionError(f"line {number} begins with neither '> ' nor '< ': {line!r}")

    def proceed(self, id: int, key: str = "key") -> None:
        self.send(_compact({"type": "proceed", "id": id, "key": key, "step": f"1.{id}"}))


def agent(name: str, hang_up_after: int = 0) -> Agent:
    """Start one of agents.py."""
    return Agent(HERE / "agents.py", name, hang_up_after=hang_up_after)


def golden(name: str) -> str:
    return (HERE / "golden" / f"{name}.txt").read_text(encoding="utf-8")

"""The two pipes to stint, kept out of reach of everything else in the process."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, BinaryIO, Dict, Optional, Tuple

from . import _json
from ._errors import Parked, ProtocolError

MAX_LINE = 33 << 20
"""The longest line stint reads, its newline included."""


class Wire:
    """Lines to and from stint. send may be called from any thread; recv belongs to
    one at a time."""

    def __init__(self, reader: BinaryIO, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self.broken: Optional[str] = None
        """Why nothing can be sent or received any more; None while all is well."""

    def send(self, line: str) -> None:
        """Write one line. ValueError if it is too long, in which case nothing was
        written; Parked if stint is gone."""
        data = line.encode() + b"\n"
        if len(data) > MAX_LINE:
            raise ValueError(f"a message of {len(data)} bytes, and stint reads at most {MAX_LINE}; send less at once")
        with self._lock:
            self._alive()
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self._writer, rest) :]
            except OSError as e:
                self.broken = f"stint no longer reads: {e}"
                raise Parked(self.broken) from e

    def recv(self) -> Optional[Tuple[Dict[str, Any], str]]:
        """Read one message, with its text; None at the end of the input."""
        self._alive()
        try:
            data = self._reader.readline()
        except OSError as e:
            self.broken = f"stdin cannot be read: {e}"
            raise Parked(self.broken) from e
        if not data:
            return None
        if not data.endswith(b"\n"):
            raise self.violation("stdin ended within a line")
        try:
            text = data.decode()
            message = _json.loads(text)
        except (ValueError, RecursionError) as e:
            raise self.violation(f"a line is not JSON: {e}") from e
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise self.violation("a line is not an object with a type")
        return message, text

    def answer(self) -> Dict[str, Any]:
        """Read one message within a loop. Parked if stint ended the input: it stopped
        the session, lost it, or died."""
        got = self.recv()
        if got is None:
            self.broken = "stint closed stdin within the loop"
            raise Parked(self.broken)
        return got[0]

    def violation(self, what: str) -> ProtocolError:
        """Make the error for a message that breaks the protocol, after which neither
        side's lines can be trusted."""
        self.broken = f"protocol error: {what}"
        return ProtocolError(self.broken)

    def check_process(self) -> None:
        """RuntimeError in a child that was forked: it has the pipes too, and stint
        would take what both write for the words of one."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "a child process cannot talk to stint; give its result back to the process that stint started, and use ctx there"
            )

    def _alive(self) -> None:
        self.check_process()
        if self.broken is not None:
            raise Parked(self.broken)


_taken = False


def take_over() -> Wire:
    """Move the protocol's two pipes to descriptors that no child inherits. From here
    on, descriptor 0 reads nothing and descriptor 1 is stderr, so that neither a
    stray print nor a child process can take part in the protocol."""
    global _taken
    if _taken:
        raise RuntimeError("stint.main was called before; a program calls it once, and it serves every loop")
    _taken = True
    reader = os.fdopen(os.dup(0), "rb", 1 << 16)
    writer = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    if sys.stdout is not None:
        # What was printed so far and is still in the buffer goes to stderr too.
        sys.stdout.flush()
    sys.stdout = sys.stderr
    return Wire(reader, writer)


def quote(text: str) -> str:
    """Any string as JSON."""
    return json.dumps(_json.clean(text), ensure_ascii=False)

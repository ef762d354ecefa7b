"""Digest the Go files below a folder, one package a loop.

The folder is STINT_DIGEST_ROOT, or else the text of the prompt. For each folder with
``.go`` files, in the order of their paths, one line is appended to the file that
STINT_DIGEST_FILE names (``digest.jsonl`` in the current folder without it)::

    {"key":"...","package":"agent/exec","files":3,"lines":801,"funcs":40,"types":9,"sum":"..."}

``sum`` is the SHA-256 of what ``sha256sum`` prints for the files in the order of their
names. Functions and types are lines that begin with ``func`` and ``type``. As for the go
command, folders whose names begin with "." or "_", ``testdata`` and ``vendor`` are not
looked into.

It shows how an agent gets through a crash at any moment without a gap and without a
line written twice:

- What it looks up outside, it looks up in a ``read`` step, so that the rest of the loop
  sees the same files when it is begun again.
- The line is appended in an ``idempotent`` step: the step's key is in the line, and
  where a line with the key is already there, it is not written again. What a crash cut
  off in the middle is no line, and is removed before. (One session writes to a file at
  a time. A session that is restarted from an earlier loop has new keys from there on,
  and so writes those lines anew.)
- What it has done and where it goes on is in its state: ``root``, ``done`` with one
  object a package, and ``next``, the package of the next loop; null after the last.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Dict, Iterator, Optional

import stint_agent as stint

Object = Dict[str, Any]


def loop(ctx: stint.Loop) -> stint.Next:
    state = ctx.state or {"root": find_root(ctx), "done": [], "next": None}
    root = state["root"]
    if not root:
        return stint.Fail("no folder to digest: set STINT_DIGEST_ROOT, or give the folder as the prompt")
    if ctx.state is None:
        state["next"] = ctx.step("first package", lambda: package_after(root, None), input=root, effect="read")
    if state["next"] is not None:
        name = state["next"]
        ctx.progress(f"digesting {name}")
        place = {"root": root, "package": name}
        digest = ctx.step("digest package", lambda: digest_package(root, name), input=place, effect="read")
        line = {k: digest[k] for k in ("package", "files", "lines", "funcs", "types", "sum")}
        ctx.step("append line", lambda key: append_line(key, line), input=line, effect="idempotent")
        state["done"].append({k: digest[k] for k in ("package", "files", "lines")})
        state["next"] = digest["next"]
    ctx.replace(state)
    done = state["done"]
    if state["next"] is not None:
        return stint.Continue(headline=f"{len(done)} packages, next {state['next']}")
    totals = {
        "packages": len(done),
        "files": sum(d["files"] for d in done),
        "lines": sum(d["lines"] for d in done),
    }
    return stint.Complete(result=totals, reason=f"digested {len(done)} packages")


def find_root(ctx: stint.Loop) -> str:
    prompts = [m.text.strip() for m in ctx.inbox if m.kind == "prompt"]
    root = os.environ.get("STINT_DIGEST_ROOT") or (prompts[0] if prompts else "")
    return os.path.abspath(root) if root else ""


def packages(root: str) -> Iterator[str]:
    """Yield the folders with Go files, relative to root and with slashes; "." is root."""

    def give_up(error: OSError) -> None:
        raise error

    for folder, inner, names in os.walk(root, onerror=give_up):
        inner[:] = [n for n in inner if n[0] not in "._" and n not in ("testdata", "vendor")]
        if any(is_go(folder, n) for n in names):
            yield os.path.relpath(folder, root).replace(os.sep, "/")


def is_go(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return name.endswith(".go") and os.path.isfile(path) and not os.path.islink(path)


def package_after(root: str, name: Optional[str]) -> Optional[str]:
    """The first package, or the one that follows name; None after the last."""
    return min((p for p in packages(root) if name is None or p > name), default=None)


def digest_package(root: str, name: str) -> Object:
    folder = os.path.join(root, *name.split("/"))
    whole = hashlib.sha256()
    got: Object = {"package": name, "files": 0, "lines": 0, "funcs": 0, "types": 0}
    for file in sorted(n for n in os.listdir(folder) if is_go(folder, n)):
        with open(os.path.join(folder, file), "rb") as f:
            data = f.read()
        lines = data.split(b"\n")
        if lines[-1] == b"":  # behind the last newline
            lines.pop()
        got["files"] += 1
        got["lines"] += len(lines)
        got["funcs"] += sum(line.startswith(b"func ") for line in lines)
        got["types"] += sum(line.startswith(b"type ") for line in lines)
        whole.update(f"{hashlib.sha256(data).hexdigest()}  {file}\n".encode())
    return {**got, "sum": whole.hexdigest(), "next": package_after(root, name)}


def append_line(key: str, line: Object) -> str:
    """Append line with its key, unless a line with that key is there."""
    path = os.environ.get("STINT_DIGEST_FILE") or "digest.jsonl"
    with open(path, "a+b") as f:
        f.seek(0)
        old = f.read()
        whole = old[: old.rfind(b"\n") + 1]
        if any(json.loads(text).get("key") == key for text in whole.splitlines()):
            return "already there"
        f.truncate(len(whole))
        f.write(json.dumps({"key": key, **line}, separators=(",", ":")).encode() + b"\n")
        f.flush()
        os.fsync(f.fileno())
    return "appended"


if __name__ == "__main__":
    stint.main(loop)

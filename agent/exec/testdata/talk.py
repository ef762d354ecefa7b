"""What the agents of the tests have in common: each line in either direction is
also written to $TRANSCRIPT, as the agent meets it."""
import json
import os
import sys

_transcript = open(os.environ["TRANSCRIPT"], "a", encoding="utf-8")


def _note(mark, line):
    _transcript.write(mark + " " + line + "\n")
    _transcript.flush()


def say(message):
    """Sends an object, or a text as it is."""
    line = message if isinstance(message, str) else json.dumps(message, separators=(",", ":"))
    _note("<", line)
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def hear():
    """Returns stint's next object, None at the end."""
    line = sys.stdin.readline()
    if not line:
        _note(">", "(end of file)")
        return None
    _note(">", line.rstrip("\n"))
    return json.loads(line)


def effect(what):
    """Does something that can be counted."""
    with open(os.environ["EFFECTS"], "a") as f:
        f.write(what + "\n")

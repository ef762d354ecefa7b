"""The exceptions of the SDK."""

from __future__ import annotations

import math


class Parked(BaseException):
    """The session has to stop here: let this through.

    It is raised by ``ctx.step`` and ``ctx.group`` when the session waits for a
    person, a time or a raised limit, was paused or stopped, or when stint itself
    is gone. The loop begins again later, with its finished steps answered from
    the journal. It is a BaseException so that ``except Exception`` does not catch
    it; use ``finally`` to clean up.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Definite(Exception):
    """Raise it in a step's function when the outcome is known: the effect did not
    happen, or it happened and failed, and either way nothing is in doubt.

    It is journaled as the step's result: ``ctx.step`` raises :class:`StepError`,
    now and whenever the loop is begun again. ``final=True`` says that no further
    attempt can mend it: if the loop fails on it, the session fails.
    """

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


_LONGEST_RETRY = 30 * 24 * 3600


class Retry(Exception):
    """Raise it in a step's function or in the loop to have the loop begun again,
    not before the given seconds, at most 30 days, have passed. Finished steps are
    not done again; a ``once`` step that raises it is in doubt all the same."""

    def __init__(self, seconds: float, message: str = "") -> None:
        if not math.isfinite(seconds) or not 0 <= seconds <= _LONGEST_RETRY:
            raise ValueError(f"Retry wants a number of seconds from 0 to {_LONGEST_RETRY} (30 days), not {seconds!r}")
        super().__init__(message or f"try again in {seconds:g} s")
        self.seconds = seconds


class StepError(Exception):
    """The error that a step has as its recorded result. Live or from the journal,
    it is the same text, so that code that catches it does the same both times."""

    def __init__(self, message: str, *, step: str = "", cached: bool = False) -> None:
        super().__init__(message)
        self.step = step
        """The step's name."""
        self.cached = cached
        """True if the error came from the journal. Do not decide by it."""


class ProtocolError(Exception):
    """stint sent something that this version of the SDK cannot make sense of. The
    loop cannot go on; nothing more is written."""

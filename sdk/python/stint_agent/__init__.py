"""Write stint agents in Python.

::

    import stint_agent as stint

    def loop(ctx: stint.Loop) -> stint.Next:
        n = (ctx.state or {"n": 0})["n"] + 1
        ctx.patch({"n": n})
        return stint.Continue() if n < 3 else stint.Complete(result={"n": n})

    stint.main(loop)

stint starts the program, hands it one loop at a time, and journals its steps. **Code
outside a step is run again freely after a crash**: what acts on the outside, and
what is asked of it, belongs into ``ctx.step``. docs/exec-protocol.md describes what
goes over stdin and stdout.
"""

from ._errors import Definite, Parked, ProtocolError, Retry, StepError
from ._loop import Loop
from ._main import main
from ._types import Call, ChildEnd, Complete, Continue, Fail, Message, Next, Result, Session, Usage, Wait

__version__ = "0.1.0"

__all__ = [
    "Call",
    "ChildEnd",
    "Complete",
    "Continue",
    "Definite",
    "Fail",
    "Loop",
    "Message",
    "Next",
    "Parked",
    "ProtocolError",
    "Result",
    "Retry",
    "Session",
    "StepError",
    "Usage",
    "Wait",
    "main",
]

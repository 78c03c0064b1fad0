"""Inject faults for tests: the process dies, or the disk is full, at a named step.

`STREAMLEARN_FAULT=rename:3` kills the process the third time it reaches the step `rename`.
`rename:3:error` raises an OSError there instead (`rename:1-3:error`: three times), `stop` sends
SIGSTOP, `exit` calls os._exit, and `hang` blocks forever. Only this module reads the variable.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import Counter
from dataclasses import dataclass

VARIABLE = "STREAMLEARN_FAULT"
STEPS = (
    "flush",
    "write",
    "fsync",
    "rename",
    "fsync-directory",
    "commit",
    "claim",
    "take-over",
)
KINDS = ("kill", "exit", "error", "stop", "hang")


@dataclass(frozen=True, slots=True)
class Fault:
    """The kind of a fault, its step, and the first and last time the step triggers it."""

    step: str
    first: int
    last: int
    kind: str


def parse_fault(text: str) -> Fault:
    """Parse the environment variable.

    >>> parse_fault("rename")
    Fault(step='rename', first=1, last=1, kind='kill')
    >>> parse_fault("write:2-4:error")
    Fault(step='write', first=2, last=4, kind='error')
    """
    step, times, kind, *more = [*text.split(":"), *("1", "kill")[text.count(":") :]]
    first, _, last = times.partition("-")
    if more or step not in STEPS or kind not in KINDS or not first.isdigit():
        raise ValueError(
            f"{VARIABLE}={text!r}: expected STEP[:TIME[-TIME][:KIND]] where STEP is one of "
            f"{', '.join(STEPS)}, and KIND one of {', '.join(KINDS)}"
        )
    return Fault(step, int(first), int(last or first), kind)


_counts: Counter[str] = Counter()


def fault_point(step: str) -> None:
    """Trigger the fault, if the variable asks for one at this step."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    fault = parse_fault(text)
    _counts[step] += 1
    if fault.step == step and fault.first <= _counts[step] <= fault.last:
        trigger(fault)


def trigger(fault: Fault) -> None:
    """Cause the fault."""
    if fault.kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault.kind == "exit":
        os._exit(99)
    elif fault.kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif fault.kind == "error":
        raise OSError(errno.ENOSPC, f"injected fault at the step {fault.step}")
    else:
        threading.Event().wait()

"""Exceptions of this package."""
from __future__ import annotations

from typing import Optional


class GristmillError(Exception):
    """Base class of all exceptions of this package."""


class ShippingError(GristmillError):
    """A function cannot be sent to workers; the text has the reason and a remedy."""


class JobError(GristmillError):
    """A job did not start, failed, or was cancelled.

    `log` has the last output of the program.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class FunctionError(JobError):
    """A function of the job raised an exception on a worker.

    `traceback` is Python's traceback there, `exception` the name of its class, and `message` its text and notes.
    """

    def __init__(self, where: str, traceback: str, log: str = "") -> None:
        lines = traceback.rstrip().split("\n")
        frames = [at for at, line in enumerate(lines) if line.startswith("  File ")]
        rest = lines[frames[-1] + 1 if frames else 1 :]
        # The lines of the frame are indented; the text of the exception may have any lines.
        begin = next((at for at, line in enumerate(rest) if line and not line.startswith(" ")), 0)
        words = "\n".join(rest[begin:])
        self.exception, _, self.message = words.partition(": ")
        self.traceback = traceback
        self.where = where
        super().__init__(f"{where}: {words}\n\n{traceback}", log)


MARK = "Traceback (most recent call last):"
# Line between a long traceback and its last calls, which alone fit into the report of a failure.
LAST_CALLS = "\nThe last calls:\n"


def received(report: str) -> Optional[str]:
    """Returns the traceback in the report of a failed attempt, if any."""
    _, mark, rest = report.rpartition(LAST_CALLS)[2].partition(MARK)
    return mark + rest if mark else None

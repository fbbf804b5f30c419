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

    `traceback` is Python's traceback there, `exception` the name of its class, and `message` its text.
    """

    def __init__(self, where: str, traceback: str, log: str = "") -> None:
        last = traceback.rstrip().rsplit("\n", 1)[-1]
        self.exception, _, self.message = last.partition(": ")
        self.traceback = traceback
        self.where = where
        super().__init__(f"{where}: {last}\n\n{traceback}", log)


MARK = "Traceback (most recent call last):"


def received(report: str) -> Optional[str]:
    """Returns the traceback in the report of a failed attempt, if any."""
    _, mark, rest = report.partition(MARK)
    return mark + rest if mark else None

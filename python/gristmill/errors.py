"""What can go wrong, as exceptions."""
from __future__ import annotations

from typing import Optional


class GristmillError(Exception):
    """Anything that this package raises."""


class ShippingError(GristmillError):
    """A function cannot be sent to workers; the text says why, and what would help."""


class JobError(GristmillError):
    """A job did not come about, failed, or was cancelled.

    `log` has what the program has said last.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class FunctionError(JobError):
    """A function of the job raised an exception on a worker.

    `traceback` is what Python says of it there, `exception` the name of its class, and `message` its text.
    """

    def __init__(self, where: str, traceback: str, log: str = "") -> None:
        last = traceback.rstrip().rsplit("\n", 1)[-1]
        self.exception, _, self.message = last.partition(": ")
        self.traceback = traceback
        self.where = where
        super().__init__(f"{where}: {last}\n\n{traceback}", log)


MARK = "Traceback (most recent call last):"


def received(report: str) -> Optional[str]:
    """The traceback in the report of a failed attempt, if there is one."""
    _, mark, rest = report.partition(MARK)
    return mark + rest if mark else None

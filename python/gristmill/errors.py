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


# A line of a failure's report that has this in it would fall apart: the program writes it between lines.
BETWEEN_LINES = " ⏎ "
# What stands in its place on the way; nobody sees the difference.
IN_ITS_PLACE = " ⏎\N{NO-BREAK SPACE}"
MARK = "Traceback (most recent call last):"


def sent(traceback: str) -> str:
    """A traceback as a worker writes it to its standard error."""
    return traceback.replace(BETWEEN_LINES, IN_ITS_PLACE)


def received(report: str) -> Optional[str]:
    """The traceback in the report of a failed attempt, if there is one."""
    lines = report.replace(BETWEEN_LINES, "\n")
    _, mark, rest = lines.partition(MARK)
    return (mark + rest).replace(IN_ITS_PLACE, BETWEEN_LINES) if mark else None

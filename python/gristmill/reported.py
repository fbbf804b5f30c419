"""Reports of functions while they run on a worker: counters and status."""
from __future__ import annotations

import operator
import sys
from collections import Counter
from typing import Tuple


_counts: Counter[Tuple[str, str]] = Counter()


def count(name: str, amount: int = 1, group: str = "python") -> None:
    """Adds a whole number to a counter of the job. Commas and line ends in a name become blanks."""
    try:
        _counts[group, name] += operator.index(amount)
    except TypeError:
        raise TypeError(f"count({name!r}, {amount!r}): a counter takes whole numbers") from None


def tell_counts() -> None:
    """Reports the counts of this task so far; the end of the task does so automatically."""
    for names, amount in _counts.items():
        parts = (part.replace(",", " ").replace("\n", " ").replace("\r", " ") for part in names)
        sys.stderr.write(f"reporter:counter:{','.join(parts)},{amount}\n")
    _counts.clear()
    sys.stderr.flush()


def status(text: str) -> None:
    """Reports that a function is working, for one that takes minutes per record: a task without progress for ten is
    ended."""
    line = text.replace("\n", " ").replace("\r", " ")
    sys.stderr.write(f"reporter:status:{line}\n")
    sys.stderr.flush()

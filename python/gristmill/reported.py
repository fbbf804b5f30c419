"""What functions tell of their work while they run on a worker: counters, and that they are alive."""
from __future__ import annotations

import sys
from collections import Counter
from typing import Tuple


_counts: Counter[Tuple[str, str]] = Counter()


def count(name: str, amount: int = 1, group: str = "python") -> None:
    """Adds to a counter of the job. A name has no commas and no line ends; those become blanks."""
    _counts[group, name] += int(amount)


def tell_counts() -> None:
    """Says what this task has counted; its end does so by itself."""
    for names, amount in _counts.items():
        parts = (part.replace(",", " ").replace("\n", " ").replace("\r", " ") for part in names)
        sys.stderr.write(f"reporter:counter:{','.join(parts)},{amount}\n")
    _counts.clear()
    sys.stderr.flush()


def status(text: str) -> None:
    """Says that a function is at work, for one that takes minutes for a record: what stands still for ten is ended."""
    line = text.replace("\n", " ").replace("\r", " ")
    sys.stderr.write(f"reporter:status:{line}\n")
    sys.stderr.flush()

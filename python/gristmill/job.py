"""What a job of Python functions is."""
from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Tuple

Pairs = Iterable[Tuple[Any, Any]]
Reduce = Callable[[Any, Iterator[Any]], Pairs]


@dataclass(frozen=True)
class Job:
    """A mapper, and what is done with what it gives.

    `mapper(line)` gets each line of the input without its end, or `mapper(key, value)` each pair if the input is what another
    job gave, and returns or yields pairs. `reducer(key, values)` gets each key once, with an iterator over its values, and
    returns or yields the pairs of the result; without one the mapper's pairs are the result. `combiner` does what a reducer
    does, for the pairs of one map and before they travel: any number of times, so it must give pairs of the mapper's kind.

    Functions must give the same for the same input, as a task may run twice.
    """

    mapper: Callable[..., Pairs]
    reducer: Optional[Reduce] = None
    combiner: Optional[Reduce] = None
    # Parts of the result.
    reduces: int = 1
    # How the job is called; its mapper's name unless it is given.
    name: str = ""
    # Modules that workers are to have beside those that the functions name.
    modules: Sequence[ModuleType] = field(default=())
    # Properties, as `-D` of Hadoop Streaming takes them.
    properties: Sequence[Tuple[str, str]] = field(default=())
    # Values of pairs and of the result may be objects of any class. Reading them runs any code that a worker put there, with
    # the rights of this process or of another worker: only for clusters whose workers are all trusted.
    pickled: bool = False

    def __post_init__(self) -> None:
        for role in ("mapper", "reducer", "combiner"):
            function = getattr(self, role)
            if not callable(function) and (role == "mapper" or function is not None):
                raise TypeError(f"the {role} must be a function, and is {function!r}")
        if self.reduces < 1:
            raise ValueError(f"reduces={self.reduces}: there must be at least one; leave out the reducer for none")
        if self.combiner is not None and self.reducer is None:
            raise ValueError("a combiner without a reducer combines for nobody: leave it out, or name a reducer")

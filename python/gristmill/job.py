"""Definition of a job of Python functions."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Tuple, Union

Pairs = Iterable[Tuple[Any, Any]]
Reduce = Callable[[Any, Iterator[Any]], Pairs]


@dataclass(frozen=True)
class Job:
    """A mapper, and the functions that process its pairs.

    `mapper(line)` gets each line of the input without its end. If the input is the result of another job, `mapper(key, value)`
    gets each pair; with `per_file`, `mapper(path)` gets the path of each file. It returns or yields pairs.

    `reducer(key, values)` gets each key once, with an iterator over its values, and returns or yields the pairs of the result.
    Without a reducer the mapper's pairs are the result. `combiner` works like a reducer on the pairs of one map, before they
    are sent. It runs any number of times, so it must return pairs of the mapper's kind.

    Functions must return the same result for the same input, as a task may run twice.
    """

    mapper: Callable[..., Pairs]
    reducer: Optional[Reduce] = None
    combiner: Optional[Reduce] = None
    # Chooses the part of a key: `partitioner(key, reduces)` returns a number from 0 to `reduces` - 1. The default is a hash.
    partitioner: Optional[Callable[[Any, int], int]] = None
    # Secondary sort: the reducer gets each `group(key)` once, with the values of all keys of this group, in the order of these
    # keys. A partitioner gets the group.
    group: Optional[Callable[[Any], Any]] = None
    # The mapper gets paths and opens the files itself. Each file is one map; workers must reach it by the same path or URL.
    per_file: bool = False
    # Number of parts of the result.
    reduces: int = 1
    # Name of the job; the default is its mapper's name.
    name: str = ""
    # Modules that workers need besides those that the functions name.
    modules: Sequence[ModuleType] = field(default=())
    # Files that functions open by their names: they are copied to the working directory of each task.
    files: Sequence[Union[str, "os.PathLike[str]"]] = field(default=())
    # Properties, as for `-D` of Hadoop Streaming.
    properties: Sequence[Tuple[str, str]] = field(default=())
    # Allows objects of any class as values of pairs and of the result. Reading them runs any code that a worker put
    # there, with the rights of this process or of another worker: only for clusters whose workers are all trusted.
    pickled: bool = False

    def __post_init__(self) -> None:
        for role in ("mapper", "reducer", "combiner", "partitioner", "group"):
            function = getattr(self, role)
            if not callable(function) and (role == "mapper" or function is not None):
                raise TypeError(f"the {role} must be a function, and is {function!r}")
        if self.reduces < 1:
            raise ValueError(f"reduces={self.reduces}: there must be at least one; leave out the reducer for none")
        if self.combiner is not None and self.reducer is None:
            raise ValueError("a combiner without a reducer has nothing to combine for: leave it out, or name a reducer")
        if (self.partitioner or self.group) and self.reducer is None:
            raise ValueError("a partitioner and a group choose what a reducer gets: leave them out, or name a reducer")

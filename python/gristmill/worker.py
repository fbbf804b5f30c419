"""Program on a worker: reads pairs, calls the functions of the job, writes pairs.

`python job.zip map` reads lines or pairs and writes pairs. `python job.zip reduce` reads and writes pairs.
Output of functions goes to standard error, and so to the log of the job.
"""
from __future__ import annotations

import importlib
import io
import itertools
import json
import linecache
import os
import pickle
import sys
import traceback
import zipimport
import zlib
from collections import defaultdict
from operator import itemgetter
from types import GeneratorType
from typing import Any, BinaryIO, Callable, DefaultDict, Dict, Iterable, Iterator, List, NoReturn, Tuple, Union

from . import typed_bytes
from .columns import PLAIN, Collector, Writer, key_of, read, settled
from .errors import LAST_CALLS, MARK
from .reported import count, tell_counts

# Group of the system's own counters.
FRAMEWORK = "Map-Reduce Framework"
# Numbers of pairs and of bytes of their values that are collected before they are combined.
COMBINED_PAIRS = 1_000_000
COMBINED_BYTES = 1 << 25
# Number of keys with a combined value before these are written.
COMBINED_KEYS = 200_000
# Maximum number of frames of a traceback in the report of a failure, which keeps the last 20 lines.
FRAMES_MAX = 5


class Input(io.FileIO):
    """The input of the task, with the number of its bytes that were read."""

    taken = 0

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.taken += count
        return count


def pairs_of(role: str, result: Any) -> Iterable[Tuple[Any, Any]]:
    """Checks that the result of a function consists of pairs."""
    if result is None:
        return ()
    if isinstance(result, (str, bytes)) or not hasattr(type(result), "__iter__"):
        raise TypeError(f"the {role} gave {result!r}: it must return or yield pairs, such as (key, value)")
    pairs: Iterable[Tuple[Any, Any]] = result
    return pairs


def dictionary_key(key: Any) -> Union[str, bytes]:
    """Returns a key of a dictionary: strings as they are, others as typed bytes, since 1, 1.0 and True would be one key."""
    if type(key) is str:
        return key
    typed_bytes.check_key(key)
    return typed_bytes.encoded(key)


class Combined(Collector):
    """Pairs to be combined. They stay in the mapper's process, so that they need not be written and read for it."""

    def __init__(self, combiner: Callable[..., Any], writer: Writer) -> None:
        super().__init__(writer.pickled)
        self.combiner, self.writer = combiner, writer
        # Values that wait for the combiner, by key.
        self.fresh: DefaultDict[Union[str, bytes], List[Any]] = defaultdict(list)
        # Their number, and the bytes of those that have a length.
        self.waiting = 0
        self.size = 0
        # The combined value of each key.
        self.folded: Dict[Union[str, bytes], Any] = {}
        # Bytes of such values since they were last written, where a value counts each time that it changes.
        self.folded_bytes = 0
        # Numbers of pairs for counters.
        self.came, self.combined, self.gave = 0, 0, 0

    def _take(self, keys: List[Any], values: List[Any], size: int) -> None:
        fresh = self.fresh
        for key, value in zip(keys, values):
            fresh[key if type(key) is str else dictionary_key(key)].append(value)
        self.came += len(keys)
        self.waiting += len(keys)
        self.size += size
        if self.waiting >= COMBINED_PAIRS or self.size >= COMBINED_BYTES:
            self.fold()

    def fold(self) -> None:
        """Combines what waits with what was combined before."""
        fresh, self.fresh, self.waiting, self.size = self.fresh, defaultdict(list), 0, 0
        folded, combiner = self.folded, self.combiner
        for key, values in fresh.items():
            if key in folded:
                values.insert(0, folded.pop(key))
            own = key if type(key) is str else key_of(key)
            self.combined += len(values)
            given = combiner(own, iter(values))
            result = list(given) if type(given) is GeneratorType else list(pairs_of("combiner", given))
            self.gave += len(result)
            if len(result) == 1 and type(result[0]) is tuple and len(result[0]) == 2:
                other, value = result[0]
                # Almost always the combiner returns the key that it got.
                if other is own or dictionary_key(other) == key:
                    if type(value) is str or type(value) is bytes:
                        self.folded_bytes += len(value)
                    elif type(value) not in PLAIN:
                        value, more = settled(value, self.pickled)
                        self.folded_bytes += more
                    folded[key] = value
                    continue
            self.writer.pairs("combiner", result)
        if len(folded) >= COMBINED_KEYS or self.folded_bytes >= COMBINED_BYTES:
            self.write()

    def write(self) -> None:
        folded, self.folded, self.folded_bytes = self.folded, {}, 0
        self.writer.pairs("combiner", ((key_of(key), value) for key, value in folded.items()))

    def flush(self) -> None:
        self.hand_on()
        self.fold()
        self.write()
        for name, amount in ("Map output", self.came), ("Combine input", self.combined), ("Combine output", self.gave):
            count(f"{name} records", amount, FRAMEWORK)


class Placed(Writer):
    """Writes pairs whose keys have the number of their part and their group in front."""

    def __init__(self, out: BinaryIO, functions: Dict[str, Callable[..., Any]], job: Dict[str, Any]) -> None:
        super().__init__(out, job["pickled"])
        self.group, self.partitioner = functions.get("group"), functions.get("partitioner")
        self.parts = job["reduces"]

    def _take(self, keys: List[Any], values: List[Any], size: int) -> None:
        super()._take([self.placed(key) for key in keys], values, size)

    def placed(self, key: Any) -> Tuple[Any, ...]:
        """Returns the key that is sent for a key."""
        group = self.group(key) if self.group else key
        if self.partitioner:
            part = self.partitioner(group, self.parts)
            if type(part) is not int or not 0 <= part < self.parts:
                raise ValueError(f"the partitioner gave {part!r} for {group!r}: it must give a number from 0 to {self.parts - 1}")
        else:
            part = zlib.crc32(typed_bytes.encoded(group)) % self.parts
        return (part, group, key) if self.group else (part, group)


def groups_of(stream: BinaryIO, job: Dict[str, Any]) -> Iterator[Tuple[Any, Iterator[Any]]]:
    """Yields the groups of a reduce: what the reducer gets as the key, and the values."""
    pairs = read(stream, job["pickled"])
    if job["placed"]:
        # Not by the group itself: 1, 1.0 and True are equal.
        pairs = ((typed_bytes.encoded(key_of(key)[1]), value) for key, value in pairs)
    for key, group in itertools.groupby(pairs, key=itemgetter(0)):
        yield key_of(key), map(itemgetter(1), group)


def lines(stream: BinaryIO) -> Iterator[str]:
    for line in stream:
        yield line[:-1].decode("utf-8", "surrogateescape")


def map_all(functions: Dict[str, Callable[..., Any]], job: Dict[str, Any], stream: BinaryIO, writer: Writer) -> None:
    mapper = functions["mapper"]
    combined = Combined(functions["combiner"], writer) if "combiner" in functions else None
    take = (combined or writer).pairs
    if job["input"] == "pairs":
        results: Iterable[Any] = (mapper(key_of(key), value) for key, value in read(stream, job["pickled"]))
    else:
        # Not by `map`, which takes a StopIteration of the function for the end of the input.
        given = lines(stream)
        if job["input"] == "files":
            # Each line has its offset in front.
            given = (line.partition("\t")[2] for line in given)
        results = (mapper(line) for line in given)
    # Few calls for each line: a line has few pairs.
    take("mapper", itertools.chain.from_iterable(map(pairs_of, itertools.repeat("mapper"), results)))
    if combined:
        combined.flush()
    writer.flush()


def reduce_all(functions: Dict[str, Callable[..., Any]], job: Dict[str, Any], stream: BinaryIO, writer: Writer) -> None:
    reducer = functions["reducer"]
    groups = groups_of(stream, job)
    results = (reducer(key, values) for key, values in groups)
    writer.pairs("reducer", itertools.chain.from_iterable(map(pairs_of, itertools.repeat("reducer"), results)))
    writer.flush()


def by_name_or_value(value: Any, protocol: int) -> bytes:
    """Pickles a value; one of a class of the script, which other processes do not have, with its class."""
    try:
        return pickle.dumps(value, protocol)
    except (pickle.PicklingError, AttributeError):
        packed: bytes = importlib.import_module("cloudpickle").dumps(value, protocol)
        return packed


def load(archive: str) -> Tuple[Dict[str, Any], Dict[str, Callable[..., Any]]]:
    """Returns the job and its functions, from the running archive."""
    shipped = zipimport.zipimporter(archive)
    job = json.loads(shipped.get_data(os.path.join(archive, "job.json")))
    if "functions" not in job:
        mine, theirs = list(sys.version_info[:2]), job["python"]
        if mine != theirs:
            raise ImportError(
                f"the functions were sent by Python {theirs[0]}.{theirs[1]} and {sys.executable} here is "
                f"{mine[0]}.{mine[1]}: name another with python=, or put the functions into a module and uninstall cloudpickle"
            )
        for file, text in json.loads(shipped.get_data(os.path.join(archive, "lines.json"))).items():
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        if job["pickled"]:
            typed_bytes.dumps = by_name_or_value
        return job, pickle.loads(shipped.get_data(os.path.join(archive, "functions.pickle")))
    functions = {}
    for role, (module, name) in job["functions"].items():
        __import__(module)
        found: Any = sys.modules[module]
        for part in name.split("."):
            found = getattr(found, part)
        functions[role] = found
    return job, functions


def tell(error: BaseException) -> NoReturn:
    """Reports an exception of a function, without the frames of this file, and exits."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__) + os.sep):
        frame = frame.tb_next
    if frame is None and isinstance(error, (TypeError, ValueError)):
        # A complaint of this package about what a function gave: its own calls say nothing to the user.
        sys.stderr.write("\n".join([MARK, *traceback.format_exception_only(type(error), error)]))
        sys.stderr.flush()
        os._exit(1)
    frame = frame or error.__traceback__
    whole = traceback.format_exception(type(error), error, frame)
    frames = len(traceback.extract_tb(frame))
    if frames > FRAMES_MAX:
        sys.stderr.write("".join(whole) + LAST_CALLS)
    last = traceback.format_exception(type(error), error, frame, limit=-FRAMES_MAX)
    sys.stderr.write("".join(last if frames > FRAMES_MAX else whole))
    sys.stderr.flush()
    os._exit(1)


def main() -> None:
    """Runs one task."""
    role = sys.argv[1]
    # User code, and processes that it starts, get neither the input nor the output of pairs: their own output goes to
    # the log.
    stream = Input(os.dup(0))
    out = os.fdopen(os.dup(1), "wb")
    end = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for talk in (sys.stdout, sys.stderr):
        if isinstance(talk, io.TextIOWrapper):
            # Invalid text must not fail a task.
            talk.reconfigure(encoding="utf-8", errors="backslashreplace")
    task = os.getpid()
    try:
        job, functions = load(sys.argv[0])
        writer = Placed(out, functions, job) if job["placed"] and role == "map" else Writer(out, job["pickled"])
        if role == "map":
            map_all(functions, job, io.BufferedReader(stream), writer)
        else:
            reduce_all(functions, job, io.BufferedReader(stream), writer)
        sys.stdout.flush()
        tell_counts()
        # Only this line marks the task as complete; a process that a function has forked does not write it.
        if os.getpid() == task:
            os.write(end, f"gristmill:end:{stream.taken},{writer.written}\n".encode())
    except BaseException as error:
        tell(error)

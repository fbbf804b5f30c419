"""Program on a worker: reads pairs, calls the functions of the job, writes pairs.

`python job.zip map` reads lines or pairs and writes pairs. `python job.zip reduce` reads and writes pairs.
Output of functions goes to standard error, and so to the log of the job.
"""
from __future__ import annotations

import io
import itertools
import json
import linecache
import os
import pickle
import sys
import traceback
import zipimport
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, NoReturn, Tuple

from . import typed_bytes
from .reported import tell_counts

# Number of pairs that are collected before they are combined.
COMBINED_PAIRS = 100_000
# Number of bytes that are collected before they are written.
WRITE_BYTES = 1 << 16
# Maximum number of frames of a traceback in the report of a failure, which keeps the last 20 lines.
FRAMES_MAX = 5


class Writer:
    """Collects pairs and writes them."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out
        self.pieces: List[bytes] = []
        self.bytes = 0
        # Number of bytes that have been written.
        self.written = 0

    def pair(self, key: Any, value: Any) -> None:
        typed_bytes.check_key(key)
        self.encoded(typed_bytes.encoded(key), value)

    def encoded(self, key: bytes, value: Any) -> None:
        pair = typed_bytes.with_lengths(key, typed_bytes.encoded(value))
        self.pieces.append(pair)
        self.bytes += len(pair)
        if self.bytes >= WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        self.out.write(b"".join(self.pieces))
        self.out.flush()
        self.written += self.bytes
        self.pieces, self.bytes = [], 0


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
    if isinstance(result, (str, bytes)):
        raise TypeError(f"the {role} gave {result!r}: it must return or yield pairs, such as (key, value)")
    pairs: Iterable[Tuple[Any, Any]] = result
    return pairs


def write_all(role: str, result: Any, take: Callable[[Any, Any], None]) -> None:
    for pair in pairs_of(role, result):
        if type(pair) is not tuple or len(pair) != 2:
            raise TypeError(f"the {role} gave {pair!r} where a pair (key, value) was expected")
        take(*pair)


class Combined:
    """Pairs to be combined. They stay in the mapper's process, so that they need not be written and read for it."""

    def __init__(self, combiner: Callable[..., Any], writer: Writer) -> None:
        self.combiner, self.writer = combiner, writer
        self.values: Dict[bytes, List[Any]] = {}
        self.pairs = 0

    def pair(self, key: Any, value: Any) -> None:
        typed_bytes.check_key(key)
        self.values.setdefault(typed_bytes.encoded(key), []).append(value)
        self.pairs += 1
        if self.pairs >= COMBINED_PAIRS:
            self.flush()

    def flush(self) -> None:
        values, self.values, self.pairs = self.values, {}, 0
        for key, of_key in values.items():
            write_all("combiner", self.combiner(typed_bytes.decode(key)[0], iter(of_key)), self.writer.pair)


def lines(stream: BinaryIO) -> Iterator[Tuple[str]]:
    for line in stream:
        yield (line[:-1].decode("utf-8", "surrogateescape"),)


def records(stream: BinaryIO, pickled: bool) -> Iterator[Tuple[Any, Any]]:
    for key, value in typed_bytes.pairs(stream, pickled):
        yield typed_bytes.decode(key)[0], value


def map_all(functions: Dict[str, Callable[..., Any]], job: Dict[str, Any], stream: BinaryIO, writer: Writer) -> None:
    mapper = functions["mapper"]
    combined = Combined(functions["combiner"], writer) if "combiner" in functions else None
    take = combined.pair if combined else writer.pair
    for arguments in records(stream, job["pickled"]) if job["input"] == "pairs" else lines(stream):
        write_all("mapper", mapper(*arguments), take)
    if combined:
        combined.flush()
    writer.flush()


def reduce_all(functions: Dict[str, Callable[..., Any]], job: Dict[str, Any], stream: BinaryIO, writer: Writer) -> None:
    reducer = functions["reducer"]
    for key, group in itertools.groupby(typed_bytes.pairs(stream, job["pickled"]), key=lambda pair: pair[0]):
        values = (value for _, value in group)
        write_all("reducer", reducer(typed_bytes.decode(key)[0], values), writer.pair)
    writer.flush()


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
    frame = frame or error.__traceback__
    whole = traceback.format_exception(type(error), error, frame)
    frames = len(traceback.extract_tb(frame))
    if frames > FRAMES_MAX:
        sys.stderr.write("".join(whole))
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
    writer = Writer(os.fdopen(os.dup(1), "wb"))
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

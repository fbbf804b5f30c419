"""Running jobs: submission, progress, end, and result."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from typing import IO, Any, Deque, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import picture, shipping, typed_bytes
from .errors import FunctionError, GristmillError, JobError, received
from .job import Job
from .program import program
from .results import pandas

Path = Union[str, "os.PathLike[str]"]

# Name of the archive with the functions, which workers run.
ARCHIVE = "job.zip"
# Number of lines of the program's log that are kept.
LOG_LINES_MAX = 1_000
# Time that a cancelled job may take to end, before it is killed.
END_SECONDS = 20.0
# Time between two updates of a notebook.
LOOK_SECONDS = 0.2
# Last lines of the program that do not describe the error.
_NO_REASONS = ("Streaming Command Failed!", "Try -help for more information")
# Prefix of commands' counters in the names of the job's counters.
_MINUS = "minus,"


class JobRun:
    """A submitted job. Iteration waits for its end and yields the pairs of the result."""

    def __init__(self, name: str, command: List[str], output: pathlib.Path, directory: Any, pickled: bool = False) -> None:
        self.name = name
        self._pickled = pickled
        #: Path of the result.
        self.output = output
        #: Status of the job, as `gristmill cluster status --json` prints it; None before the first report.
        self.job_status: Optional[Dict[str, Any]] = None
        #: Timeline in the format of Chrome's traces; None until the end.
        self.trace: Optional[Dict[str, Any]] = None
        # Removed with this object: shipped files, and the result if it was given no path.
        self._directory = directory
        self._inputs: List[JobRun] = []
        self._refusal: Optional[str] = None
        self._cancelled = False
        self._log: Deque[str] = deque(maxlen=LOG_LINES_MAX)
        # A group of its own: Ctrl-C reaches this process alone, which ends the job in good order.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
        )
        assert self._process.stdout and self._process.stderr
        self._readers = [
            threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_log, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_events(self, stream: IO[str]) -> None:
        for line in stream:
            event = json.loads(line)
            if event["event"] == "error":
                self._refusal = event["message"]
            else:
                self.job_status = event["status"]
                self.trace = event.get("trace")

    def _read_log(self, stream: IO[str]) -> None:
        for line in stream:
            self._log.append(line)

    @property
    def log(self) -> str:
        """The last output of the program."""
        return "".join(self._log)

    @property
    def state(self) -> str:
        """`starting`, `waiting`, `running`, `publishing`, `succeeded`, `failed` or `cancelled`."""
        done = self.done
        for reader in self._readers if done else ():
            reader.join()
        state = "starting" if self.job_status is None else str(self.job_status["state"])
        if done and state not in ("succeeded", "failed", "cancelled"):
            return "cancelled" if self._cancelled else "failed"
        return state

    @property
    def done(self) -> bool:
        """True if the job has ended."""
        return self._process.poll() is not None

    def wait(self, timeout: Optional[float] = None) -> "JobRun":
        """Waits for the end of the job; in a notebook with a live picture.

        Raises `FunctionError` if a function has raised an exception, `JobError` for any other failure, and `TimeoutError` after
        `timeout` seconds, after which the job continues. An interruption ends the job.
        """
        try:
            self._await_end(timeout)
        except KeyboardInterrupt:
            self.cancel()
            raise
        if self._process.returncode != 0:
            raise self._error()
        return self

    def _await_end(self, timeout: Optional[float]) -> None:
        """Waits until the program has ended and all its output was read; shows the job meanwhile in a notebook."""
        display = _notebook_display() if not self.done else None
        handle = display(self, display_id=True) if display else None
        end = None if timeout is None else time.monotonic() + timeout
        while not self.done:
            left = LOOK_SECONDS if end is None else min(LOOK_SECONDS, end - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"{self.name} has not ended after {timeout} s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(left)
            if handle and not self.done:
                handle.update(self)
        for reader in self._readers:
            reader.join()
        if handle:
            handle.update(self)

    def cancel(self) -> None:
        """Ends the job, and waits for its end."""
        if self._process.poll() is None:
            self._cancelled = True
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _error(self) -> JobError:
        failure = (self.job_status or {}).get("failure")
        if not failure:
            last = [line for line in self.log.splitlines() if line.strip() and line not in _NO_REASONS]
            why = self._refusal or (last[-1] if last else f"the program ended with {self._process.returncode}")
            return JobError(f"{self.name}: {why}", self.log)
        where, detail = failure["message"], failure.get("detail") or ""
        traceback = received(detail)
        if traceback is None:
            return JobError(": ".join(filter(None, (self.name, where, detail))), self.log)
        return FunctionError(f"{self.name}: {where}", traceback, self.log)

    @property
    def counters(self) -> Dict[str, Dict[str, int]]:
        """Counters of functions, by group and name; complete once the job has ended."""
        sums: Dict[str, Dict[str, int]] = {}
        for name, amount in (self.job_status or {}).get("counters", {}).items():
            sign = -1 if name.startswith(_MINUS) else 1
            group, comma, own = name[len(_MINUS) if sign < 0 else 0 :].partition(",")
            if comma:
                of_group = sums.setdefault(group, {})
                of_group[own] = of_group.get(own, 0) + sign * amount
        return sums

    def parts(self) -> List[pathlib.Path]:
        """The files of the result, in order."""
        self.wait()
        return sorted(path for path in self.output.iterdir() if path.name.startswith("part-"))

    def __iter__(self) -> Iterator[Tuple[Any, Any]]:
        for part in self.parts():
            with open(part, "rb") as file:
                for key, value in typed_bytes.pairs(file, self._pickled):
                    yield typed_bytes.decode(key)[0], value

    def frame(self, columns: Sequence[str] = ("key", "value")) -> Any:
        """The pairs of the result as a DataFrame of pandas, by default one column of keys and one of values.

        Keys and values that are tuples are spread over the columns if these are more than two.
        """
        table, rows = pandas().DataFrame, list(self)
        if len(columns) > 2:
            rows = [(*_parts(key), *_parts(value)) for key, value in rows]
        return table(rows, columns=list(columns))

    def __repr__(self) -> str:
        return f"<{self.name}: {self.state}>"

    def _repr_html_(self) -> str:
        why = self._refusal or ((self.job_status or {}).get("failure") or {}).get("message")
        return picture.page(self.name, self.job_status, self.trace, why)

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            self.cancel()
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.close()


def _parts(value: Any) -> Tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _notebook_display() -> Any:
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell else None
    if running is None or not hasattr(running, "kernel"):
        return None
    from IPython.display import display

    return display


def submit(
    job: Job,
    *inputs: Union[Path, JobRun],
    output: Optional[Path] = None,
    join: Optional[Path] = None,
    workers: Optional[int] = None,
    python: Optional[str] = None,
    flags: Tuple[str, ...] = (),
) -> JobRun:
    """Starts a job, and returns at once.

    `inputs` are files, directories and patterns with lines, or earlier jobs, whose pairs are read, or files of a `per_file`
    job. `output` is a directory that does not exist yet. Without it the result is in a private directory, which is removed
    with the `JobRun`. `join` names the file with the join line of a master. Without it the job has an embedded cluster on this
    machine, with `workers` worker processes. `python` is the interpreter that workers start: by default this one, or `python3`
    on another master's workers. `flags` are additional ones of `gristmill streaming`. A job ends when its `JobRun` is deleted,
    and with this process.
    """
    if os.path.basename(sys.argv[0]) == ARCHIVE:
        raise GristmillError("a worker that imports this script would start its job again: start it below `if __name__ == \"__main__\":`")
    if not inputs:
        raise ValueError("a job needs an input: a file, a directory, or an earlier job")
    for given in inputs:
        if not isinstance(given, (str, os.PathLike, JobRun)):
            raise TypeError(f"{given!r} is not an input: each is an argument of its own, as in run(job, *files)")
    runs = [given for given in inputs if isinstance(given, JobRun)]
    if runs and len(runs) != len(inputs):
        raise ValueError("inputs are all files of lines or all earlier jobs: a mapper has one kind of arguments")
    roles = {name: getattr(job, name) for name in ("mapper", "reducer", "combiner", "partitioner", "group")}
    functions = {role: function for role, function in roles.items() if function is not None}
    if job.per_file and runs:
        raise ValueError("per_file=True reads files, and an earlier job has pairs: leave out per_file")
    kind = "pairs" if runs else "files" if job.per_file else "lines"
    settings: Dict[str, Any] = {"input": kind, "pickled": job.pickled, "reduces": job.reduces}
    settings["placed"] = bool(job.partitioner or job.group)
    packed = shipping.archive(functions, settings, job.modules)
    name = job.name or getattr(job.mapper, "__name__", "job")
    directory = tempfile.TemporaryDirectory(prefix="gristmill-python-")
    archive = pathlib.Path(directory.name) / ARCHIVE
    archive.write_bytes(packed)
    place = pathlib.Path(output) if output is not None else pathlib.Path(directory.name) / "output"
    words = [program(), "streaming", "--json", *flags]
    words += [] if join is None else ["--join", os.fspath(join)]
    words += [] if workers is None else ["--workers", str(workers)]
    words += ["--no-sync"] if output is None else []
    interpreter = _quoted(python or (sys.executable if join is None else "python3"))
    words += ["-file", f"{archive}#{ARCHIVE}", "-mapper", f"{interpreter} {ARCHIVE} map", "-output", str(place.absolute())]
    words += ["-D", f"mapreduce.job.name={name}"]
    if job.reducer is None:
        words += ["-numReduceTasks", "0"]
    else:
        words += ["-numReduceTasks", str(job.reduces), "-reducer", f"{interpreter} {ARCHIVE} reduce"]
    if settings["placed"]:
        words += ["-D", "gristmill.streaming.placed=true"]
    for file in job.files:
        words += ["-file", _shipped(file)]
    for key, value in job.properties:
        words += ["-D", f"{key}={value}"]
    # The mapper's input; all else are pairs, and each task reports its end.
    words += ["-D", f"gristmill.streaming.pairs={'pairs' if runs else 'lines'}"]
    if job.per_file:
        # One line, and so one map, for each file.
        names = pathlib.Path(directory.name) / "files"
        names.write_text("".join(f"{name}\n" for name in _files(inputs)), "utf-8", "surrogateescape")
        words += ["-inputformat", "NLineInputFormat"]
        inputs = (names,)
    for given in inputs:
        words += ["-input", _listed(str(given.wait().output) if isinstance(given, JobRun) else _named(given))]
    started = JobRun(name, words, place, directory, job.pickled)
    # Its inputs must exist until they have been read.
    started._inputs = runs
    return started


def run(job: Job, *inputs: Union[Path, JobRun], **options: Any) -> JobRun:
    """Runs a job to its end; see [`submit`] for the options, and [`JobRun.wait`] for what it raises."""
    return submit(job, *inputs, **options).wait()


def _quoted(word: str) -> str:
    """Quotes a word of a command, as the program parses commands."""
    return "'" + word.replace("'", "'\\''") + "'"


def _named(given: Path) -> str:
    """Returns an input as the program wants it: a URL of an object store as it is, else an absolute path."""
    name = os.fspath(given)
    return name if "://" in name else str(pathlib.Path(name).absolute())


def _files(inputs: Sequence[Union[Path, JobRun]]) -> List[str]:
    """Checks the inputs of a mapper of files, and returns their paths."""
    names = [_named(given) for given in inputs if not isinstance(given, JobRun)]
    for name in names:
        if "://" not in name and not os.path.isfile(name):
            raise FileNotFoundError(f"{name} is not a file: per_file=True takes files, so name each one, for instance by glob.glob")
        if "\n" in name or "\r" in name:
            raise ValueError(f"{name!r}: a path of a file has no line end")
    return names


def _shipped(file: Path) -> str:
    """Checks a file that is sent with a job, and returns its path."""
    path = pathlib.Path(file).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: files= takes files that tasks open by their names")
    if path.name == ARCHIVE or any(letter in str(path) for letter in "#,"):
        raise ValueError(f"{path}: a file of files= has no # and no comma in its path, and is not called {ARCHIVE}")
    return str(path)


def _listed(path: str) -> str:
    """Escapes a path for a list of paths with commas and braces."""
    if any(letter in path for letter in ",{}"):
        raise ValueError(f"{path}: a path of an input has no comma and no brace, which stand for several names")
    return path

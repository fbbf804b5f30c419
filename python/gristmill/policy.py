"""Scheduling policies that are Python functions: in simulations, and on a master."""
from __future__ import annotations

import csv
import json
import os
import pathlib
import selectors
import socket
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from .errors import GristmillError
from .program import program


class PolicyJob:
    """Job as a policy sees it. Amounts are lists of three: map, shuffle and reduce."""

    #: Number in the order of arrival, from 0.
    seq: int
    #: Times in seconds.
    arrival: float
    deadline: Optional[float]
    weight: float
    priority: int
    pool: Optional[int]
    #: True if it was given something.
    started: bool
    #: True if its sizes are more than a guess.
    known: bool
    #: Work of the whole job in seconds, and the rest of it.
    whole: List[float]
    left: List[float]
    #: Slots or shares that it could use now, and those that it holds.
    can: List[float]
    held: List[float]
    #: Number of maps that have ended, and the sum of their seconds.
    done: int
    done_time: float

    def __init__(self, fields: Dict[str, Any]) -> None:
        self.__dict__ = fields


#: Gets the jobs that are there, in the order of arrival, and the time in seconds; returns jobs, most urgent first. Jobs
#: that it leaves out come last, by age.
Policy = Callable[[List[PolicyJob], float], Iterable[PolicyJob]]


# Number of times that a question is looked for without sleeping, for about a tenth of a millisecond.
_LOOKS = 100


class Conversation:
    """One side of the conversation with the program, whose lines are in its documentation."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._jobs: Dict[int, PolicyJob] = {}

    def answer(self, line: bytes) -> bytes:
        """Returns the answer to a line."""
        question = json.loads(line)
        for seq in question["left"]:
            self._jobs.pop(seq, None)
        for fields in question["jobs"]:
            self._jobs[fields["seq"]] = PolicyJob(fields)
        order = [job.seq for job in self._policy(list(self._jobs.values()), question["now"])]
        return b'{"order":%s}\n' % json.dumps(order).encode()


def decide(policy: Policy) -> None:
    """Lets a function decide for the program that started this one, as `--policy program:path=FILE` does."""
    answers = sys.stdout.buffer
    # Output of the function must not mix with the answers.
    sys.stdout = sys.stderr
    conversation = Conversation(policy)
    for line in sys.stdin.buffer:
        answers.write(conversation.answer(line))
        answers.flush()


class Simulation:
    """Result of a simulation."""

    def __init__(self, report: Dict[str, Any], jobs: List[Dict[str, Any]]) -> None:
        #: What `gristmill lab sim --json` prints.
        self.report = report
        #: A row for each job of each run, with times in seconds and work in slot-seconds.
        self.jobs = jobs

    @property
    def mean_flow(self) -> float:
        """Mean flow time in seconds: from the arrival of a job to its end."""
        return float(sum(job["flow"] for job in self.jobs) / len(self.jobs))


def simulate(policy: Union[Policy, str], workload: Union[str, "os.PathLike[str]"], **flags: Any) -> Simulation:
    """Simulates a policy, a function or the name of one, on a cluster of workers, with the flags of `gristmill lab sim`.

    `simulate(policy, "mix:load=0.9", workers=8, seeds=3)` stands for `--workload mix:load=0.9 --workers 8 --seeds 3`. An
    exception of the function ends the simulation and is raised here.
    """
    with tempfile.TemporaryDirectory(prefix="gristmill-") as name:
        directory = pathlib.Path(name)
        table, log, place = directory / "jobs.csv", directory / "log", directory / "policy"
        command = [program(), "lab", "sim", "--model", "cluster", "--workload", os.fspath(workload), "--json", "--csv", str(table)]
        for flag, value in flags.items():
            words = [f"--{flag.replace('_', '-')}", str(value)]
            command += words[:1] if value is True else words
        with socket.socket(socket.AF_UNIX) as listener, open(log, "w+") as stderr:
            listener.bind(str(place))
            listener.listen()
            command += ["--policy", policy if isinstance(policy, str) else f"program:path={place},patience=3600"]
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr) as process:
                try:
                    report = _converse(process, listener, policy)
                finally:
                    process.kill()
            stderr.seek(0)
            if process.returncode not in (0, -9) or not report:
                raise GristmillError(f"{' '.join(command)}: {stderr.read().strip()}")
        with open(table, newline="") as rows:
            jobs = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(rows)]
        return Simulation(json.loads(report), jobs)


def _value(text: str) -> Any:
    """Returns a cell as a number, as None if it is empty, or as text."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _converse(process: "subprocess.Popen[bytes]", listener: socket.socket, policy: Union[Policy, str]) -> bytes:
    """Answers all runs of the program until it closes its output, which is returned."""
    assert process.stdout
    report = b""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    # One run after another: waiting for several at once would cost a call of the system for each answer.
                    with listener.accept()[0] as stream:
                        assert callable(policy)
                        _answer_all(stream, Conversation(policy))
                    continue
                part = os.read(key.fd, 1 << 16)
                if not part:
                    process.wait()
                    return report
                report += part


def _answer_all(stream: socket.socket, conversation: Conversation) -> None:
    """Answers the questions of a run, whose jobs are its own."""
    rest = b""
    while True:
        part = _received(stream)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            stream.sendall(conversation.answer(line))


def _received(stream: socket.socket) -> bytes:
    """Receives bytes, and looks for them for a moment before it sleeps: waking up takes longer than many decisions."""
    for _ in range(_LOOKS):
        try:
            return stream.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
    return stream.recv(1 << 16)

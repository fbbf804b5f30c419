#!/usr/bin/env python3
"""Measures what a stranger without a token costs a running job who holds a thousand connections to every process.

usage: scripts/flood.py [--program FILE] [--pairs 11] [--size 512MiB] [--pause-ms 10]
       scripts/flood.py --self-test

Starts a master and two workers on loopback that may open 1,024 files each, and runs the same job on them again and again,
in turn with and without a stranger on the same machine. The stranger holds `--connections` connections to each of the
three, opens a new one for each that is closed, and pauses so long between two openings; with `--pause-ms 0` it opens
them as fast as it can, which takes the job a core. Prints the median of the ratios of pairs with its 95 % interval, and the
same of two runs without a stranger, which is the noise. Ends with code 1 if the ratio's lower bound is over `--ratio-max`.

Without `--program` it builds and measures what is shipped (`--profile dist`).

`--self-test`: a made-up slow-down must be found, and none where there is none.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from shipped import shipped

OPEN_FILES = 1024
PATIENCE_SECONDS = 120
LOOK_SECONDS = 0.02
# What a stranger may do in one round before it looks whether it is to end.
OPENINGS_PER_ROUND = 50
HEAD = b"POST /shuffle/job-1 HTTP/1.1\r\nHost: "
# Of fewer not even least and greatest hold the median with 95 % confidence.
PAIRS_MIN = 6
# How much longer a job takes in the self-test.
MADE_UP_SLOWDOWN = 2.5
# Jobs before the first that counts.
WARM_RUNS = 3


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median, and the two values between which it lies with 95 % confidence, whatever the distribution."""
    values = sorted(values)
    count, below, rank = len(values), 0.0, 0
    while rank < count // 2:
        below += math.comb(count, rank) / 2**count
        if 0.025 < below:
            break
        rank += 1
    rank = max(rank, 1)
    return statistics.median(values), values[rank - 1], values[count - rank]


def words(values: list[float]) -> str:
    return "{:.3f} ({:.3f} to {:.3f})".format(*interval(values))


def raise_limit(most: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def stranger(doors: list[int], connections: int, pause: float) -> None:
    """Holds connections to doors until stdin ends; prints `there` when all were opened once, and a count at the end."""
    raise_limit(len(doors) * connections + 100)
    poll, held, opened, free = select.epoll(), {}, 0, []
    for number in range(connections):
        free.extend((door, number) for door in doors)

    def knock(door: int, number: int) -> None:
        stream = socket.socket()
        stream.setblocking(False)
        # Some addresses: what one alone may have is less. Reset, so that none is left behind.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.bind((f"127.0.0.{2 + number % 5}", 0))
        stream.connect_ex(("127.0.0.1", door))
        held[stream.fileno()] = (stream, door, number, False)
        poll.register(stream, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)

    due, announced = time.monotonic(), False
    stdin = sys.stdin.fileno()
    poll.register(stdin, select.EPOLLIN)
    while True:
        for _ in range(OPENINGS_PER_ROUND):
            if not free or (announced and time.monotonic() < due):
                break
            knock(*free.pop(0))
            opened += 1
            due = time.monotonic() + pause
        wait = max(0.0, due - time.monotonic()) if free else 1.0
        for number, events in poll.poll(wait if announced else 0):
            if number == stdin:
                print(opened, time.process_time(), flush=True)
                return
            stream, door, place, said = held[number]
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLRDHUP | select.EPOLLERR):
                poll.unregister(stream)
                stream.close()
                del held[number]
                free.append((door, place))
            elif not said:
                stream.send(HEAD)
                held[number] = (stream, door, place, True)
                poll.modify(stream, select.EPOLLIN | select.EPOLLRDHUP)
        if not announced and len(doors) * connections <= opened:
            announced = True
            print("there", flush=True)


class Stranger:
    """A stranger as a process of its own."""

    def __init__(self, doors: list[int], options: argparse.Namespace) -> None:
        self.least = len(doors) * options.connections
        command = [sys.executable, __file__, "--stranger", ",".join(map(str, doors)),
                   "--connections", str(options.connections), "--pause-ms", str(options.pause_ms)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "there\n":
            raise SystemExit("flood.py: the stranger could not open its connections; raise the limit of open files")
        self.since = time.monotonic()

    def end(self) -> tuple[float, float]:
        """Openings in a second after the first of all, and the share of a core that it took."""
        seconds = time.monotonic() - self.since
        said, _ = self.process.communicate("end\n", timeout=PATIENCE_SECONDS)
        opened, spent = said.split()
        again = int(opened) - self.least
        if again == 0:
            raise SystemExit("flood.py: nobody closed a connection of the stranger, so it measured nothing")
        return again / seconds, float(spent) / seconds


def listening(pid: int) -> list[int]:
    """Ports on which a process listens."""
    inodes = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(entry).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            pass
    lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes]


def until(what: str, look):
    end = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        if end < time.monotonic():
            raise SystemExit(f"flood.py: waited {PATIENCE_SECONDS} s in vain for {what}")
        time.sleep(LOOK_SECONDS)
    return seen


class Cluster:
    """A master and two workers with few descriptors."""

    def __init__(self, folder: pathlib.Path, options: argparse.Namespace) -> None:
        self.folder, self.program, self.jobs, self.started = folder, options.program, 0, []
        self.environment = dict(os.environ, GRISTMILL_STATE=str(folder / "state"), TMPDIR=str(folder))
        self.input = folder / "text"
        self.run("gen", "text", str(self.input), "--size", options.size, "--words", "50000")
        self.start("master")
        until("a join line", lambda: (folder / "state" / "join").exists())
        for _ in range(2):
            self.start("worker", "--workers", "1", "--slots", "1", "--memory", "512MiB")
        self.processes = until("two workers", self.joined)
        self.doors = [port for pid in self.processes for port in listening(pid)]
        if len(self.doors) != 3:
            raise SystemExit(f"flood.py: a master and two workers listen on {self.doors}")

    def command(self, *arguments: str) -> dict:
        return {"args": [self.program, *arguments], "env": self.environment, "cwd": self.folder}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(**self.command(*arguments), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        if done.returncode != 0:
            raise SystemExit(f"flood.py: {' '.join(arguments)} ended with code {done.returncode}: {done.stderr}")
        return done.stdout

    def start(self, *arguments: str) -> None:
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        log = open(self.folder / f"{len(self.started)}.log", "w")
        self.started.append(subprocess.Popen(**self.command(*arguments), preexec_fn=few, stdout=log, stderr=log))

    def joined(self) -> list[int] | None:
        """The master and the worker processes, once both have joined."""
        if len(json.loads(self.run("status", "--json"))["workers"]) < 2:
            return None
        master, *parents = (process.pid for process in self.started)
        children = [pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in parents]
        return [master, *(int(child) for line in children for child in line)]

    def job(self, slowdown: float = 0.0) -> tuple[float, str]:
        """Seconds of a job and a digest of its output. Nothing of it may have been tried twice."""
        self.jobs += 1
        output = self.folder / "out"
        begun = time.monotonic()
        time.sleep(slowdown)
        self.run("submit", "wordcount", str(self.input), "--reduces", "4", "--split-size", "8MiB", "--no-sync", "--quiet",
                 "--overwrite", "--output", str(output))
        took = time.monotonic() - begun
        attempts = json.loads(self.run("status", f"job-{self.jobs}", "--json"))["attempts"]
        if attempts["failed_other"] or attempts["lost"]:
            raise SystemExit(f"flood.py: attempts of job-{self.jobs} were lost: {attempts}")
        digest = hashlib.sha256()
        for part in sorted(output.glob("part-*")):
            digest.update(part.read_bytes())
        return took, digest.hexdigest()

    def end(self) -> None:
        for process in self.started:
            process.send_signal(signal.SIGTERM)
        for process in self.started:
            process.wait(PATIENCE_SECONDS)


def measure(cluster: Cluster, options: argparse.Namespace, slowdown: float, floods: bool) -> list[float]:
    """Ratios of pairs; prints them."""
    warm = [cluster.job() for _ in range(WARM_RUNS)]
    usual, right = statistics.median(took for took, _ in warm), warm[0][1]
    ratios, alone, strangers = [], [], []
    for pair in range(options.pairs):
        took = {}
        # Which comes first changes, so that what drifts hits both alike.
        for under in (False, True) if pair % 2 == 0 else (True, False):
            guest = Stranger(cluster.doors, options) if under and floods else None
            try:
                took[under], digest = cluster.job((slowdown - 1) * usual if under else 0.0)
            finally:
                if guest:
                    strangers.append(guest.end())
            if digest != right:
                raise SystemExit("flood.py: the output under a flood is another one")
        alone.append(took[False])
        ratios.append(took[True] / took[False])
        print(f"pair {pair + 1}: {took[False]:.3f} s alone, {took[True]:.3f} s under, {ratios[-1]:.3f}", flush=True)
    print(f"alone: median {statistics.median(alone):.3f} s, from {min(alone):.3f} to {max(alone):.3f}")
    if 2 < len(alone):
        print(f"noise, the ratio of two runs alone: {words([b / a for a, b in zip(alone, alone[1:])])}")
    if strangers:
        rate, core = (statistics.median(column) for column in zip(*strangers))
        print(f"stranger: {options.connections} connections to each of {len(cluster.doors)} processes, {rate:.0f} opened "
              f"again in a second, {100 * core:.0f} % of a core")
    return ratios


def judge(ratios: list[float], most: float) -> bool:
    print(f"ratio: {words(ratios)}, limit {most}")
    return interval(ratios)[1] <= most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="program to measure [default: build it as it is shipped, with --profile dist]")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--size", default="512MiB")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--pause-ms", type=float, default=10.0)
    parser.add_argument("--ratio-max", type=float, default=1.2)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--stranger", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pairs < PAIRS_MIN:
        parser.error(f"--pairs {options.pairs}: an interval of 95 % needs at least {PAIRS_MIN}")
    if options.stranger:
        stranger([int(door) for door in options.stranger.split(",")], options.connections, options.pause_ms / 1e3)
        return 0
    options.program = shipped(options.program)
    with tempfile.TemporaryDirectory(prefix="gristmill-flood-") as folder:
        cluster = Cluster(pathlib.Path(folder), options)
        try:
            if options.self_test:
                print(f"made up: {MADE_UP_SLOWDOWN} times as long")
                found = not judge(measure(cluster, options, MADE_UP_SLOWDOWN, False), options.ratio_max)
                print("made up: nothing")
                quiet = judge(measure(cluster, options, 1.0, False), options.ratio_max)
                print("self-test:", "passed" if found and quiet else f"FAILED: found {found}, quiet {quiet}")
                return 0 if found and quiet else 1
            return 0 if judge(measure(cluster, options, 1.0, True), options.ratio_max) else 1
        finally:
            cluster.end()


if __name__ == "__main__":
    sys.exit(main())

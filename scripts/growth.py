#!/usr/bin/env python3
"""Measures how time, and the master's time and memory, grow with the size of work, and fits exponents.

usage: scripts/growth.py [--program target/dist/gristmill] [--full] [SERIES...]
       scripts/growth.py --self-test       growth like a square must be noticed

Prints Markdown. An exponent is that between the last two points: 1 is in proportion, and sorts may grow as n log n. What
is constant, such as the start of a process, makes it smaller. Ends with code 1 if one is above 1.05. Each point is the
median of three runs; `--full` adds inputs of 4 and 16 GiB, and takes 50 GB of disk and half an hour.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

EXPONENT_MAX = 1.05
# Seconds of the second largest point below which growth is not judged.
SECONDS_MIN = 0.05
RUNS = 3
WAIT_SECONDS = 120
NO_TIME = ["--map-time", "0s", "--reduce-time", "0s"]


class Cluster:
    """A master with workers, for one point; closed at its end."""

    def __init__(self, program: str, workers: int, slots: int):
        self.program = program
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.directory), "TMPDIR": str(self.directory)}
        self.log = open(self.directory / "log", "w")
        self.master = self.start("master")
        self.await_status(lambda _: True)
        self.workers = self.start("worker", "--workers", str(workers), "--slots", str(slots))
        self.await_status(lambda status: len(status["workers"]) == workers)
        self.idle_cpu, self.idle_memory = self.cpu(), self.memory()

    def start(self, *words: str) -> subprocess.Popen:
        command = [self.program, "cluster", *words]
        return subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def ask(self, *words: str) -> str:
        return subprocess.run([self.program, *words], env=self.environment, stdout=subprocess.PIPE, stderr=self.log, check=True).stdout.decode()

    def await_status(self, holds) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            try:
                if holds(json.loads(self.ask("cluster", "status", "--json"))):
                    return
            except subprocess.CalledProcessError:
                pass
            time.sleep(0.02)
        raise SystemExit(f"waited {WAIT_SECONDS} s in vain: {(self.directory / 'log').read_text()[-2000:]}")

    def cpu(self) -> float:
        """CPU seconds of the master."""
        fields = pathlib.Path(f"/proc/{self.master.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Largest memory of the master so far, bytes."""
        status = pathlib.Path(f"/proc/{self.master.pid}/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    def close(self) -> None:
        for process in (self.workers, self.master):
            process.terminate()
        for process in (self.workers, self.master):
            process.wait(WAIT_SECONDS)
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def on_cluster(program: str, workers: int, slots: int, work) -> tuple:
    """Returns the seconds of some work on a cluster, the master's CPU seconds, and bytes beyond those of an idle one."""
    cluster = Cluster(program, workers, slots)
    try:
        start = time.monotonic()
        work(cluster)
        took = time.monotonic() - start
        return took, cluster.cpu() - cluster.idle_cpu, cluster.memory() - cluster.idle_memory
    finally:
        cluster.close()


def submit(*words: str):
    return lambda cluster: cluster.ask("submit", *words, "--output", str(cluster.directory / "out"), "--quiet")


def submit_all(count: int):
    """As many jobs at once, submitted by four processes at a time."""
    def work(cluster: Cluster) -> None:
        words = ["submit", "synthetic", "--maps", "1", "--reduces", "1", *NO_TIME, "--detach", "--output"]
        outputs = "\n".join(str(cluster.directory / f"out{job}") for job in range(count))
        each = ["xargs", "-P", "4", "-n", "1", cluster.program, *words]
        subprocess.run(each, input=outputs.encode(), env=cluster.environment, stdout=cluster.log, stderr=cluster.log, check=True)
        cluster.await_status(lambda status: status["jobs_live"] == 0)
    return work


def of_size(program: str, scratch: pathlib.Path, job: list, kind: str, flags: list):
    """Seconds of a job on generated input of some MiB."""
    def point(mebibytes: int) -> list:
        file = scratch / f"{kind}{mebibytes}"
        if not file.exists():
            subprocess.run([program, "gen", kind, str(file), "--size", f"{mebibytes}MiB"], check=True, stdout=subprocess.DEVNULL)
        runs = []
        for _ in range(RUNS):
            out = scratch / "out"
            shutil.rmtree(out, ignore_errors=True)
            start = time.monotonic()
            subprocess.run([program, "run", *job, str(file), *flags, "--output", str(out), "--quiet", "--no-sync"], check=True, stdout=subprocess.DEVNULL)
            runs.append((time.monotonic() - start,))
            shutil.rmtree(out, ignore_errors=True)
        return runs
    return point


def files(program: str, scratch: pathlib.Path, count: int) -> list:
    directory = scratch / f"files{count}"
    directory.mkdir()
    for file in range(count):
        (directory / f"{file:06}").write_text("a line of a small file\n")
    runs = [on_cluster(program, 1, 2, submit("grep", "small", str(directory))) for _ in range(RUNS)]
    shutil.rmtree(directory)
    return runs


def series(program: str, scratch: pathlib.Path, full: bool) -> dict:
    """The series by name: what it is, its points, and a function that runs a point."""
    def repeated(workers: int, work):
        return lambda size: [on_cluster(program, workers or size, 2 if workers else 1, work(size)) for _ in range(RUNS)]

    def synthetic(maps: str, reduces: str):
        return submit("synthetic", "--maps", maps, "--reduces", reduces, *NO_TIME)

    sizes = [256, 1024, 4096, 16384] if full else [256, 1024]
    memory = ["--memory", "1GiB"]
    return {
        "maps": ("empty maps", [2_000, 20_000, 200_000], repeated(1, lambda size: synthetic(str(size), "1"))),
        "reduces": ("reduces of ten maps", [100, 1_000, 10_000], repeated(1, lambda size: synthetic("10", str(size)))),
        "files": ("files of 23 bytes, searched", [1_000, 10_000, 100_000], lambda size: files(program, scratch, size)),
        "jobs": ("jobs at once", [10, 100, 1_000], repeated(1, submit_all)),
        "workers": ("workers for 10,000 empty maps", [2, 20, 200], repeated(0, lambda _: synthetic("10000", "1"))),
        "wordcount": ("MiB of text", sizes, of_size(program, scratch, ["wordcount"], "text", [])),
        "grep": ("MiB of text", sizes, of_size(program, scratch, ["grep", "ab+a"], "text", [])),
        "sort": ("MiB of records", sizes, of_size(program, scratch, ["sort", "--record-length", "100", "--key-bytes", "0..10"], "records", [])),
        "sort-1GiB": ("MiB of records, sorted in 1 GiB", sizes, of_size(program, scratch, ["sort", "--record-length", "100", "--key-bytes", "0..10"], "records", memory)),
    }


def exponent(points: list, values: list, sorts: bool = False) -> float:
    """Growth between the last two points, as a power of the size; of n log n the power of n log n."""
    amounts = [size * math.log2(size * 2**20 / 100) if sorts else size for size in points[-2:]]
    last = [max(value, 1e-9) for value in values[-2:]]
    return math.log(last[1] / last[0]) / math.log(amounts[1] / amounts[0])


def judge(name: str, what: str, points: list, measured: list) -> bool:
    """Prints a row for each value of a series; `measured` has its runs for each point."""
    good = True
    for at, (value, unit, scale) in enumerate([("time", "s", 1), ("CPU time of the master", "s", 1), ("memory of the master", "MiB", 2**20)]):
        if len(measured[0][0]) <= at:
            break
        medians = [statistics.median(run[at] for run in runs) for runs in measured]
        power = exponent(points, medians, name.startswith("sort"))
        # A clock of hundredths of a second says nothing of shorter times.
        met = power <= EXPONENT_MAX or (unit == "s" and medians[-2] < SECONDS_MIN)
        good &= met
        shown = ", ".join(f"{size:,}: {median / scale:.3g} {unit}" for size, median in zip(points, medians))
        print(f"| {name} | {what} | {value} | {shown} | {power:.2f} | {'met' if met else 'MISSED'} |", flush=True)
    return good


def self_test() -> int:
    points = [100, 1_000, 10_000]
    grown = [[(size**power / 100,)] * RUNS for power in (1,) for size in points], [[(size**2 / 100,)] * RUNS for size in points]
    return 0 if [judge("test", "self-test", points, runs) for runs in grown] == [True, False] else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="target/dist/gristmill")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("series", nargs="*")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    program = str(pathlib.Path(options.program).absolute())
    with tempfile.TemporaryDirectory() as place:
        known = series(program, pathlib.Path(place), options.full)
        unknown = [name for name in options.series if name not in known]
        if unknown:
            parser.error(f"there is no series {unknown[0]}: {', '.join(known)}")
        version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        print(f"# Growth\n\nMade by `scripts/growth.py{' --full' if options.full else ''}` with {version}, on {os.cpu_count()} cores; medians of {RUNS} runs.\n")
        print("| series | of | value | at | exponent | at most 1.05 |\n|---|---|---|---|---|---|", flush=True)
        good = True
        for name in options.series or known:
            what, points, point = known[name]
            good &= judge(name, what, points, [point(size) for size in points])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

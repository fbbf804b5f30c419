#!/usr/bin/env python3
"""What it costs that a master can come back, and how long it takes.

usage: scripts/journal.py [--program target/dist/gristmill] [--rounds 7] [--folder DIR] [--only small|tasks|back]

- Tasks a second: a job of 10,000 empty maps, from its arrival to its end by the master's clock, with the master of `run`,
  which writes nothing down, and with one that stands, each on a cluster of its own that has run it twice before or, for
  `run`, anew. Two workers of one slot. A master that stands writes an ended job down for `history`, after its end: the
  next one begins when that is done, and what it costs is told beside it.
- Small jobs: one map and one reduce on a warm cluster that stands, with its state folder in DIR and in memory: what its
  disk costs.
- Coming back: the master is killed in a job of 10,000 maps of 2 ms when about half are done, and started anew; from its
  start until it says that it is ready, and until the first of its orders has been carried out. Nothing that was done may
  be done again.

Prints medians. Ends with code 1 if a target is missed: 10 % for tasks, 2 s for coming back. Needs a machine on which
nothing else runs.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

MAPS = 10_000
COST_MAX, BACK_SECONDS_MAX, PATIENCE = 1.10, 2.0, 60.0
SMALL_JOBS = 60
# A master that has nothing to do for so long, but for signs of life, has done all.
REST_SECONDS = 0.2


def await_true(what: str, look, limit: float = PATIENCE):
    begun = time.monotonic()
    while time.monotonic() - begun < limit:
        if found := look():
            return found
        time.sleep(0.002)
    raise RuntimeError(f"waited {limit} s in vain: {what}")


class Cluster:
    """A master and two workers in a folder of their own; ended with their last user."""

    def __init__(self, program: str, folder: pathlib.Path):
        self.program, self.folder, self.children, self.logs = program, folder, [], []
        self.environment = os.environ | {"GRISTMILL_STATE": str(folder)}
        self.master = self.start_master()
        for _ in range(2):
            self.start("worker", "--workers", "1", "--slots", "1")
        await_true("two workers", lambda: len(self.ask("status", "--json")["workers"]) == 2)

    def start(self, *arguments: str) -> subprocess.Popen:
        self.logs.append(self.folder / f"log-{len(self.logs)}")
        with open(self.logs[-1], "wb") as log:
            child = subprocess.Popen([self.program, *arguments], env=self.environment, stdout=log, stderr=log)
        self.children.append(child)
        return child

    def start_master(self) -> subprocess.Popen:
        child = self.start("master")
        log = self.logs[-1]
        await_true("a master that listens", lambda: "its join line is in" in log.read_text())
        return child

    def ask(self, *arguments: str) -> dict:
        command = [self.program, *arguments]
        return json.loads(subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE).stdout)

    def run(self, *arguments: str) -> dict:
        return job(self.program, self.environment, "submit", *arguments)

    def is_ready(self) -> bool:
        address = re.match(r"gm1:([^#]+)#", (self.folder / "join").read_text())[1]
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/readyz", timeout=1) as answer:
            return answer.status < 300
        return False

    def master_seconds(self) -> float:
        """What the master has had of the processors since its start."""
        tasks = pathlib.Path(f"/proc/{self.master.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def await_rest(self) -> float:
        """Waits until the master has nothing left to do, and answers `master_seconds`."""
        before = self.master_seconds()
        for _ in range(int(PATIENCE / REST_SECONDS)):
            time.sleep(REST_SECONDS)
            now = self.master_seconds()
            if now - before < REST_SECONDS / 50:
                return now
            before = now
        raise RuntimeError(f"the master was busy for {PATIENCE} s with no job")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The master last: without it workers wait for the next one.
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            child.wait(PATIENCE)


def job(program: str, environment: dict, how: str, *arguments: str) -> dict:
    """The status of a job that has ended well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, how, "synthetic", *arguments, "--json", "--quiet", "--output", f"{folder}/out"]
        said = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said)["status"]


def flow(status: dict) -> float:
    return (status["ended_ns"] - status["arrived_ns"]) / 1e9


def folder_in(parent: str | None) -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp(prefix="gristmill-journal-", dir=parent))


def many_tasks(program: str, parent: str | None, rounds: int) -> bool:
    work = ["--maps", str(MAPS), "--map-time", "0ms", "--reduce-time", "0ms", "--reduces", "1"]
    embedded = [*work, "--workers", "2", "--slots", "1"]
    folder, times, written_down = folder_in(parent), {"run": [], "stands": []}, []
    with Cluster(program, folder) as cluster:
        for _ in range(2):
            cluster.run(*work)
        # In turns, so that what changes on the machine changes for both.
        for _ in range(rounds):
            times["run"].append(flow(job(program, os.environ, "run", *embedded)))
            cluster.await_rest()
            times["stands"].append(flow(cluster.run(*work)))
            told = cluster.master_seconds()
            written_down.append(cluster.await_rest() - told)
    shutil.rmtree(folder)
    without, with_it = (statistics.median(times[name]) for name in ("run", "stands"))
    print(f"{MAPS} empty maps: {MAPS / without:,.0f} a second without, {MAPS / with_it:,.0f} with: {with_it / without:.3f}; "
          f"without {spread(times['run'])}, with {spread(times['stands'])}; "
          f"writing it down for `history` afterwards: {1000 * statistics.median(written_down):.0f} ms of a processor")
    return with_it / without <= COST_MAX


def small_jobs(program: str, parent: str | None) -> None:
    work = ["--maps", "1", "--map-time", "0ms", "--reduce-time", "0ms", "--reduces", "1"]
    for name, place in [("in memory", "/dev/shm"), ("on its disk", parent)]:
        for sync in [[], ["--no-sync"]]:
            folder = folder_in(place)
            with Cluster(program, folder) as cluster:
                times = [flow(cluster.run(*work, *sync)) for _ in range(SMALL_JOBS)][SMALL_JOBS // 6:]
            shutil.rmtree(folder)
            print(f"small job, state folder {name} {' '.join(sync)}: {1000 * statistics.median(times):.3f} ms")


def spread(times: list[float]) -> str:
    return f"{min(times):.3f} to {max(times):.3f} s"


def comes_back(program: str, parent: str | None, rounds: int) -> bool:
    ready, worked = [], []
    for _ in range(rounds):
        folder = folder_in(parent)
        with Cluster(program, folder) as cluster, tempfile.TemporaryDirectory() as out:
            work = ["--maps", str(MAPS), "--map-time", "2ms", "--reduce-time", "0ms", "--reduces", "1"]
            command = [program, "submit", "synthetic", *work, "--detach", "--output", f"{out}/out"]
            said = subprocess.run(command, env=cluster.environment, check=True, stdout=subprocess.PIPE, text=True)
            name = said.stdout.strip()
            done = lambda: cluster.ask("status", name, "--json")["maps"]["done"]
            await_true("half of the maps", lambda: MAPS // 2 < done())
            cluster.master.kill()
            cluster.master.wait()
            cluster.children.remove(cluster.master)
            begun = time.monotonic()
            cluster.master = cluster.start("master")
            await_true("a master that is ready", cluster.is_ready)
            ready.append(time.monotonic() - begun)
            before = done()
            await_true("a map that is done", lambda: before < done())
            worked.append(time.monotonic() - begun)
            status = cluster.ask("wait", name, "--json", "--quiet")
            attempts = status["attempts"]
            again = attempts["launched"] - attempts["returned"] - attempts.get("backups", 0) - MAPS - 1
            if status["state"] != "succeeded" or 0 < attempts["maps_rerun"] or 0 < again:
                raise RuntimeError(f"something was done again: {attempts}")
        shutil.rmtree(folder)
    print(f"{MAPS} tasks on the books: ready after {statistics.median(ready):.3f} s ({spread(ready)}), "
          f"the next map is done after {statistics.median(worked):.3f} s ({spread(worked)})")
    return max(ready) <= BACK_SECONDS_MAX


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(pathlib.Path(__file__).parent.parent / "target/dist/gristmill"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder")
    parser.add_argument("--only", choices=["small", "tasks", "back"])
    options = parser.parse_args()
    due = lambda part: options.only in (None, part)
    if due("small"):
        small_jobs(options.program, options.folder)
    cheap = not due("tasks") or many_tasks(options.program, options.folder, options.rounds)
    back = not due("back") or comes_back(options.program, options.folder, max(options.rounds // 2, 1))
    return int(not (cheap and back))


if __name__ == "__main__":
    sys.exit(main())

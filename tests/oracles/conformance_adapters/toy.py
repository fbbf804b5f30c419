#!/usr/bin/env python3
"""A minimal MapReduce for `conformance.py --self-test`: correct by default, and wrong in one place with --flaw.

The main process is the coordinator. It sends tasks to worker processes, a line of JSON each, and publishes the output of a
reduce by renaming it. It is not an example: nothing is sorted beyond memory, and all share one disk.
"""
import collections
import itertools
import json
import os
import pathlib
import re
import selectors
import subprocess
import sys
import tempfile
import time
import zlib

# A task that takes longer is given to another worker too; the short timeout is no longer than the kit holds a map.
REISSUE_SECONDS, IMPATIENT_SECONDS = 7.0, 1.5
# Time that duplicate calls may continue after one of them has ended.
LATE_SECONDS = 3.0
# Time that a coordinator with an early exit waits for a reduce to end.
GIVE_UP_SECONDS = 2.0
NUMBERS = itertools.count()


def call(job: str, kind: str, name: str):
    """Starts a call of `marked`; returns a function for its end."""
    if job != "marked":
        return lambda: None
    marks = pathlib.Path(os.environ["MR_MARKS"])
    mark = f"{kind}.{name}.{os.getpid()}.{next(NUMBERS)}"
    (marks / f"{mark}.began").touch()
    for order in ("crash", "stall"):
        try:
            (marks / f"{order}.{kind}.{name}").unlink()
        except FileNotFoundError:
            continue
        if order == "crash":
            os._exit(1)
        time.sleep(300)
    end = time.monotonic() + 120
    while (marks / f"hold.{kind}").exists():
        if end < time.monotonic():
            os._exit(3)
        time.sleep(0.01)
    return lambda: (marks / f"{mark}.ended").touch()


def run_map(order: dict, flaw: str) -> list:
    path = pathlib.Path(order["file"])
    ended = call(order["job"], "map", path.name)
    text = path.read_text()
    if flaw == "cuts-last-line" and order["job"] == "wc":
        text = text[:text.rfind("\n") + 1]
    words = re.findall("[A-Za-z]+", text)
    if order["job"] == "indexer" and flaw != "names-twice":
        words = sorted(set(words))
    parts = [[] for _ in range(order["reduces"])]
    for word in words:
        parts[zlib.crc32(word.encode()) % order["reduces"]].append((word, path.name))
    files = [f"{order['place']}-{number}" for number in range(order["reduces"])]
    for name, pairs in zip(files, parts):
        pathlib.Path(name).write_text(json.dumps(pairs))
    ended()
    return files


def run_reduce(order: dict, flaw: str) -> str:
    groups = collections.defaultdict(list)
    for name in order["files"]:
        for word, value in json.loads(pathlib.Path(name).read_text()):
            groups[word].append(value)
    place = order["output"] if flaw == "keeps-broken-output" else order["place"]
    with open(place, "w", buffering=1) as out:
        for word, values in sorted(groups.items()):
            ended = call(order["job"], "reduce", word)
            count = str(len(values))
            out.write(f"{word} {count} {','.join(sorted(values))}\n" if order["job"] == "indexer" else f"{word} {count}\n")
            ended()
    return place


def work(flaw: str):
    """A worker process."""
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps((run_map if order["kind"] == "map" else run_reduce)(order, flaw)), flush=True)


class Coordinator:
    def __init__(self, flaw: str, job: str, output: str, inputs: list, scratch: str):
        self.flaw, self.job, self.output, self.inputs, self.scratch = flaw, job, pathlib.Path(output), inputs, scratch
        self.workers_wanted, self.reduces = int(os.environ["MR_WORKERS"]), int(os.environ["MR_REDUCES"])
        self.output.mkdir(parents=True)
        self.attempts = itertools.count()
        self.chooser = selectors.DefaultSelector()
        self.workers = {}

    def start_worker(self):
        command = [sys.executable, __file__, "--worker", self.flaw]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.chooser.register(worker.stdout, selectors.EVENT_READ, worker)
        self.workers[worker] = None

    def drop(self, worker):
        self.chooser.unregister(worker.stdout)
        del self.workers[worker]
        worker.kill()
        worker.wait()

    def await_late(self):
        """Waits for duplicate calls of the previous phase; calls that stall are not waited for."""
        end = time.monotonic() + LATE_SECONDS
        while any(task is not None for task in self.workers.values()) and time.monotonic() < end:
            for key, _ in self.chooser.select(0.05):
                if key.fileobj.readline():
                    self.workers[key.data] = None
                else:
                    self.drop(key.data)

    def phase(self, kind: str, orders: list) -> list:
        """Runs all tasks of a kind; returns the report of each, or nothing for a task that was dropped."""
        waiting, results, began = list(range(len(orders))), {}, {}
        self.await_late()
        for worker in [worker for worker, task in self.workers.items() if task is not None]:
            self.drop(worker)
        last_end = time.monotonic()
        together = 1 if self.flaw == f"one-{kind}-at-a-time" else self.workers_wanted
        patience = {"impatient": IMPATIENT_SECONDS, "waits-for-ever": float("inf")}.get(self.flaw, REISSUE_SECONDS)
        while len(results) < len(orders):
            leave = self.flaw == "workers-leave-early" and kind == "reduce"
            while len(self.workers) < self.workers_wanted and (waiting or not leave):
                self.start_worker()
            for worker in [worker for worker, task in self.workers.items() if task is None]:
                running = sum(task is not None for task in self.workers.values())
                if waiting and running < together:
                    task = waiting.pop(0)
                    order = {**orders[task], "kind": kind, "job": self.job, "reduces": self.reduces,
                             "place": f"{self.scratch}/{kind}-{next(self.attempts)}"}
                    order["output"] = str(self.output / f"part-{task}-{next(self.attempts)}")
                    self.workers[worker], began[task] = task, time.monotonic()
                    worker.stdin.write(json.dumps(order) + "\n")
                elif leave and not waiting:
                    self.drop(worker)
            for key, _ in self.chooser.select(0.05):
                worker, line = key.data, key.fileobj.readline()
                task = self.workers[worker]
                if line:
                    self.workers[worker], last_end = None, time.monotonic()
                    self.finish(kind, task, json.loads(line), results)
                    continue
                self.drop(worker)
                if task is not None and task not in results:
                    if self.flaw == "forgets-lost-tasks":
                        results[task] = None
                    else:
                        waiting.append(task)
            for task, since in began.items():
                if task not in results and task not in waiting and patience < time.monotonic() - since:
                    # Before all others, or the job could end first.
                    waiting.insert(0, task)
            if self.flaw == "ends-while-reduces-run" and kind == "reduce" and GIVE_UP_SECONDS < time.monotonic() - last_end:
                break
        return [results.get(task) for task in range(len(orders))]

    def finish(self, kind: str, task: int, reported, results: dict):
        if task in results:
            return
        results[task] = reported
        if kind == "reduce" and self.flaw != "keeps-broken-output":
            os.rename(reported, self.output / f"part-{task}")

    def run(self):
        try:
            maps = self.phase("map", [{"file": name} for name in self.inputs])
            shuffled = [[files[number] for files in maps if files] for number in range(self.reduces)]
            self.phase("reduce", [{"files": files} for files in shuffled])
        finally:
            for worker in list(self.workers):
                self.drop(worker)


def main():
    if sys.argv[1] == "--worker":
        work(sys.argv[2])
        return
    flaw = "none"
    arguments = sys.argv[1:]
    if arguments[0] == "--flaw":
        flaw, arguments = arguments[1], arguments[2:]
    job, output, *inputs = arguments
    with tempfile.TemporaryDirectory(prefix="toy-", dir=pathlib.Path(output).parent) as scratch:
        Coordinator(flaw, job, output, inputs, scratch).run()


if __name__ == "__main__":
    main()

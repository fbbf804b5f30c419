#!/usr/bin/env python3
"""Measures how long a job takes to recover from faults, on hosts that are network namespaces of this machine.

usage: tests/faults/recovery.py [--program target/dist/gristmill] [--rounds 10] [--only ROW,...] [--results FILE] [--page FILE]
       tests/faults/recovery.py --self-test

Each round starts a master, three workers of one slot and a submitter on hosts of their own. It runs a job of sleeping tasks
once undisturbed and once with the fault, and compares the outputs byte by byte. The master's journal shows when the fault
was noticed and when work was ordered again. Cost is the disturbed time minus the undisturbed one. Lost work is the cost in
any system: the tasks that ran again, and the extra time of the remaining workers for the rest. A fault that left no trace
where it must leave one is an error, and so is a round longer than its limit.

Rounds are stored in a file, one per line. A later call continues there as long as the program is the same. Rows take turns.
The script ends with code 1 if a target was missed in any round, and names the target.

Needs root and `ip`, and for some rows `tc`, `ss` or `nft`; missing programs are reported. All of it happens in namespaces of
its own, which end with the script. nft drops packets of any size, as kernels without netem can.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

import recovery_judge
from recovery_hosts import MASTER, WORKERS, Again, Cluster, Lan, wait
from recovery_judge import Limit

ROUND_SECONDS_MAX = 240.0
MAP_SECONDS, REDUCE_SECONDS, REDUCES = 0.2, 0.2, 6
JOBS = {
    "even": {"maps": 36, "map_seconds": MAP_SECONDS, "map_bytes": "64KiB"},
    "large": {"maps": 36, "map_seconds": MAP_SECONDS, "map_bytes": "2MiB"},
    "many": {"maps": 600, "map_seconds": 0.012, "map_bytes": "8KiB"},
}
MAPS, SHUFFLE, REDUCING = ("map_finished", 12), ("map_finished", 34), ("reduce_finished", 1)
# A partial cut is recognised within 5 s, and the job ends within lost work and 10 s.
CUT = [Limit("noticed", 5.0), Limit("beyond", 10.0)]
KILLED = [Limit("noticed", 0.1), Limit("again", 0.5), Limit("beyond", 1.0)]
GONE = re.compile(r"master is silent|master is gone|connection to the master is gone")


@dataclass
class Fault:
    """The injection, its phase of the job, and the measured values."""

    what: str
    # Returns a function that stops the fault when the job has ended, if any.
    inject: object
    limits: list
    before: str = "-"
    # Kind and number of tasks that must have ended before.
    after: tuple[str, int] = MAPS
    job: str = "even"
    speeds: dict = field(default_factory=dict)
    # The order, or the fact, that shows that the fault was noticed.
    noticed: str = "retract"
    # Number of workers missing for the rest of the job.
    without: int = 0
    # A worker must have been declared lost.
    loses: bool = False
    # Exit code of the client, if the job cannot succeed.
    code: int = 0
    needs: tuple[str, ...] = ()


def kill_some(cluster: Cluster, seed: int) -> Again:
    draw = random.Random(seed)
    return Again(0.5, lambda: cluster.kill(draw.choice(WORKERS)))


FAULTS = {
    "kill-maps": Fault("a worker killed in the maps", lambda c, _: c.kill(2), KILLED, "noticed after 0.002 to 0.023", MAPS,
                       noticed="worker_lost", loses=True),
    "kill-shuffle": Fault("a worker killed at the end of the maps", lambda c, _: c.kill(2), KILLED,
                          "noticed after 0.002 to 0.023", SHUFFLE, noticed="worker_lost", loses=True),
    "kill-reduces": Fault("a worker killed in the reduces", lambda c, _: c.kill(2), KILLED, "noticed after 0.002 to 0.023",
                          REDUCING, noticed="worker_lost", loses=True),
    "stop": Fault("a worker stopped for good", lambda c, _: c.stop(2, None), [Limit("noticed", 5.6), Limit("beyond", 10.0)],
                  "dead after 5.0 to 5.5", noticed="worker_lost", without=1, loses=True),
    "stop-4s": Fault("a worker stopped for 4 s", lambda c, _: c.stop(2, 4.0), [Limit("lost", 0), Limit("cost", 10.0)],
                     "survived"),
    "pair": Fault("two workers cannot reach each other", lambda c, _: c.lan.cut(2, 3), CUT, "48", without=1),
    "pair-many": Fault("the same with 600 maps", lambda c, _: c.lan.cut(2, 3), CUT, "373", ("map_finished", 200),
                       job="many", without=1),
    "apart": Fault("a worker cut off from all others", lambda c, _: [c.lan.cut(2, other) for other in (3, 4)] and None, CUT,
                   "107 to 127", without=1),
    "resets": Fault("every connection between workers is reset in the middle of an answer",
                    lambda c, _: [c.lan.answer_badly(host, "reset") for host in WORKERS] and None, CUT, "97 to 152", without=2,
                    needs=("nft", "ss")),
    "drip": Fault("a worker whose answers drip", lambda c, _: c.lan.answer_badly(2, "drip"), CUT, "no end in 200",
                  without=1, needs=("nft", "ss")),
    "loss": Fault("a worker that loses 20 % of its packets", lambda c, _: c.lan.lose(2, 20),
                  [Limit("lost", 0), Limit("beyond", 10.0)], "92", without=1, needs=("nft",)),
    "throttle": Fault("a worker on a link of 1 Mbit/s", lambda c, _: c.lan.throttle(2, "1mbit"), [Limit("beyond", 10.0)],
                      "88 to 129", without=1, needs=("tc",)),
    "throttle-large": Fault("the same with outputs of 2 MiB", lambda c, _: c.lan.throttle(2, "1mbit"), CUT, "-",
                            job="large", without=1, needs=("tc",)),
    "vanish": Fault("a worker's host vanishes", lambda c, _: c.lan.vanish(2), [Limit("noticed", 5.6), Limit("beyond", 10.0)],
                    noticed="worker_lost", without=1, loses=True),
    "master": Fault("the master's host vanishes", None, [Limit("noticed", 16.0)], "not in 420"),
    "kills": Fault("a worker killed every 0.5 s", kill_some, [Limit("ended", 43.0)], "43", noticed="worker_lost",
                   loses=True),
    "all-gone": Fault("all workers gone", lambda c, _: [c.kill_for_good(host) for host in WORKERS] and None,
                      [Limit("ended", 35.0)], noticed="worker_lost", loses=True, code=5),
    "slow": Fault("a worker of three at a tenth of its speed", lambda c, _: None, [Limit("ratio", 1.3)],
                  "1.6 x ideal (10.05 of 6.3)", ("map_finished", 1), speeds={2: "0.1"}),
}


def job_flags(name: str) -> list[str]:
    job = JOBS[name]
    return ["--maps", str(job["maps"]), "--map-time", f"{job['map_seconds'] * 1000:g}ms", "--reduce-time",
            f"{REDUCE_SECONDS * 1000:g}ms", "--map-bytes", job["map_bytes"], "--reduces", str(REDUCES)]


def digest(output: pathlib.Path) -> str:
    parts = sorted(output.glob("part-*"))
    return hashlib.sha256(b"".join(part.name.encode() + part.read_bytes() for part in parts)).hexdigest()


def timed(cluster: Cluster, job: list[str], output: pathlib.Path, inject, code: int = 0) -> float:
    begun = time.monotonic()
    client = cluster.submit(job, output)
    stopping = inject()
    try:
        ended = client.wait(ROUND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
        raise RuntimeError(f"the job had not ended after {ROUND_SECONDS_MAX:.0f} s") from None
    finally:
        took = time.monotonic() - begun
        if isinstance(stopping, Again):
            stopping.stop()
    if ended != code:
        said = cluster.log(MASTER, "submit").read_text()[-2000:]
        raise RuntimeError(f"the job ended with code {ended} instead of {code}:\n{said}")
    return took


def lost_work(fault: Fault, again: list[dict]) -> float:
    """Returns the seconds of the tasks that ran again, and the extra time of the remaining workers for the rest."""
    job, left = JOBS[fault.job], len(WORKERS) - fault.without
    maps = sum(attempt["task"]["kind"].lower() == "map" for attempt in again)
    runs = math.ceil(maps / left) * job["map_seconds"] + math.ceil((len(again) - maps) / left) * REDUCE_SECONDS
    fact, done = fault.after
    done_maps, done_reduces = (done, 0) if fact == "map_finished" else (job["maps"], done)
    rest = (job["maps"] - done_maps) * job["map_seconds"] + (REDUCES - done_reduces) * REDUCE_SECONDS
    return runs + rest * (1 / left - 1 / len(WORKERS))


def measured(program: str, fault: Fault, seed: int) -> dict:
    """One round: the job undisturbed, then with the fault."""
    lan = Lan()
    cluster = None
    with tempfile.TemporaryDirectory(prefix="gristmill-recovery-", ignore_cleanup_errors=True) as name:
        directory = pathlib.Path(name)
        try:
            cluster = Cluster(program, directory, lan, {})
            clean = timed(cluster, job_flags(fault.job), directory / "clean", lambda: None)
            if fault.inject is None:
                return {"clean": clean, **master_gone(cluster)}
            if fault.speeds:
                cluster.end()
                (directory / "again").mkdir()
                cluster = Cluster(program, directory / "again", lan, fault.speeds)
            return {"clean": clean, **disturbed(cluster, fault, seed, clean, directory)}
        finally:
            if cluster:
                cluster.end()
            lan.close()


def disturbed(cluster: Cluster, fault: Fault, seed: int, clean: float, directory: pathlib.Path) -> dict:
    journal = cluster.journal
    fact, count = fault.after
    ended = len(journal.facts(fact))
    injected = {}

    def inject():
        wait("the phase", lambda: ended + count <= len(journal.facts(fact)), 60.0)
        injected["at"], injected["wall"] = journal.now(), time.monotonic()
        return fault.inject(cluster, seed)

    faulted = timed(cluster, job_flags(fault.job), directory / "faulted", inject, fault.code)
    after_fault = time.monotonic() - injected["wall"]
    if fault.code == 0 and digest(directory / "faulted") != digest(directory / "clean"):
        raise RuntimeError("the output differs from that of the undisturbed job")

    def since(found: list) -> list:
        return [(at - injected["at"], it) for at, it in found if injected["at"] - 0.001 <= at]

    lost = since(journal.facts("worker_lost"))
    if fault.loses and not lost:
        raise RuntimeError("no worker was lost: the fault did not fire")
    # Queued maps that were recalled cost nothing.
    returned = {json.dumps(fact["attempt"]) for _, fact in journal.facts("attempt_returned")}
    launched = [(at, order["attempt"]) for at, order in since(journal.orders("launch"))]
    again = [(at, attempt) for at, attempt in launched if 0 < attempt["epoch"] and json.dumps(attempt) not in returned]
    seen = lost if fault.noticed == "worker_lost" else since(journal.orders(fault.noticed))
    work = lost_work(fault, [attempt for _, attempt in again])
    ideal = clean * len(WORKERS) / (len(WORKERS) - len(fault.speeds) + sum(map(float, fault.speeds.values())))
    return {"faulted": faulted, "cost": faulted - clean, "lost_work": work, "beyond": faulted - clean - work,
            "noticed": max(0.0, seen[0][0]) if seen else None, "again": max(0.0, again[0][0]) if again else None,
            "run_again": len(again), "lost": len(lost), "ratio": faulted / ideal,
            "ended": after_fault if fault.code else faulted}


def master_gone(cluster: Cluster) -> dict:
    """Measures the time until every worker reports that its master is gone."""
    begun = time.monotonic()
    cluster.lan.vanish(MASTER)
    said = [cluster.log(host, "worker") for host in WORKERS]
    wait("workers that notice", lambda: all(GONE.search(log.read_text(errors="replace")) for log in said), 60.0)
    return {"noticed": time.monotonic() - begun}


class Results:
    """Rounds of this program, one per line of a file."""

    def __init__(self, path: pathlib.Path, program: str) -> None:
        self.path = path
        self.program = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:16]
        self.rounds: dict[str, list[dict]] = {name: [] for name in FAULTS}
        for text in path.read_text().splitlines() if path.exists() else []:
            kept = json.loads(text)
            if kept["program"] == self.program and kept["row"] in self.rounds:
                self.rounds[kept["row"]].append(kept["round"])

    def add(self, name: str, found: dict) -> None:
        self.rounds[name].append(found)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a") as file:
            file.write(json.dumps({"program": self.program, "row": name, "round": found}) + "\n")

    def page(self, names: list[str], wanted: int, missing: dict[str, str]) -> str:
        lines = [recovery_judge.heading(recovery_judge.HEAD)]
        for name in names:
            fault = FAULTS[name]
            if name in missing:
                lines.append(recovery_judge.line([fault.what, f"skipped: needs {missing[name]}", *["-"] * 10]))
            else:
                lines.append(recovery_judge.row(fault.what, fault.before, fault.limits, self.rounds[name], wanted))
        return "\n".join(lines) + "\n\n" + recovery_judge.others() + "\n"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/dist/gristmill")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default=",".join(FAULTS), metavar="ROW,...", help="rows: " + ", ".join(FAULTS))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("target/recovery.jsonl"))
    parser.add_argument("--page", type=pathlib.Path, help="write the table there too")
    parser.add_argument("--self-test", action="store_true")
    given = parser.parse_args()
    given.only = given.only.split(",")
    unknown = [name for name in given.only if name not in FAULTS]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    return given


def main() -> int:
    given = options()
    if given.self_test:
        recovery_judge.self_test()
        return 0
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("recovery.py: skipped (needs root and `ip`, for network namespaces)", file=sys.stderr)
        return 0
    lacks = {name: [tool for tool in FAULTS[name].needs if not shutil.which(tool)] for name in given.only}
    missing = {name: " and ".join(tools) for name, tools in lacks.items() if tools}
    results = Results(given.results, given.program)
    for number in range(given.rounds):
        for name in given.only:
            if name in missing or number < len(results.rounds[name]):
                continue
            try:
                found = measured(os.path.abspath(given.program), FAULTS[name], number)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                found = {"error": f"{error} {getattr(error, 'stderr', None) or ''}".strip()}
                print(f"{name}, round {number + 1}: {error}", file=sys.stderr)
            results.add(name, found)
            shown = {key: round(value, 3) for key, value in found.items() if isinstance(value, (int, float))}
            print(f"{name}, round {number + 1}: {shown}", file=sys.stderr, flush=True)
    page = results.page(given.only, given.rounds, missing)
    print(page)
    if given.page:
        given.page.write_text(page)
    verdicts = [recovery_judge.judge(FAULTS[name].limits, results.rounds[name], given.rounds) for name in given.only
                if name not in missing]
    return 0 if all(verdict.reached for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

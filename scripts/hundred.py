#!/usr/bin/env python3
"""Lets 100 worker processes with one sleeping slot each run 20,000 tasks and says what that costs.

usage: scripts/hundred.py [--program FILE] [--workers 100] [--maps 19990] [--map-time exp:250ms]

Prints the time until all processes have started, the master's share of a core while the job ran, the memory of a worker
and how busy the slots were. Without --program it builds and measures what is shipped (`--profile dist`). Ends with code
1 if the master took more than 25 % of a core.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from shipped import shipped

MASTER_SHARE_MAX = 0.25
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.05


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process so far; None once it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def children(pid: int) -> dict[str, list[int]]:
    """Direct children by role. Before it executes the program, a child still shows the words of its parent."""
    found: dict[str, list[int]] = {"master": [], "worker": []}
    try:
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if words[1:2] and words[1].decode() in found:
                found[words[1].decode()].append(int(child))
    except OSError:
        pass
    return found


def private_kib(pid: int) -> int:
    """Memory that a process shares with no other."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="program to measure [default: build it as it is shipped, with --profile dist]")
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--maps", type=int, default=19_990)
    parser.add_argument("--reduces", type=int, default=10)
    parser.add_argument("--map-time", default="exp:250ms")
    parser.add_argument("--policy", default="fair")
    options = parser.parse_args()
    program = shipped(options.program)
    with tempfile.TemporaryDirectory(prefix="gristmill-hundred-") as folder:
        command = [
            program, "run", "synthetic", "--workers", str(options.workers), "--slots", "1",
            "--maps", str(options.maps), "--map-time", options.map_time, "--reduces", str(options.reduces),
            "--reduce-time", "250ms", "--seed", "1", "--policy", options.policy, "--no-sync", "--quiet", "--json",
            "--output", f"{folder}/out", "--trace", f"{folder}/trace.json",
        ]
        print(" ".join(command), flush=True)
        begun = time.monotonic()
        running = subprocess.Popen(command, stdout=open(f"{folder}/report.json", "w"))
        joined, master, looks, memory = None, None, [], []
        while running.poll() is None:
            found = children(running.pid)
            if found["master"]:
                master = found["master"][0]
                spent = cpu_seconds(master)
                if spent is not None:
                    looks.append((time.monotonic(), spent))
            if joined is None and len(found["worker"]) == options.workers:
                joined = time.monotonic() - begun
            if found["worker"] and 3 < time.monotonic() - begun and not memory:
                memory = [private_kib(pid) for pid in found["worker"]]
            time.sleep(LOOK_SECONDS)
        if running.returncode != 0:
            print(f"the job ended with code {running.returncode}", file=sys.stderr)
            return 1
        status = json.loads(pathlib.Path(f"{folder}/report.json").read_text())["status"]
        trace = json.loads(pathlib.Path(f"{folder}/trace.json").read_text())
    flow = (status["ended_ns"] - status["arrived_ns"]) / 1e9
    slots = status["totals"]["slot_ns"] / 1e9
    tasks = status["maps"]["done"] + status["reduces"]["done"]
    # Only looks while the job ran: the trace is written after it.
    last = looks[0][0] + flow
    inside = [look for look in looks if look[0] <= last]
    share = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
    print(f"{tasks} tasks in {flow:.2f} s on {options.workers} workers, {tasks / flow:.0f} tasks a second")
    print(f"all processes started after {joined:.2f} s" if joined else "the job ended before all processes were seen")
    print(f"slots were busy {100 * slots / (flow * options.workers):.1f} % of the time (the job's tail included)")
    if memory:
        print(f"private memory of a worker: median {sorted(memory)[len(memory) // 2] / 1024:.1f} MiB")
    print(f"master: {100 * share:.1f} % of a core, {1e6 * share * flow / tasks:.0f} us a task")
    print(f"trace: {len(trace['traceEvents'])} events")
    return 0 if share <= MASTER_SHARE_MAX else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Kills random workers of random jobs for a while and checks that no byte of any output changes.

usage: scripts/soak.py [--program target/debug/gristmill] [--seconds 60] [--seed 1]

Jobs run on loopback in a folder of their own; only worker processes of those jobs are killed. Ends with code 1, the
seed and the job's own words at the first output that differs, job that fails or job that does not end.
"""
import argparse
import hashlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

JOB_SECONDS_MAX = 60


def digest(output: pathlib.Path) -> str:
    parts = sorted(output.glob("part-*"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()


def workers_of(pid: int) -> list[int]:
    """Direct children that are workers."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(child) for child in children.read_text().split()]
        # By its first argument: before it executes the program, a child still shows the words of its parent.
        words = {child: pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in found}
        return [child for child in found if words[child][1:2] == [b"worker"]]
    except OSError:
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/debug/gristmill")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    draw = random.Random(options.seed)
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory(prefix="gristmill-soak-") as name:
        base = pathlib.Path(name)
        text, tables = str(base / "text"), base / "tables"
        for kind, path, size in (("text", text, "2MiB"), ("tables", str(tables), "2MiB")):
            subprocess.run([program, "gen", kind, path, "--size", size, "--seed", "7"], check=True,
                           stderr=subprocess.DEVNULL)
        join = ["--left", str(tables / "users.csv"), "--right", str(tables / "visits.csv"), "--on", "user"]
        jobs = [["wordcount", text], ["sort", text], ["join", *join]]
        common = ["--reduces", "5", "--split-size", "60KiB", "--no-sync", "--quiet"]
        expected = []
        for number, job in enumerate(jobs):
            output = base / f"expected-{number}"
            subprocess.run([program, "run", *job, *common, "--output", str(output)], check=True)
            expected.append(digest(output))
        runs = kills = 0
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            number = draw.randrange(len(jobs))
            output = base / f"run-{runs}"
            with open(base / "words", "wb") as words:
                command = [program, "run", *jobs[number], *common, "--workers", "3", "--output", str(output)]
                process = subprocess.Popen(command, stderr=words)
                for _ in range(draw.randrange(1, 5)):
                    time.sleep(draw.random() * 0.12)
                    alive = workers_of(process.pid)
                    if alive:
                        os.kill(draw.choice(alive), signal.SIGKILL)
                        kills += 1
                try:
                    code = process.wait(JOB_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.terminate()
                    process.wait()
                    code = "none: it did not end"
            if code != 0 or digest(output) != expected[number]:
                print(f"job {jobs[number][0]}, run {runs}: exit code {code}, output "
                      f"{'as expected' if output.exists() and digest(output) == expected[number] else 'wrong'}")
                print((base / "words").read_text(errors="replace"))
                return 1
            runs += 1
        print(f"{runs} runs, {kills} workers killed, every output as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())

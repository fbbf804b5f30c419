#!/usr/bin/env python3
"""What a master and its workers hold after ten thousands of small jobs: memory, descriptors, threads, bytes on disk.

usage: scripts/growth.py [--program target/dist/gristmill-bench-jobs] [--jobs 100000] [--samples 20] [--folder DIR]
       scripts/growth.py --self-test

A master that stands and two workers of one slot run jobs of one map and one reduce, submitted by one program after each
other. After each twentieth part of them it looks into /proc and into the state folder. The first quarter fills what is
bounded by number (the last thousand ended jobs, the history of the bytes that it may have); from then on nothing may
grow: each figure's mean over the last quarter of the jobs stands beside that of the second quarter, and may be 1.10
times it and a little. Bytes on disk rise and fall, as the recovery file is written anew when it has grown: their highest
of the last half stands beside that of the first. Prints a table. Ends with code 1 if something grows. Not here: how fast jobs are beside others'
(`scripts/bench.sh`).
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from journal import Cluster

GROWTH_MAX = 1.10
DISK = "disk MiB"
# What may come and go at any moment: MiB of memory, descriptors of connections, threads, and what is written to the
# recovery file between two looks.
SLACK = {"MiB": 2.0, "descriptors": 4, "threads": 4, DISK: 16.0}
MIB = 1 << 20


def of_process(pid: int) -> dict[str, float]:
    """What a process holds now."""
    folder = pathlib.Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return {
        "MiB": int(status["VmRSS"].split()[0]) / 1024,
        "descriptors": len(list((folder / "fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def bytes_below(folder: pathlib.Path) -> int:
    """Bytes of all files below a folder in which files come and go."""
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size if path.is_file() else 0)
        except FileNotFoundError:
            continue
    return sum(sizes)


def looked(cluster: Cluster) -> dict[str, float]:
    """All figures by their names."""
    figures = {"master " + name: value for name, value in of_process(cluster.master.pid).items()}
    workers = [of_process(child.pid) for child in cluster.children if child is not cluster.master]
    for name in workers[0]:
        figures["workers " + name] = sum(worker[name] for worker in workers)
    return figures | {"state disk MiB": bytes_below(cluster.folder) / MIB}


def growing(samples: list[dict[str, float]]) -> list[str]:
    """A sentence for each figure that has grown."""
    quarter, half = len(samples) // 4, len(samples) // 2
    found = []
    for name in samples[0]:
        kind, values = name.split(" ", 1)[1], [sample[name] for sample in samples]
        if kind == DISK:
            before, after, spans = max(values[:half]), max(values[half:]), ("at most in the first half", "in the last")
        else:
            before, after = (statistics.mean(part) for part in (values[quarter : 2 * quarter], values[-quarter:]))
            spans = ("in the second quarter", "in the last")
        if after > before * GROWTH_MAX + SLACK[kind]:
            found.append(f"{name} grows: {before:.1f} {spans[0]}, {after:.1f} {spans[1]}")
    return found


def self_test() -> None:
    """The judgement must be able to say no."""
    flat = [{"master MiB": 30.0, "master descriptors": 20} for _ in range(20)]
    assert growing(flat) == []
    filling = [{"master MiB": min(30.0, 10.0 + 5 * number), "master descriptors": 20} for number in range(20)]
    assert growing(filling) == [], "a bound that is reached in the first quarter is no growth"
    leak = [{"master MiB": 30.0 + number, "master descriptors": 20} for number in range(20)]
    assert len(growing(leak)) == 1, growing(leak)
    descriptors = [{"master MiB": 30.0, "master descriptors": 20 + number} for number in range(20)]
    assert len(growing(descriptors)) == 1, growing(descriptors)
    saw = [{"state disk MiB": 10.0 + 10 * (number % 6)} for number in range(20)]
    assert growing(saw) == []
    rising = [{"state disk MiB": 10.0 * number} for number in range(20)]
    assert len(growing(rising)) == 1, growing(rising)
    print("self-test: memory and descriptors that grow are told from such that stay")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/dist/gristmill-bench-jobs")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--folder", help="where the state folder is made")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.samples < 8 or options.jobs < options.samples:
        sys.exit("growth.py needs --samples of at least 8 and a job for each: there would be no quarters to compare")
    program = str(pathlib.Path(options.program).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gristmill-growth-", dir=options.folder))
    each, samples = options.jobs // options.samples, []
    with Cluster(program, folder) as cluster:
        print(f"{'jobs':>8} {'jobs/s':>7} " + " ".join(f"{name:>19}" for name in looked(cluster)))
        for number in range(options.samples):
            with tempfile.TemporaryDirectory() as output:
                command = [program, "submit", "warm-jobs", "--jobs", str(each), "--warm-up", "0", "--maps", "1"]
                command += ["--reduces", "1", "--no-sync", "--quiet", "--output", f"{output}/jobs"]
                begun = time.monotonic()
                subprocess.run(command, env=cluster.environment, check=True, stdout=subprocess.DEVNULL)
                rate = each / (time.monotonic() - begun)
            samples.append(looked(cluster))
            figures = " ".join(f"{figure:19.1f}" for figure in samples[-1].values())
            print(f"{(number + 1) * each:8} {rate:7.0f} {figures}", flush=True)
    found = growing(samples)
    print("\n".join(found) if found else "nothing grows after the first quarter")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Predicts how long a job takes on more workers than this machine has: its tasks are measured on one worker here, and
the cluster simulator runs them on many.

    scripts/predict.py wordcount books.txt
    scripts/predict.py --times 16 --network 125MB sort records.txt --record-length 100 --key-bytes 0..10

Assumed: workers as fast as this one, each with its own disk and cores; as many reduces as workers; a network that gives
every worker the bandwidth of --network; master and start cost nothing. Beside the prediction for two workers stands
what two take here, on the same disk and memory. Not here: any policy question; one job runs alone. Without --program it
builds and measures what is shipped (`--profile dist`).
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

from shipped import shipped

WORKERS = [1, 2, 4, 8, 16, 32, 64, 128]
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def run(command):
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{finished.stderr}")
    return json.loads(finished.stdout)


def measured(program, job, workers, folder):
    """Seconds of the phases of the fastest of three runs, and what was moved."""
    cluster = ["--workers", str(workers), "--slots", "1", "--no-sync", "--json"]
    best = None
    for number in range(3):
        output = str(folder / f"out-{workers}-{number}")
        status = run([program, "run", *job, *cluster, "--output", output])["status"]
        seconds = (status["ended_ns"] - status["started_ns"]) / 1e9
        if best is None or seconds < best["seconds"]:
            best = {
                "seconds": seconds,
                "maps": status["maps"]["total"],
                "map_seconds": (status["maps_done_ns"] - status["started_ns"]) / 1e9,
                "reduce_seconds": (status["ended_ns"] - status["maps_done_ns"]) / 1e9,
                "bytes": status["totals"]["map_bytes_out"],
            }
    return best


def predicted(program, one, workers, times, network, folder):
    """Seconds by the simulator, and how much of each station was used."""
    maps, reduces = one["maps"] * times, workers
    row = [
        f"{maps}x{one['map_seconds'] / one['maps']:.6f}",
        f"{reduces}x{one['reduce_seconds'] * times / reduces:.6f}",
        str(one["bytes"] * times),
    ]
    table = folder / "job.csv"
    table.write_text("arrival,maps,reduces,shuffle_bytes\n0," + ",".join(row) + "\n")
    cluster = ["--model", "cluster", "--workers", str(workers), "--slots", "1", "--network", f"{network * workers}B/s"]
    simulated = run([program, "sim", *cluster, "--policy", "fifo", "--workload", str(table), "--json"])
    metrics = simulated["policies"][0]["metrics"]
    value = lambda name: metrics[name]["mean"]
    use = {"map slots": "map-use", "network": "shuffle-use", "reduce slots": "reduce-use"}
    return value("flow"), {what: value(name) / 100 for what, name in use.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="program to measure [default: build it as it is shipped, with --profile dist]")
    parser.add_argument("--times", type=int, default=1, help="input so many times as large as the one measured")
    parser.add_argument("--network", default="125MB", help="bytes a second of each worker's connection")
    parser.add_argument("job", nargs=argparse.REMAINDER, help="as behind `gristmill run`")
    flags = parser.parse_args()
    number = flags.network.rstrip("KMGiB")
    unit = flags.network[len(number) :]
    if not flags.job or flags.times < 1 or not number.isdigit() or unit not in UNITS:
        parser.error("name a job, --times from 1, and --network such as 125MB")
    program = shipped(flags.program)
    network = int(number) * UNITS[unit]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        one = measured(program, flags.job, 1, folder)
        two = measured(program, flags.job, 2, folder)
        print(f"{one['maps'] * flags.times} maps of {one['map_seconds'] / one['maps'] * 1e3:.0f} ms, "
              f"{one['reduce_seconds'] * flags.times:.2f} s of reduces, {one['bytes'] * flags.times / 1e6:.0f} MB shuffled, "
              f"{network / 1e6:.0f} MB/s for each worker")
        print(f"{'workers':>7}  {'predicted s':>11}  {'speed-up':>8}  {'here s':>6}  {'use: maps':>9}  {'network':>7}  {'reduces':>7}  limit")
        first = None
        for workers in WORKERS:
            seconds, use = predicted(program, one, workers, flags.times, network, folder)
            first = first or seconds
            # Reduces wait for the last map and the last byte, so stations take turns: the one in use longest limits,
            # unless all are idle half of the time, when it is that the tasks do not divide.
            limit = max(use, key=use.get)
            if sum(use.values()) < 0.5:
                limit = "waves: too few tasks"
            here = {1: one, 2: two}.get(workers) if flags.times == 1 else None
            shown = f"{here['seconds']:.2f}" if here else ""
            print(f"{workers:>7}  {seconds:>11.2f}  {first / seconds:>8.1f}  {shown:>6}  "
                  f"{use['map slots']:>9.2f}  {use['network']:>7.2f}  {use['reduce slots']:>7.2f}  {limit}")


if __name__ == "__main__":
    main()

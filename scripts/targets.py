#!/usr/bin/env python3
"""Simulates what divided tasks and preemption gain, and judges it by targets.

usage: scripts/targets.py [--program target/release/gristmill] [--seeds 40] [--quick]
       scripts/targets.py --real           real jobs on this machine, in the place of simulations
       scripts/targets.py --mix            the laptop mix on this machine, 40 minutes
       scripts/targets.py --self-test      a program without a gain must miss the targets

Prints Markdown. A ratio is the geometric mean over seeds of the mean flow time with a change by that without it, on the
same jobs, with its interval of 95 %. Ends with code 1 if a target is missed; `--quick` has few seeds and settings.
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

# Quantiles of Student's t for 95 %, by degrees of freedom; beyond 40 that of 40.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 7: 2.36, 9: 2.26, 11: 2.20, 19: 2.09, 39: 2.02}

MACHINES = ["--model", "cluster", "--workers", "4", "--slots", "2"]
# Kind of the mix, and the most that the mean flow time with divided tasks may be of that without.
DIVIDED = {"laptop": 0.75, "heavy-tailed": 0.85}
LOADS = [0.5, 0.7, 0.9]
KINDS = ["laptop", "map-heavy", "shuffle-heavy", "heavy-tailed"]
NETWORKS = ["25MB/s", "100MB/s", "400MB/s", None]
# The most that preemption may cost.
PREEMPTION = 1.02
# The most that a skewed job may take of the time of an even one.
REAL = 1.15


def flows(program: str, policies: str, workload: str, network, seeds: int, *more: str) -> list:
    """Returns, for each policy, the mean flow times by seed."""
    limit = ["--network", network] if network else []
    command = [program, "lab", "sim", *MACHINES, *limit, "--policy", policies, "--workload", workload]
    command += ["--seeds", str(seeds), "--json", *more]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    policies = json.loads(result.stdout)["policies"]
    return [[run["values"]["flow"] for run in policy["runs"]] for policy in policies]


def ratio(changed: list, before: list) -> tuple:
    """Returns the geometric mean of the ratios by seed, and the ends of its interval."""
    logs = [math.log(one / other) for one, other in zip(changed, before, strict=True)]
    mean = statistics.fmean(logs)
    t95 = T95[max(df for df in T95 if df <= len(logs) - 1)]
    half = t95 * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def row(name: str, before: list, found: tuple, most: float, clearly: bool = False) -> bool:
    """Prints a row. With `clearly`, the interval must also be below 1."""
    mean, low, high = found
    met = mean <= most and (high < 1 or not clearly)
    print(f"| {name} | {statistics.fmean(before):.2f} s | {mean:.3f} ({low:.3f} to {high:.3f}) | {most:.2f} | {'met' if met else 'MISSED'} |")
    return met


def divided(program: str, seeds: int, loads: list) -> bool:
    print("\n## Divided tasks: `gristmill+divide` by `gristmill`\n\n`--network 400MB/s`.\n")
    print("| mix | without | ratio | at most | |\n|---|---|---|---|---|")
    met = True
    for kind, most in DIVIDED.items():
        for load in loads:
            workload = f"mix:kind={kind},load={load}"
            before, after = flows(program, "gristmill,gristmill+divide", workload, "400MB/s", seeds)
            met &= row(f"{kind} {load}", before, ratio(after, before), most)
    return met


def apart(program: str, seeds: int) -> None:
    """Policies and the division of tasks apart, and what exact sizes would bring."""
    policies = ["gristmill", "gristmill+divide", "max-srpt", "max-srpt+divide", "fair", "fair+divide",
                "gristmill:preemptive=no+divide", "gristmill:pilot=no+divide", "gristmill:aging=no+divide",
                "gristmill:reduces=no+divide"]
    print("\n## Policy alone, mechanism alone\n\n`--network 400MB/s`, load 0.7; ratios of mean flow times to that of `gristmill`.\n")
    print("| policy | " + " | ".join(DIVIDED) + " |\n|---|---|---|")
    cells = {}
    for kind in DIVIDED:
        workload = f"mix:kind={kind},load=0.7"
        found = flows(program, ",".join(policies), workload, "400MB/s", seeds)
        exact = flows(program, "gristmill+divide", workload, "400MB/s", seeds, "--estimator", "oracle")
        for name, one in zip([*policies, "gristmill+divide, sizes known exactly"], found + exact):
            cells.setdefault(name, []).append("{:.3f} ({:.3f} to {:.3f})".format(*ratio(one, found[0])))
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row)} |")


def preempted(program: str, seeds: int, networks: list, loads: list) -> bool:
    print("\n## Preemption: `gristmill` by `gristmill:preemptive=no`\n\nThe network is that of all four workers.\n")
    print("| mix, network | without | ratio | at most | |\n|---|---|---|---|---|")
    met = True
    for kind in KINDS:
        for network in networks:
            for load in loads:
                workload = f"mix:kind={kind},load={load}"
                with_it, without = flows(program, "gristmill,gristmill:preemptive=no", workload, network, seeds)
                name = f"{kind} {load}, {network or 'no limit'}"
                met &= row(name, without, ratio(with_it, without), PREEMPTION)
    return met


def megabytes(path: pathlib.Path, size: int, seed: int) -> str:
    """Writes this many MiB of random words, the same block again and again."""
    random.seed(seed)
    words = [f"{random.getrandbits(40):x}" for _ in range(5000)]
    block = ""
    while len(block) < 1 << 20:
        block += " ".join(random.choices(words, k=10)) + f" {random.getrandbits(30):x}\n"
    with path.open("w") as file:
        for _ in range(size):
            file.write(block)
    return str(path)


def mix(program: str, repetitions: int) -> bool:
    """The laptop mix as real jobs on slow slots, by `lab compare`: 24 jobs of four programs on six sizes of data."""
    splits, mebibytes = [1, 2, 4, 7, 13, 31], 8
    lines = ['name = "laptop"', "seed = 7", "[cluster]", "workers = 4", "slots = 2", 'memory = "2GiB"', 'speed = "0.06"',
             "[arrivals]", 'kind = "poisson"', 'mean-interval = "1600ms"', "redraw = true"]
    for count in splits:
        for kind in ["text", "records", "tables"]:
            lines += ["[[data]]", f'name = "{kind}{count}"', f'kind = "{kind}"', f'size = "{count * mebibytes}MiB"', f"seed = {count}"]
        tables = "{data}/tables" + str(count)
        join = ["--left", f"{tables}/visits.csv", "--right", f"{tables}/users.csv", "--on", "user", "--strategy", "repartition"]
        for job, arguments, data in [("wordcount", [], "text"), ("grep", ["-c", "ab+a"], "text"), ("sort", [], "records"), ("join", join, None)]:
            lines += ["[[job]]", f'name = "{job}"', f'label = "{job} {count}"', f"args = {json.dumps(arguments)}",
                      f'split-size = "{mebibytes}MiB"', f"reduces = {min(8, -(-count // 4))}"]
            if data:
                lines.append('inputs = ["{data}/' + f'{data}{count}"]')
    with tempfile.TemporaryDirectory() as scratch:
        workload = pathlib.Path(scratch) / "laptop.toml"
        workload.write_text("\n".join(lines))
        command = [program, "lab", "compare", str(workload), "--policy", "gristmill+divide,max-srpt,gristmill,fair",
                   "--against", "gristmill+divide", "--repeat", str(repetitions), "--no-calibration", "--out", scratch + "/out", "--json"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return judge_mix(pathlib.Path(scratch) / "out")


def judge_mix(out: pathlib.Path) -> bool:
    """Judges the runs of the mix: means paired by repetition, and the 99th percentile over all of them."""
    flows: dict = {}
    for path in sorted(out.glob("runs/*/results.json")):
        run = json.loads(path.read_text())
        jobs = [job["ended"] - job["arrived"] for job in run["jobs"]]
        flows.setdefault(run["contender"]["name"], {})[run["repetition"]] = jobs
    means = {name: [statistics.fmean(runs[one]) for one in sorted(runs)] for name, runs in flows.items()}
    tails = {name: statistics.quantiles(sum(runs.values(), []), n=100)[98] for name, runs in flows.items()}
    ours = "gristmill+divide"
    print("\n## The laptop mix on real processes\n")
    print(f"24 jobs of four programs, 4 workers of 2 slots at 0.06 of their speed; {len(means[ours])} repetitions, each with new arrivals.\n")
    print("| against | mean flow time | ratio of `gristmill+divide` | at most | |\n|---|---|---|---|---|")
    met = True
    for name, most in [("max-srpt", 0.8), ("gristmill", 1.0)]:
        met &= row(name, means[name], ratio(means[ours], means[name]), most, clearly=True)
    ratio_of_tails = tails[ours] / tails["fair"]
    good = ratio_of_tails <= 1
    print(f"| 99th percentile of `fair` | {tails['fair']:.2f} s | {ratio_of_tails:.3f} | 1.00 | {'met' if good else 'MISSED'} |")
    return met and good


def real(program: str, repetitions: int) -> bool:
    """Jobs of four slots, each at 0.4 of a core's speed: skewed ones by even ones, without and with divisions."""
    print("\n## Real jobs\n\nFour slots at 0.4 of their speed, medians. A ratio is by the time of an even job of the same size")
    print("and, with a slow worker, of the speed that is there.\n")
    print("| job | even | without `--divide` | with | at most | |\n|---|---|---|---|---|---|")
    met = True
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch)

        def flow(*job: str) -> float:
            def once() -> float:
                out = base / "out"
                shutil.rmtree(out, ignore_errors=True)
                command = [program, "run", *job, "--output", str(out), "--json", "--quiet"]
                status = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["status"]
                return (status["ended_ns"] - status["arrived_ns"]) / 1e9
            return statistics.median(once() for _ in range(repetitions))

        def judge(name: str, even: float, job: list) -> bool:
            without, divided = flow(*job), flow(*job, "--divide")
            good = divided <= REAL * even
            print(f"| {name} | {even:.2f} s | {without / even:.2f} | {divided / even:.2f} | {REAL:.2f} | {'met' if good else 'MISSED'} |")
            return good

        apart, whole = ["--workers", "4", "--slots", "1", "--speed"], ["--split-size", "8GiB"]
        large = megabytes(base / "large", 4096, 1)
        even = flow("wordcount", large, *apart, "0.4") * 4 / 3.1
        met &= judge("word count of 4 GiB, one worker of four at a tenth", even, ["wordcount", large, *apart, "0.4,0.4,0.4,0.04"])
        same = [megabytes(base / f"same{number}", 136, number) for number in range(8)]
        skew = [megabytes(base / f"skew{number}", 640 if number == 7 else 64, number) for number in range(8)]
        even = flow("wordcount", *same, *whole, *apart, "0.4")
        met &= judge("word count of eight splits, one ten times as large", even, ["wordcount", *skew, *whole, *apart, "0.4"])
        together = ["--workers", "1", "--slots", "4", "--speed", "0.4"]
        even = flow("sort", *same, *together, "--reduces", "4")
        met &= judge("sort into one part", even, ["sort", *same, *together, "--reduces", "1"])
    return met


def self_test() -> int:
    """Equal flow times must miss a target below 1, and clearly lower ones must meet it."""
    before = [10.0, 12.0, 9.0]
    met = [row(name, before, ratio(after, before), 0.75)
           for name, after in [("equal", before), ("lower", [flow * 0.5 for flow in before])]]
    with tempfile.TemporaryDirectory() as scratch:
        for name in ["gristmill+divide", "gristmill", "max-srpt", "fair"]:
            for repetition in range(3):
                run = pathlib.Path(scratch) / "runs" / f"{name}-{repetition}"
                run.mkdir(parents=True)
                jobs = [{"arrived": 0.0, "ended": 1.0 + repetition + job} for job in range(24)]
                text = json.dumps({"contender": {"name": name}, "repetition": repetition, "jobs": jobs})
                (run / "results.json").write_text(text)
        met.append(judge_mix(pathlib.Path(scratch)))
    return 0 if met == [False, True, False] else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="target/release/gristmill")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--mix", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.seeds < 2:
        parser.error("an interval needs two seeds or more")
    loads, networks = ([0.7], ["100MB/s"]) if options.quick else (LOADS, NETWORKS)
    seeds = min(options.seeds, 4) if options.quick else options.seeds
    version = subprocess.run([options.program, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    print(f"# Targets of divided tasks and of preemption\n\nMade by `scripts/targets.py --seeds {seeds}` with {version}; {' '.join(MACHINES)}.")
    if options.mix:
        return 0 if mix(options.program, 12) else 1
    if options.real:
        return 0 if real(options.program, 3) else 1
    apart(options.program, seeds)
    met = [divided(options.program, seeds, loads), preempted(options.program, seeds, networks, loads[1:] or loads)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())

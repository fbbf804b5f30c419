#!/usr/bin/env python3
"""Simulates what divided tasks and preemption gain, and judges it by targets.

usage: scripts/targets.py [--program target/release/gristmill] [--seeds 40] [--quick]
       scripts/targets.py --real           real jobs on this machine, in the place of simulations
       scripts/targets.py --mix            the laptop mix on this machine, 25 minutes
       scripts/targets.py --rivals         policies of other papers beside `gristmill` and a lower bound; judges nothing
       scripts/targets.py --compared OUT --traces DIRECTORY    draws the runs of a `lab compare` and judges nothing
       scripts/targets.py --self-test      a program without a gain must miss the targets

Prints Markdown. A ratio is the geometric mean over seeds of the mean flow time with a change by that without it, on the
same jobs, with its interval of 95 %. Ends with code 1 if a target is missed; `--quick` has few seeds and settings.
`--traces DIRECTORY` also draws schedules without and with divisions, one above the other on one axis of time: slots of
real runs, and jobs of simulations, which do not export their slots.
"""
import argparse
import csv
import html
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
RIVALS = ["gristmill", "gristmill+divide", "max-srpt", "psjf", "fsp", "las", "d-clas", "m-serpt", "gamma-boost", "fair", "capacity", "fifo"]
NETWORKS = ["25MB/s", "100MB/s", "400MB/s", None]
# The most that preemption may cost.
PREEMPTION = 1.02
# The most that a skewed job may take of the time of an even one.
REAL = 1.15
# Colours of jobs on light and on dark paper: those of lab/src/report/svg/chart.css.
COLOURS = [("#2e7ff0", "#6f8dff"), ("#ea5f00", "#c8743a"), ("#2f736f", "#80f48b"), ("#a07ea3", "#fbc4fd"),
           ("#955102", "#b8b700"), ("#5f208f", "#9a7eae"), ("#6d2600", "#f57a9a"), ("#154847", "#20b8d1")]
# Pixels of a drawing: its width, the start of the axis, and the height of a row.
WIDTH, LEFT, ROW = 440, 62, 14
# Simulated jobs that are drawn, of one load.
DRAWN_JOBS, DRAWN_LOAD = 12, 0.7
PAIR = ["gristmill", "gristmill+divide"]


def flows(program: str, policies: str, workload: str, network, seeds: int, *more: str) -> list:
    """Returns, for each policy, the mean flow times by seed."""
    return measured(program, policies, workload, network, seeds, "flow", *more)[0]


def measured(program: str, policies: str, workload: str, network, seeds: int, metrics: str, *more: str) -> list:
    """Returns, for each of these metrics, the values by seed of each policy."""
    limit = ["--network", network] if network else []
    command = [program, "lab", "sim", *MACHINES, *limit, "--policy", policies, "--workload", workload]
    command += ["--seeds", str(seeds), "--json", *more]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = json.loads(result.stdout)["policies"]
    return [[[run["values"][metric] for run in policy["runs"]] for policy in found] for metric in metrics.split(",")]


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


def draw(path: pathlib.Path, caption: str, panels: list, start: float, end: float) -> None:
    """Draws schedules above each other on one axis of time.

    A panel is its title and its rows; a row is its name and its spans: kind, number of the job, from, to, label. A span
    of the kind `line` is a thin line, a `map` is full, and any other is pale.
    """
    def style(side: int, paper: str, text: str, grid: str) -> str:
        jobs = "".join(f".j{number}{{fill:{pair[side]}}}" for number, pair in enumerate(COLOURS))
        return f".paper,.on{{fill:{paper}}}text{{fill:{text}}}path{{stroke:{grid}}}rect{{stroke:{paper}}}{jobs}"

    def place(time: float) -> float:
        return LEFT + (time - start) * (WIDTH - LEFT - 8) / (end - start)

    power = 10 ** math.floor(math.log10((end - start) / 4))
    step = next(step for step in [power, 2 * power, 5 * power, 10 * power] if (end - start) / step <= 8)
    ticks = [step * number for number in range(math.ceil(start / step), math.floor(end / step) + 1)]
    lines = "".join(f"M{place(tick):.1f} {{top}}V{{bottom}}" for tick in ticks)
    out, y = [f'<text x="4" y="16" class="name">{html.escape(caption)}</text>'], 24
    for title, rows in panels:
        out.append(f'<text x="4" y="{y + 14}">{html.escape(title)}</text>')
        y += 20
        out.append(f'<path d="{lines.format(top=y, bottom=y + ROW * len(rows) + 4)}"/>')
        for name, spans in rows:
            out.append(f'<text x="{LEFT - 5}" y="{y + 12}" text-anchor="end">{html.escape(name)}</text>')
            for kind, job, since, until, label in spans:
                left, right = place(max(since, start)), place(min(until, end))
                if right <= left:
                    continue
                top, height = (y + 7, 3) if kind == "line" else (y + 2, ROW - 2)
                pale = "" if kind in ("map", "line") else ' fill-opacity=".5"'
                box = f'x="{left:.1f}" y="{top}" width="{max(right - left, 0.8):.1f}" height="{height}"'
                out.append(f'<rect class="j{job % len(COLOURS)}" {box}{pale}/>')
                if label and 7 * len(label) + 2 < right - left:
                    middle = f'x="{(left + right) / 2:.1f}" y="{y + 12}"' + ' class="on"' * (kind == "map")
                    out.append(f'<text {middle} text-anchor="middle">{html.escape(label)}</text>')
            y += ROW
        y += 8
    out += [f'<text x="{place(tick):.1f}" y="{y + 8}" text-anchor="middle">{tick:g}{" s" * (tick == ticks[-1])}</text>' for tick in ticks]
    dark = style(1, "#14171c", "#b3bcc7", "#2b3139") + ".name{fill:#eceff3}"
    sheet = ("text{font:11px system-ui,sans-serif}.name{font-weight:600}rect{stroke-width:.6}"
             + style(0, "#ffffff", "#4d5661", "#e4e8ec") + ".name{fill:#1b1f24}")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 14}" width="{WIDTH}" height="{y + 14}" role="img">'
    body = "\n".join([f'<rect class="paper" width="{WIDTH}" height="{y + 14}"/>', *out])
    path.write_text(f"{head}\n<style>{sheet}\n@media screen and (prefers-color-scheme:dark){{{dark}}}</style>\n{body}\n</svg>\n")


def draw_simulated(program: str, directory: pathlib.Path) -> None:
    """Draws, for each mix, the jobs in a row whose sum of flow times falls most; each job is a row."""
    for kind in DIVIDED:
        table = directory / f"{kind}.csv"
        flows(program, ",".join(PAIR), f"mix:kind={kind},load={DRAWN_LOAD}", "400MB/s", 1, "--csv", str(table))
        jobs: dict = {name: {} for name in PAIR}
        with table.open() as lines:
            for line in csv.DictReader(lines):
                times = [float(line[column]) for column in ["arrival", "start", "maps-done", "completion"]]
                jobs[line["policy"]][int(line["job"])] = times
        table.unlink()
        before, after = (jobs[name] for name in PAIR)
        gains = [before[job][3] - after[job][3] for job in sorted(before)]
        first = max(range(len(gains) - DRAWN_JOBS + 1), key=lambda job: sum(gains[job:job + DRAWN_JOBS]))
        drawn = range(first, first + DRAWN_JOBS)
        # The longest job would leave no room for the others.
        end = sorted(max(before[job][3], after[job][3]) for job in drawn)[-2]
        panels = []
        for name in PAIR:
            rows = []
            for job in drawn:
                arrival, start, maps_done, completion = jobs[name][job]
                phases = [("line", arrival, start), ("map", start, maps_done), ("rest", maps_done, completion)]
                rows.append((f"job {job}", [(phase, job, since, until, "") for phase, since, until in phases]))
            mean = statistics.fmean(jobs[name][job][3] - jobs[name][job][0] for job in drawn)
            panels.append((f"{name}: mean flow time {mean:.1f} s", rows))
        caption = f"{kind.capitalize()} mix, load {DRAWN_LOAD}: the {DRAWN_JOBS} jobs in a row that gain most"
        draw(directory / f"{kind}.svg", caption, panels, before[first][0], end)


def slot_rows(runs: list) -> list:
    """Returns, for each run, a row for each slot that any of the runs uses.

    A run is a list of spans (worker, kind, job, from, to, label), each of which takes the lowest free slot.
    """
    used: list = []
    for spans in runs:
        slots: dict = {}
        for worker, *span in sorted(spans, key=lambda span: span[3]):
            rows = slots.setdefault(worker, [])
            # The clocks of workers are known to about a tenth of a millisecond.
            free = next((row for row in rows if row[-1][3] <= span[2] + 5e-4), None)
            if free is None:
                rows.append(free := [])
            free.append(span)
        used.append(slots)
    most = {worker: max(len(slots.get(worker, [])) for slots in used) for worker in sorted(set().union(*used))}
    places = [(worker, place) for worker, count in most.items() for place in range(count)]
    return [[("" if place else f"worker {worker}", (slots.get(worker, []) + [[]] * most[worker])[place]) for worker, place in places]
            for slots in used]


def draw_compared(out: pathlib.Path, path: pathlib.Path, caption: str) -> None:
    """Draws the first repetition of a comparison: slots, and above them the jobs that wait for their first one."""
    runs = {}
    for file in out.glob("runs/*/results.json"):
        run = json.loads(file.read_text())
        if run["repetition"] == 0:
            runs[run["contender"]["name"]] = run
    heads, spans = [], []
    for name in PAIR:
        jobs = runs[name]["jobs"]
        waits = [("wait", job["index"], job["arrived"], job["started"], job["label"]) for job in jobs]
        spans.append([(span["worker"], "map" if span["map"] else "reduce", span["job"], span["from"], span["to"],
                       jobs[span["job"]]["label"]) for span in runs[name]["spans"]])
        mean = statistics.fmean(job["ended"] - job["arrived"] for job in jobs)
        heads.append((f"{name}: mean flow time {mean:.2f} s", ("waiting", waits)))
    panels = [(title, [waiting, *rows]) for (title, waiting), rows in zip(heads, slot_rows(spans))]
    draw(path, caption, panels, 0, max(job["ended"] for name in PAIR for job in runs[name]["jobs"]))


def draw_runs(traces: list, path: pathlib.Path, caption: str) -> None:
    """Draws the slots of one job without and with divisions, from the files of `run --trace`."""
    runs = []
    for trace in traces:
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") in ("map", "reduce")]
        runs.append([(event["pid"], event["cat"], 0, event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6, "") for event in events])
    titles = [f"{name} --divide: {len(spans)} attempts" for name, spans in zip(["without", "with"], runs)]
    draw(path, caption, list(zip(titles, slot_rows(runs))), 0, max(span[4] for spans in runs for span in spans))


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


def rivals(program: str, seeds: int) -> None:
    """Policies of other papers on the four mixes: their mean flow time by that of `gristmill`, and by the lower bound."""
    print("\n## Rivals on four mixes\n\n`--network 400MB/s --bound`, load 0.7. Ratios of mean flow times to those of `gristmill`; after them, what a policy")
    print("takes over the bound, shortest remaining work on all slots as one machine.\n")
    print("| policy | " + " | ".join(KINDS) + " |\n|" + "---|" * (len(KINDS) + 1))
    cells: dict = {}
    for kind in KINDS:
        workload = f"mix:kind={kind},load=0.7"
        times, bounds = measured(program, ",".join(RIVALS), workload, "400MB/s", seeds, "flow,efficiency-ratio", "--bound")
        for name, own, over in zip(RIVALS, times, bounds, strict=True):
            by_ours = "{:.2f} ({:.2f} to {:.2f})".format(*ratio(own, times[0]))
            cells.setdefault(name, []).append(f"{by_ours}; {statistics.fmean(over):.2f}")
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


def mix(program: str, repetitions: int, traces) -> bool:
    """The laptop mix as real jobs on slow slots, by `lab compare`: 24 jobs of four programs on six sizes of data."""
    splits, mebibytes = [1, 2, 4, 7, 13, 31], 8
    lines = ['name = "laptop"', "seed = 7", "[cluster]", "workers = 4", "slots = 2", 'memory = "2GiB"', 'speed = "0.06"',
             # A job holds slots for 5.3 s in all, measured: load 0.7 of eight slots, as in the simulations.
             "[arrivals]", 'kind = "poisson"', 'mean-interval = "940ms"', "redraw = true"]
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
        if traces:
            draw_compared(pathlib.Path(scratch) / "out", traces / "mix.svg", "Laptop mix, real jobs")
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


def real(program: str, repetitions: int, traces) -> bool:
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
                trace = base / ("divided" if "--divide" in job else "whole")
                command = [program, "run", *job, "--output", str(out), "--json", "--quiet"]
                command += ["--trace", str(trace), "--overwrite"] if traces else []
                status = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["status"]
                return (status["ended_ns"] - status["arrived_ns"]) / 1e9
            return statistics.median(once() for _ in range(repetitions))

        def judge(name: str, even: float, job: list) -> bool:
            without, divided = flow(*job), flow(*job, "--divide")
            if traces:
                files = [base / "whole", base / "divided"]
                draw_runs(files, traces / f"real-{name.split(',')[0].replace(' ', '-')}.svg", name[0].upper() + name[1:])
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
    first = [(1, "map", 0, 0.0, 2.0, ""), (1, "map", 1, 1.0, 3.0, ""), (1, "map", 0, 2.0, 4.0, "")]
    rows = [[(name, len(row)) for name, row in run] for run in slot_rows([first, [(2, "map", 0, 0.0, 1.0, "")]])]
    drawn = rows == [[("worker 1", 2), ("", 1), ("worker 2", 0)], [("worker 1", 0), ("", 0), ("worker 2", 1)]]
    return 0 if met == [False, True, False] and drawn else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="target/release/gristmill")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--mix", action="store_true")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--traces", type=pathlib.Path)
    parser.add_argument("--compared", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.seeds < 2:
        parser.error("an interval needs two seeds or more")
    if options.compared and not options.traces:
        parser.error("--compared needs --traces")
    if options.traces:
        options.traces.mkdir(parents=True, exist_ok=True)
    if options.compared:
        name = options.compared.name
        draw_compared(options.compared, options.traces / f"{name}.svg", f"Slots over time: {name}")
        return 0
    loads, networks = ([0.7], ["100MB/s"]) if options.quick else (LOADS, NETWORKS)
    seeds = min(options.seeds, 4) if options.quick else options.seeds
    version = subprocess.run([options.program, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    print(f"# Targets of divided tasks and of preemption\n\nMade by `scripts/targets.py --seeds {seeds}` with {version}; {' '.join(MACHINES)}.")
    if options.rivals:
        rivals(options.program, seeds)
        return 0
    if options.mix:
        return 0 if mix(options.program, 12, options.traces) else 1
    if options.real:
        return 0 if real(options.program, 3, options.traces) else 1
    if options.traces:
        draw_simulated(options.program, options.traces)
    apart(options.program, seeds)
    met = [divided(options.program, seeds, loads), preempted(options.program, seeds, networks, loads[1:] or loads)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())

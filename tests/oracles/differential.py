#!/usr/bin/env python3
"""Runs random inputs through the program and other programs, and compares the results, for as long as requested.

usage: tests/oracles/differential.py [--program target/debug/gristmill] [--seconds 30] [--seed N] [--only grep|join|sort|wordcount]
       tests/oracles/differential.py --seed N --case M     one case again
       tests/oracles/differential.py --self-test           a program that drops a line must be caught, for each job and each kind of input

Every combination of a job's flags has its turn. Other properties of jobs (splits, parts, memory, shuffle, policies,
compressed files, several files, names) are drawn. Most cases run on existing clusters, the others by `run`. The oracles are
in tests/oracles/jobs: python for all cases, and ripgrep, coreutils and sqlite where they mean the same.

At the first difference it shrinks the case, keeps its files, prints its command and ends with code 1. It also ends with code
1 if a flag in the program's help was never used in a run long enough to use it.
"""
import argparse
import collections
import copy
import dataclasses
import itertools
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # a clean checkout stays clean
from jobs import BYTE_ORDER_MARK, ON, Case, Dispute, Exactly, Invalid, Refused, grep, join, sort, wordcount

JOBS = {"grep": grep, "join": join, "sort": sort, "wordcount": wordcount}
CASE_SECONDS_MAX = 60
SHRINK_SECONDS_MAX = 60
CLUSTER_CASES = 80
THREADS = 3
BIG_EVERY = 97
# Redirections that close a stream which the result does not need.
CLOSED = ["<&-", "2>&-", ">&-"]
# Exit code of a job whose result cannot be printed.
CODE_UNPRINTED = 7
# Number of cases of a job after which every flag and every combination must have had its turn.
LONG_RUN_CASES = 500
# Flags that no case can have, with the reason.
LEFT_OUT = {
    "--help": "prints help",
    "--help-all": "prints help",
    "--insecure-plaintext": "only means something beyond this machine",
    "--listen-everywhere": "only means something beyond this machine",
    "--allow-root": "only means something beyond this machine",
    "--show": "waits for somebody to look",
    "--narrate": "prints a story in the place of the result",
    "--narrate-html": "writes a page; the result is that of the same run",
    "--recursive": "inputs are drawn without directories in directories",
    "--output-format": "the tests of tables of the program compare what is written as Parquet and Arrow",
    "--read-columns": "inputs are drawn as text alone",
    "--exact": "must know the numbers of maps and reduces, which are not drawn",
}


def draw_general(draw, case: Case) -> None:
    """Draws the flags that all jobs have."""
    general, chance = case.general, draw.random
    bytes_in = sum(len(file.data) for file in case.files)
    if chance() < 0.6:
        general["--reduces"] = str(draw.choice([1, 1, 2, 3, 7, 20]))
    if chance() < 0.7:
        general["--split-size"] = str(max(draw.choice([1, 7, 64, 300, 5000]), bytes_in // 60))
    for flag, share, values in (
        ("--no-sync", 0.95, [ON]), ("--weight", 0.05, ["0.5", "3"]), ("--label", 0.05, ["alike"]), ("--priority", 0.05, ["-3", "9"]),
        ("--deadline", 0.05, ["1ms", "5min"]), ("--attempts", 0.05, ["1", "9"]), ("--max-record", 0.05, ["9", "30", "100000"]),
        ("--max-expansion", 0.05, ["1", "500"]), ("--hang-after", 0.05, ["20", "1000"]), ("--trace", 0.03, ["trace.json"]),
        ("--pool", 0.05, ["a", "b"]), ("--serve", 0.03, ["127.0.0.1"]), ("--skip-bad-records", 0.1, ["0", "7", "10000"]),
        ("--settings", 0.03, ["settings.toml"]), ("--quiet", 0.9, [ON]), ("--compress-output", 0.1, ["gzip", "zstd", "none"]),
    ):
        if chance() < share:
            general[flag] = draw.choice(values)
    if "--max-record" in general and ("--record-length" in case.options or case.job == "join"):
        general["--max-record"] = "100000"  # the oracles know small limits for lines alone
    quotes = case.job == "join" and any(b'"' in file.data for file in case.files)
    if "--skip-bad-records" in general and ("--max-record" in general or "--record-length" in case.options or quotes):
        general["--skip-bad-records"] = "0"  # the oracles skip rows of another width, and no other bad records
    if chance() < 0.05:
        case.closed = draw.choice(CLOSED)
    case.output = draw.choice(["print", "parts", "parts"])
    if case.output == "parts":
        for flag in ("--overwrite", "--json"):
            # A failed job's JSON report is not judged.
            if chance() < 0.15 and (flag, case.closed) != ("--json", ">&-"):
                general[flag] = ON


def draw_cluster(draw) -> dict:
    """Draws processes, as flags of `run`."""
    cluster, chance = {"--workers": str(draw.choice([1, 2, 2, 3, 4]))}, draw.random
    if chance() < 0.3:
        cluster["--slots"] = str(draw.choice([1, 2, 3]))
    elif chance() < 0.3:
        cluster |= {"--map-slots": str(draw.choice([1, 2])), "--reduce-slots": str(draw.choice([1, 2]))}
    for flag, share, values in (
        ("--memory", 0.6, ["16MiB", "24MiB", "64MiB", "1GiB"]), ("--shuffle", 0.6, ["http", "auto"]), ("--spill-dir", 0.4, ["spills"]),
        ("--disk-reserve", 0.2, ["0", "1MiB"]), ("--speed", 0.1, ["0.9", "1,0.8"]), ("--nic-rate", 0.1, ["200MB/s"]),
        ("--policy", 0.6, ["fifo", "fair", "gristmill:preemptive=yes", "max-srpt", "asrpt:slot=100ms", "split-srpt", "ps"]),
        ("--placement", 0.1, ["pull"]), ("--estimator", 0.3, ["history", "oracle"]), ("--journal", 0.2, ["journal.jsonl"]),
        ("--no-backup", 0.3, [ON]),
    ):
        if chance() < share:
            cluster[flag] = draw.choice(values)
    if "--speed" not in cluster and chance() < 0.1:
        cluster["--slow"] = "2x"
    return cluster


class Draws:
    """The cases of a seed, each determined by its number alone."""

    def __init__(self, seed: int, jobs: list):
        self.seed, self.jobs, self.wanted = seed, jobs, lambda case: True
        self.combinations = {job: JOBS[job].combinations() for job in jobs}
        for job in jobs:
            random.Random(f"{seed}/{job}").shuffle(self.combinations[job])

    def case(self, number: int) -> tuple:
        """Returns the case of this number, or the next wanted one."""
        while not self.wanted((drawn := self.draw(number))[0]):
            number += len(self.jobs) * 1000
        return drawn

    def draw(self, number: int) -> tuple:
        job = self.jobs[number % len(self.jobs)]
        combination = self.combinations[job][number // len(self.jobs) % len(self.combinations[job])]
        draw = random.Random(f"{self.seed}/{number}")
        big = number % BIG_EVERY == BIG_EVERY - 1
        case = JOBS[job].draw(draw, combination, big)
        draw_general(draw, case)
        if big or draw.random() < 0.08:
            case.cluster = draw_cluster(draw)
        elif draw.random() < 0.1 and "--json" not in case.general and case.closed != ">&-":
            # Without standard output the job's number is unknown, so it could not be waited for.
            case.output = "detach"
        if big:
            # So little memory for each worker that it spills, in enough pieces that they are merged more than once.
            case.cluster |= {"--workers": "8", "--memory": "16MiB"}
            case.cluster.pop("--slots", 0), case.cluster.pop("--speed", 0), case.cluster.pop("--nic-rate", 0)
            case.general |= {"--split-size": draw.choice(["100KiB", "400KiB", "1MiB"]), "--json": ON}
            case.closed = case.closed if case.closed != ">&-" else ""
            case.general.pop("--max-record", 0)
            case.output = "parts"
        return case, combination

    def cluster(self, number: int) -> dict:
        """Returns the shared cluster of this case and its neighbours."""
        return draw_cluster(random.Random(f"{self.seed}/cluster/{number // CLUSTER_CASES}"))


class StandingCluster:
    """A master and its workers."""

    def __init__(self, program: str, shape: dict, directory: pathlib.Path):
        self.directory, self.shape = directory, shape
        directory.mkdir()
        (directory / "spills").mkdir()
        self.state = directory / "state"
        of_master = {flag: shape[flag] for flag in ("--policy", "--placement", "--estimator", "--journal", "--no-backup") if flag in shape}
        of_worker = {flag: value for flag, value in shape.items() if flag not in of_master}
        self.processes = []
        divided = ["--divided-slots"] if "--map-slots" in shape else []
        self.start([program, "cluster", "master", "--state", str(self.state), *divided, *words(of_master)], "master")
        deadline = time.monotonic() + CASE_SECONDS_MAX
        while not (self.state / "join").exists():
            if deadline < time.monotonic() or self.processes[0].poll() is not None:
                raise RuntimeError(f"the master did not start: {(directory / 'master').read_text()}")
            time.sleep(0.01)
        self.start([program, "cluster", "worker", "--state", str(self.state), *words(of_worker)], "worker")

    def start(self, command: list, name: str) -> None:
        with open(self.directory / name, "wb") as words_of_it:
            self.processes.append(subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=words_of_it,
                                                   stderr=words_of_it))

    def stop(self) -> str | None:
        """Stops the cluster; returns an error if a process hung, panicked or left files."""
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(CASE_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"{' '.join(process.args[1:2])} did not end on SIGTERM"
        for name in ("master", "worker"):
            said = (self.directory / name).read_text(errors="replace")
            if "panicked" in said:
                return f"a {name} panicked: {said}"
        left = [str(path) for path in (self.directory / "spills").rglob("*")]
        return f"the spill directory still holds {left}" if left else None


def words(flags: dict) -> list:
    return [word for flag, value in flags.items() for word in ([flag] if value is ON else [flag, value])]


def command_of(case: Case, program: str, cluster: StandingCluster | None, draw) -> list:
    """Returns the command line of a case; `draw` chooses between equivalent spellings."""
    short = getattr(JOBS[case.job], "SHORT", {})
    options = {short[flag] if flag in short and draw.random() < 0.5 else flag: value for flag, value in case.options.items()}
    command = [program, "submit" if case.cluster is None else "run", case.job, *words(options), *words(case.general)]
    if case.cluster is None:
        how = draw.random()
        if how < 0.1:
            command += ["--join", str(cluster.state / "join")]
        elif how < 0.2:
            endpoint = (cluster.state / "join").read_text().split("#")[0].split(":", 1)[1]
            command += ["--master", endpoint, "--state", str(cluster.state)]
        else:
            command += ["--state", str(cluster.state)]
        if case.output == "detach":
            command.append("--detach")
    else:
        command += words(case.cluster)
    if case.output != "print":
        command += ["--output", "out"]
    for role, paths in case.inputs.items():
        if role:
            command += [role, *paths]
    if case.pattern is not None:
        command += ["--", grep.pattern_text(case)]
    elif "" in case.inputs:
        command.append("--")
    return command + case.inputs.get("", [])


@dataclasses.dataclass
class Difference:
    kind: str  # "output", "code", "leftovers", ...: a smaller case must differ in the same way
    text: str
    stderr: str = ""


class Bench:
    """Runs cases in directories of their own."""

    def __init__(self, program: str, base: pathlib.Path):
        self.program, self.base = program, base
        self.spills = self.unjudged = 0

    def lay_out(self, case: Case, directory: pathlib.Path) -> None:
        for file in case.files:
            path = os.path.join(directory, file.path())
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(file.stored())
        (directory / "settings.toml").write_text("no-sync = true\nreduces = 2\nsplit-size = '400'\n")
        if "--spill-dir" in (case.cluster or ()):
            (directory / "spills").mkdir()
        if "--overwrite" in case.general:
            (directory / "out").mkdir()
            (directory / "out" / "part-00099").write_bytes(b"from before")
            (directory / "out" / "_SUCCESS").touch()

    def differs(self, case: Case, directory: pathlib.Path, cluster, seed: str) -> Difference | None:
        """Runs a case and compares. The directory must not exist; it is removed unless there is a difference."""
        directory.mkdir()
        self.lay_out(case, directory)
        try:
            wanted = JOBS[case.job].expected(case, directory)
        except Dispute as dispute:
            return Difference("dispute", f"the oracles do not agree: {dispute}")
        before = set(os.listdir(directory))
        command = command_of(case, self.program, cluster, random.Random(seed))
        found = self.run(case, command, directory, cluster, wanted, before)
        if found is None:
            shutil.rmtree(directory)
        return found

    def run(self, case, command, directory, cluster, wanted, before) -> Difference | None:
        try:
            if case.closed:
                command = ["bash", "-c", f'exec "$0" "$@" {case.closed}', *command]
            done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=CASE_SECONDS_MAX)
            if case.output == "detach" and done.returncode == 0:
                job = json.loads(done.stdout)["job"] if done.stdout[:1] == b"{" else done.stdout.decode().split()[0]
                done = subprocess.run([self.program, "job", "wait", job, "--state", str(cluster.state)], cwd=directory, capture_output=True,
                                      timeout=CASE_SECONDS_MAX)
        except subprocess.TimeoutExpired as late:
            return Difference("time", f"it did not end within {CASE_SECONDS_MAX} s", (late.stderr or b"").decode(errors="replace"))
        said = done.stderr.decode(errors="replace")
        differ = lambda kind, text: Difference(kind, text, said)
        if "panicked" in said:
            return differ("panic", "something panicked")
        new = set(os.listdir(directory)) - before - {"trace.json", "journal.jsonl"}
        code = wanted.code if isinstance(wanted, Refused) else 0
        if wanted is None:
            self.unjudged += 1
            code = done.returncode if done.returncode in (0, 2) else 0
        if isinstance(wanted, Refused) and done.returncode == wanted.other_code:
            code = wanted.other_code
        if case.closed == ">&-" and not code and (wanted is None or prints(case, wanted)):
            if wanted is None:
                return None
            if done.returncode != CODE_UNPRINTED:
                return differ(f"code {done.returncode}", f"exit code {done.returncode}, expected {CODE_UNPRINTED}: stdout is closed")
            return None
        if done.returncode != code:
            why = f", because {wanted.reason}" if isinstance(wanted, Refused) else ""
            return differ(f"code {done.returncode}", f"exit code {done.returncode}, expected {code}{why}")
        if code and not said.strip() and case.closed != "2>&-":
            return differ("words", f"exit code {code} without a word on stderr")
        if not code and said and "--quiet" in case.general and case.output != "detach":
            return differ("words", "something on stderr in spite of --quiet")
        out = directory / "out"
        if code:
            if done.stdout and "--json" not in case.general:
                return differ("leftovers", f"a refused job printed {done.stdout[:100]!r}")
            if "--overwrite" in case.general:
                if sorted(os.listdir(out)) != ["_SUCCESS", "part-00099"]:
                    return differ("leftovers", f"the old output was touched by a refused job: {sorted(os.listdir(out))}")
            elif new:
                return differ("leftovers", f"a refused job left {sorted(new)}")
            return None
        parts, borders = [done.stdout], False
        if case.output != "print":
            problem, parts = read_parts(out, case, done)
            if problem:
                return differ("parts", problem)
            borders = True
            new.discard("out")
        if new or os.path.isdir(directory / "spills") and os.listdir(directory / "spills"):
            return differ("leftovers", f"left over: {sorted(new)}")
        if "--json" in case.general:
            self.spills += json.loads(done.stdout)["status"]["totals"]["spills"]
        if "--trace" in case.general and case.output != "detach":
            json.loads((directory / "trace.json").read_text())
        text = wanted.difference(parts, borders) if wanted else None
        if text is None and case.job == "sort" and case.output != "print" and len(parts) % 4 == 3:
            checked = subprocess.run([self.program, "verify-sort", "out"], cwd=directory, capture_output=True)
            if checked.returncode != 0:
                text = f"verify-sort: {checked.stdout!r} {checked.stderr!r}"
        return text and differ("output", text)


def prints(case: Case, wanted) -> bool:
    """True if a job that succeeds writes to standard output."""
    return case.output == "detach" or case.output == "print" and wanted.difference([b""], False) is not None


def read_parts(out: pathlib.Path, case: Case, done) -> tuple:
    """Returns the parts that `_SUCCESS` names, which must be all parts."""
    success = json.loads((out / "_SUCCESS").read_bytes())
    names = [part["name"] for part in success["parts"]]
    there = [name for name in sorted(os.listdir(out)) if name != "_BAD_RECORDS"]
    if there != ["_SUCCESS", *sorted(names)] or names != sorted(names):
        return f"_SUCCESS names {names}, and there are {sorted(os.listdir(out))}", []
    parts = [(out / name).read_bytes() for name in names]
    if [len(part) for part in parts] != [part["bytes"] for part in success["parts"]]:
        return "parts are not as long as _SUCCESS says", []
    unpack = {".gz": ["gzip", "-dc"], ".zst": ["zstd", "-dcq"], ".bz2": ["bzip2", "-dc"]}
    for index, name in enumerate(names):
        if tool := unpack.get(os.path.splitext(name)[1]):
            parts[index] = subprocess.run(tool, input=parts[index], stdout=subprocess.PIPE, check=True).stdout
    return None, parts


def smaller_cases(case: Case):
    """Yields cases with one thing less, the largest things first."""
    def changed(**fields):
        return dataclasses.replace(copy.deepcopy(case), **fields)

    if case.output != "print":
        yield changed(output="print", general={k: v for k, v in case.general.items() if k not in ("--json", "--overwrite")})
    for group in ("cluster", "general", "options"):
        flags = getattr(case, group)
        for flag in flags or ():
            if flag != "--on":
                yield changed(**{group: {key: value for key, value in flags.items() if key != flag}})
    for at, file in enumerate(case.files):
        less = changed(files=case.files[:at] + case.files[at + 1:])
        for role, paths in less.inputs.items():
            less.inputs[role] = [path for path in paths if path != file.path()]
        if all(less.inputs.values()):
            yield less
        if file.packed:
            plain = changed()
            plain.files[at].packed = ""
            for role, paths in plain.inputs.items():
                plain.inputs[role] = [file.name if path == file.path() else path for path in paths]
            yield plain
        if file.marked:
            unmarked = changed()
            unmarked.files[at].marked = False
            yield unmarked
    for role, paths in case.inputs.items():
        if len(set(paths)) < len(paths):
            yield changed(inputs={**case.inputs, role: list(dict.fromkeys(paths))})
    if case.closed:
        yield changed(closed="")
    if case.pattern is not None and not isinstance(case.pattern, str):
        for tree in grep.smaller(case.pattern[1]):
            yield changed(pattern=(case.pattern[0], tree))
    for at, file in enumerate(case.files):
        for pieces in (file.data.splitlines(keepends=True), [bytes([byte]) for byte in file.data[:400]] if len(file.data) <= 400 else []):
            size = len(pieces)
            while size:
                for begin in range(0, len(pieces), size):
                    less = changed()
                    less.files[at].data = b"".join(pieces[:begin] + pieces[begin + size:])
                    yield less
                size //= 2


def shrink(bench: Bench, case: Case, difference: Difference, base: pathlib.Path, seed: str) -> tuple:
    """Returns the smallest case with the same kind of difference, and the difference."""
    end, tries = time.monotonic() + SHRINK_SECONDS_MAX, 0
    progress = True
    while progress:
        progress = False
        for less in smaller_cases(case):
            if end < time.monotonic():
                return case, difference
            tries += 1
            directory = base / f"shrink-{tries}"
            try:
                found = bench.differs(less, directory, None, seed)
            except (Invalid, UnicodeError, OverflowError):
                found = None
            shutil.rmtree(directory, ignore_errors=True)
            if found and found.kind == difference.kind:
                case, difference, progress = less, found, True
                break
    return case, difference


def report(bench: Bench, case: Case, difference: Difference, number: int, seed: int, shape: dict, base: pathlib.Path) -> None:
    """Shrinks the case, stores it, and prints the command to run it."""
    print(f"\ndifference in case {number} of seed {seed} ({case.job}): {difference.text}", flush=True)
    say(difference)
    alone = copy.deepcopy(case)
    if alone.cluster is None:
        alone.cluster = dict(shape)
        alone.output = "parts" if alone.output == "detach" else alone.output
    again = None
    for attempt in range(3):
        again = again or bench.differs(alone, base / f"again-{attempt}", None, f"{seed}/{number}")
    if again and again.kind == difference.kind:
        case, difference = shrink(bench, alone, again, base, f"{seed}/{number}")
        print(f"smallest case: {difference.text}")
    elif case.cluster is None:
        print(f"it differs only on the standing cluster {shlex.join(words(shape))}: tests/oracles/differential.py --seed {seed} "
              f"--case {number}")
        case = alone
    kept = pathlib.Path(tempfile.mkdtemp(prefix=f"gristmill-difference-{seed}-{number}-"))
    bench.lay_out(case, kept)
    command = command_of(case, bench.program, None, random.Random(f"{seed}/{number}"))
    (kept / "command").write_text(shlex.join(command) + "\n")
    try:
        wanted = JOBS[case.job].expected(case, kept)
        if isinstance(wanted, Exactly):
            (kept / "expected").write_bytes(wanted.whole)
    except Dispute:
        pass
    for file in case.files:
        if len(file.data) < 300:
            print(f"  {file.path()!r} holds {file.data!r}")
    print(f"  cd {shlex.quote(str(kept))} && {shlex.join(command)}")
    say(difference)


def say(difference: Difference) -> None:
    if difference.stderr.strip():
        print(f"  it said: {difference.stderr.strip()[:2000]}", flush=True)


def flags_of_help(program: str, command: str, job: str) -> set:
    text = subprocess.run([program, command, job, "--help"], check=True, capture_output=True, text=True).stdout
    listed = [line.strip().split(" ")[0:3] for line in text.splitlines() if line.lstrip().startswith("-")]
    return {word.rstrip(",") for line in listed for word in line if word.startswith("--") and word.strip("-,").replace("-", "").isalpha()}


class Campaign:
    """Runs cases in sequence on several threads until the time is over or one differs."""

    def __init__(self, options, program: str, jobs: list, base: pathlib.Path):
        self.options, self.jobs, self.base = options, jobs, base
        self.draws = Draws(options.seed, jobs)
        self.bench = Bench(program, base)
        self.lock = threading.Lock()
        self.next = options.case if options.case is not None else 0
        self.used = {job: collections.Counter() for job in jobs}
        self.combinations = {job: set() for job in jobs}
        self.cases = collections.Counter()
        self.refused = collections.Counter()
        self.found = None  # case, difference, number, shape

    def go(self, until: float) -> None:
        clusters = 0
        while self.found is None and time.monotonic() < until:
            first = self.next
            last = first if self.options.case is not None else (first // CLUSTER_CASES + 1) * CLUSTER_CASES - 1
            shape = self.draws.cluster(first)
            cluster = StandingCluster(self.bench.program, shape, self.base / f"cluster-{clusters}")
            clusters += 1
            try:
                threads = [threading.Thread(target=self.work, args=(cluster, last, until)) for _ in range(THREADS)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                problem = cluster.stop()
            if problem and self.found is None:
                self.found = (self.draws.case(first)[0], Difference("cluster", problem), first, shape)
            shutil.rmtree(cluster.directory)
            if self.options.case is not None:
                break

    def work(self, cluster: StandingCluster, last: int, until: float) -> None:
        while time.monotonic() < until:
            with self.lock:
                if last < self.next or self.found:
                    return
                number, self.next = self.next, self.next + 1
            case, combination = self.draws.case(number)
            try:
                difference = self.bench.differs(case, self.base / f"case-{number}", cluster, f"{self.options.seed}/{number}")
            except Exception as error:  # after any error the case must be named
                difference = Difference("script", f"{type(error).__name__}: {error}")
            with self.lock:
                if difference and self.found is None:
                    self.found = (case, difference, number, cluster.shape)
                self.count(case, combination, cluster)

    def count(self, case: Case, combination, cluster: StandingCluster) -> None:
        self.cases[case.job] += 1
        self.combinations[case.job].add(combination)
        used = self.used[case.job]
        for flags in (case.options, case.general, case.inputs, case.cluster or ()):
            used.update(list(flags))
        if case.cluster is None:
            used.update(["--state", "--master", "--join"])
        if case.output != "print":
            used["--output"] += 1
        if case.output == "detach":
            used["--detach"] += 1

    def gaps(self) -> list:
        """Returns the flags and combinations without a case, of jobs that had enough cases."""
        gaps = []
        for job in self.jobs:
            known = flags_of_help(self.bench.program, "run", job) | flags_of_help(self.bench.program, "submit", job)
            strange = known - set(LEFT_OUT) - set(JOBS[job].FLAGS) - GENERAL_FLAGS
            if strange:
                gaps.append(f"{job} has flags that this script does not know: {', '.join(sorted(strange))}")
            if self.cases[job] < LONG_RUN_CASES:
                continue
            unused = known - set(LEFT_OUT) - set(self.used[job])
            if unused:
                gaps.append(f"{job}: no case had {', '.join(sorted(unused))}")
            missing = len(self.draws.combinations[job]) - len(self.combinations[job])
            if missing:
                gaps.append(f"{job}: {missing} combinations of flags had no case")
        cases = sum(self.cases.values())
        if 4 * LONG_RUN_CASES <= cases and {"sort", "wordcount"} & set(self.jobs) and not self.bench.spills:
            gaps.append("nothing was ever spilled")
        if self.cases["grep"] < 8 * self.bench.unjudged:
            gaps.append(f"{self.bench.unjudged} of {self.cases['grep']} cases of grep had no oracle")
        return gaps


GENERAL_FLAGS = {
    "--workers", "--slots", "--map-slots", "--reduce-slots", "--speed", "--slow", "--nic-rate", "--memory", "--spill-dir", "--disk-reserve",
    "--shuffle", "--policy", "--placement", "--estimator", "--journal", "--no-backup", "--output", "--overwrite", "--reduces", "--split-size",
    "--weight", "--pool", "--label", "--priority", "--deadline", "--exact", "--recursive", "--attempts", "--no-sync", "--max-record",
    "--max-expansion", "--hang-after", "--json", "--trace", "--quiet", "--serve", "--settings", "--master", "--join", "--state",
    "--detach", "--skip-bad-records", "--compress-output", "--output-format", "--read-columns",
}


def self_test(options, jobs: list, base: pathlib.Path) -> int:
    """Checks for each job that a program that drops the last line of its output is caught."""
    wrapper = base / "forgetful"
    program = shlex.quote(os.path.abspath(options.program))
    # Neither a report nor the number of a job that is not waited for is a result.
    wrapper.write_text(f'#!/bin/bash\nset -o pipefail\ncase "$1 $*" in *--json*|*--detach*) exec {program} "$@";; '
                       f'run*|submit*) {program} "$@" | head -n -1;; *) exec {program} "$@";; esac\n')
    wrapper.chmod(0o755)
    kinds = {
        "any input": lambda case: True,
        "a compressed file that its name does not show": lambda case: any(file.packed and file.hidden and file.data for file in case.files),
        "a byte order mark": lambda case: any(file.stored().startswith(BYTE_ORDER_MARK) for file in case.files),
        "a closed stream": lambda case: case.closed,
    }
    for (kind, wanted), job in itertools.product(kinds.items(), jobs):
        directory = pathlib.Path(tempfile.mkdtemp(prefix=f"self-test-{job}-", dir=base))
        campaign = Campaign(options, str(wrapper), [job], directory)
        # A wrapper that drops a line has a standard output of its own.
        campaign.draws.wanted = lambda case, wanted=wanted: wanted(case) and case.closed != ">&-"
        campaign.go(time.monotonic() + options.seconds)
        if campaign.found is None or campaign.found[1].kind != "output":
            print(f"self-test: a line dropped by {job} of {kind} was not caught in {campaign.cases[job]} cases: {campaign.found}")
            return 1
        print(f"self-test: a line dropped by {job} of {kind} was caught at case {campaign.cases[job]}: {campaign.found[1].text}", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/debug/gristmill")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", choices=JOBS)
    parser.add_argument("--case", type=int)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    jobs = [options.only] if options.only else list(JOBS)
    print(f"seed {options.seed}", flush=True)
    if not grep.RIPGREP:
        print("differential.py: not installed: ripgrep; python alone is asked about grep", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="gristmill-differential-") as name:
        base = pathlib.Path(name)
        if options.self_test:
            return self_test(options, jobs, base)
        begun = time.monotonic()
        campaign = Campaign(options, os.path.abspath(options.program), jobs, base)
        campaign.go(begun + options.seconds)
        seconds = time.monotonic() - begun
        if campaign.found:
            case, difference, number, shape = campaign.found
            report(campaign.bench, case, difference, number, options.seed, shape, base)
            return 1
        gaps = [] if options.case is not None else campaign.gaps()
    counts = ", ".join(f"{job} {campaign.cases[job]} ({len(campaign.combinations[job])} of {len(campaign.draws.combinations[job])} "
                       f"combinations, {len(campaign.used[job])} flags)" for job in jobs)
    print(f"{sum(campaign.cases.values())} cases in {seconds:.0f} s without a difference: {counts}; {campaign.bench.spills} spills, "
          f"{campaign.bench.unjudged} cases without an oracle")
    for gap in gaps:
        print(f"not covered: {gap}")
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())

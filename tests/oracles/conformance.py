#!/usr/bin/env python3
"""Checks an implementation of MapReduce in any language, like the lab of a well-known course on distributed systems.

The checks are word count, indexer, parallel maps, parallel reduces, number of map calls, no early exit, crash, and a worker
that stalls.

usage: tests/oracles/conformance.py ADAPTER...          the adapter, with arguments of its own if it takes any
       tests/oracles/conformance.py --gradescope FILE ADAPTER...     also writes the results for Gradescope
       tests/oracles/conformance.py --autolab ADAPTER...             also prints the line of scores that Autolab reads
       tests/oracles/conformance.py --protocol          the specification of an adapter, in sixty lines
       tests/oracles/conformance.py --self-test         a correct implementation must pass, each wrong one fail where it is wrong

This file needs nothing but Python 3.9 and its standard library, so a course can copy it alone. It makes its inputs from a
seed that it prints, and every wait has a documented limit. It ends with 0 if all checks pass and 1 if one does not.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

PROTOCOL = """\
An adapter is a program that runs one job of your MapReduce to its end:

    ADAPTER JOB OUTPUT INPUT...

It starts your coordinator and at least MR_WORKERS worker processes, starts another worker for one that dies, ends with 0
when the job is complete, whatever a stalled worker does then, and with another code when the job has failed. It should
take whatever it has started with it; what it leaves behind in its process group is killed.

    OUTPUT          a directory that does not exist yet. Files whose names begin with `_` or `.` are not read. All others
                    together are the result: one line for each key, the key, a blank or tab, and the value.
    INPUT...        text files of about equal size. Each is one map call.
    $MR_WORKERS     worker processes
    $MR_REDUCES     reduce tasks
    $MR_MARKS       a directory for the job `marked`

There are three jobs. A word is as many letters A-Z and a-z as stand together; `The` and `the` are two words. A file's name
is that without its directory.

    wc              map emits each word with 1, reduce gives the number of values:              mill 12
    indexer         map emits each different word with the file's name; reduce gives the number of files, a blank, and
                    their names in order with commas between them:                              mill 2 in-1.txt,in-4.txt
    marked          as wc, and each call of map or reduce tells what it does and can be told to wait or die

A call of `marked` has a KIND, which is `map` or `reduce`, and a NAME: the file's name for a map, the word for a reduce.
It does this, with all files in $MR_MARKS, where PID is the number of the worker process, as the kit would see it in `ps`, and
N a number that differs for each call in this process:

    1. Make the empty file  KIND.NAME.PID.N.began
    2. Remove the file  crash.KIND.NAME    If that succeeds, end this process at once: it has crashed.
    3. Remove the file  stall.KIND.NAME    If that succeeds, sleep for 300 s: it has stalled.
    4. While there is a file  hold.KIND  sleep for 10 ms and look again. After 120 s end this process.
    5. Do what map or reduce does.
    6. Make the empty file  KIND.NAME.PID.N.ended

In Python:

    def call(kind, name, work):
        mark = f"{marks}/{kind}.{name}.{os.getpid()}.{next(numbers)}"
        open(f"{mark}.began", "w").close()
        if removed(f"{marks}/crash.{kind}.{name}"):
            os._exit(1)
        if removed(f"{marks}/stall.{kind}.{name}"):
            time.sleep(300)
        while os.path.exists(f"{marks}/hold.{kind}"):
            time.sleep(0.01)
        result = work()
        open(f"{mark}.ended", "w").close()
        return result

What the checks ask, all of jobs whose result must be right too:

    word-count        the job `wc`
    indexer           the job `indexer`
    parallel-maps     two map calls at the same time, in two processes
    parallel-reduces  two reduce calls at the same time, in two processes
    map-calls         one map call for each file when nothing fails, though the first ones take 3 s
    early-exit        while the only reduce takes 3 s, neither the adapter nor a worker that has mapped ends; and when the
                      adapter ends, the result is complete
    crash             two map calls and three reduce calls kill their workers; the result is right
    stall             one map call stalls for 300 s; the job ends all the same, with the right result
"""

FILES, WORDS, LINES = 8, 40, 30
WORKERS, REDUCES = 3, 4
HOLD_SECONDS = 3.0
LOOK_SECONDS = 0.01
# Maximum length of a quoted wrong line.
QUOTE_MAX = 60


@dataclass
class Verdict:
    """Result of a check."""

    expected: str
    seen: str
    passed: bool


class Failed(Exception):
    """The check has failed already; the text is what was observed."""


@dataclass
class Input:
    """Text files and the expected results of the jobs."""

    files: dict
    counts: list = field(default_factory=list)
    index: list = field(default_factory=list)

    @staticmethod
    def draw(seed: int) -> "Input":
        draw = random.Random(seed)
        words = set()
        while len(words) < WORDS:
            word = "".join(draw.choice("aeioulmnrst") for _ in range(draw.randint(1, 9)))
            words.add(word.capitalize() if draw.random() < 0.2 else word)
        words = sorted(words)
        files = {}
        for number in range(FILES):
            # Not every word is in every file.
            known = draw.sample(words, WORDS * 3 // 4)
            lines = []
            for _ in range(LINES):
                line = draw.choices(known, k=8)
                gaps = draw.choices([" ", " ", " ", ", ", "  ", "-", "'s 7 ", "."], k=8)
                lines.append("".join(word + gap for word, gap in zip(line, gaps)).ljust(72)[:72])
            # The last line of some files has no end.
            files[f"in-{number}.txt"] = "\n".join(lines) + ("\n" if number % 2 else "")
        made = Input(files)
        made.solve()
        return made

    def solve(self):
        counts, places = collections.Counter(), collections.defaultdict(set)
        for name, text in self.files.items():
            for word in re.findall("[A-Za-z]+", text):
                counts[word] += 1
                places[word].add(name)
        self.counts = sorted(f"{word} {count}" for word, count in counts.items())
        self.index = sorted(f"{word} {len(names)} {','.join(sorted(names))}" for word, names in places.items())

    def write(self, directory: pathlib.Path) -> list:
        directory.mkdir()
        for name, text in self.files.items():
            (directory / name).write_text(text)
        return [str(directory / name) for name in self.files]


def difference(lines: list, expected: list) -> str:
    """Describes a difference; empty if there is none."""
    found, wanted = collections.Counter(lines), collections.Counter(expected)
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    said = []
    if missing:
        said.append(f"{len(missing)} of {len(expected)} lines missing, first `{missing[0][:QUOTE_MAX]}`")
    if extra:
        said.append(f"{len(extra)} lines too many, first `{extra[0][:QUOTE_MAX]}`")
    return "; ".join(said)


def lives(pid: int) -> bool:
    """Returns true if a process runs and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(told.strip()) and not told.strip().startswith("Z")


class Trial:
    """One job of the adapter, in directories of its own."""

    def __init__(self, options, directory: pathlib.Path, given: Input, job: str, reduces: int = REDUCES):
        self.options, self.given, self.job = options, given, job
        self.marks, self.output, self.log = directory / "marks", directory / "output", directory / "log"
        directory.mkdir()
        self.marks.mkdir()
        self.inputs = given.write(directory / "inputs")
        self.environment = {**os.environ, "MR_WORKERS": str(WORKERS), "MR_REDUCES": str(reduces), "MR_MARKS": str(self.marks)}
        self.adapter = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.adapter is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.adapter.pid, signal.SIGKILL)
            self.adapter.wait()

    def order(self, *names: str):
        for name in names:
            (self.marks / name).touch()

    def release(self, kind: str):
        (self.marks / f"hold.{kind}").unlink()

    def start(self):
        command = [*self.options.adapter, self.job, str(self.output), *self.inputs]
        log = open(self.log, "wb")
        self.adapter = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        start_new_session=True)
        self.end = time.monotonic() + self.options.limit

    def calls(self, kind: str) -> list:
        """Returns the calls of a kind so far: (name, process, whether it has ended)."""
        found = {name.rpartition(".")[0]: [] for name in os.listdir(self.marks) if name.startswith(kind + ".")}
        for name in os.listdir(self.marks):
            mark, _, what = name.rpartition(".")
            if mark in found:
                found[mark].append(what)
        calls = []
        for mark, whats in sorted(found.items()):
            try:
                name, pid, _ = mark.removeprefix(kind + ".").rsplit(".", 2)
                calls.append((name, int(pid), "ended" in whats))
            except ValueError:
                raise Failed(f"a mark that is not KIND.NAME.PID.N.began: `{mark}`") from None
        return calls

    def under_way(self, kind: str) -> set:
        """Returns the processes in which such a call runs."""
        return {pid for _, pid, ended in self.calls(kind) if not ended}

    def until(self, what: str, done, seconds=None):
        """Waits until a condition is true."""
        seconds = seconds or self.options.patience
        end = min(time.monotonic() + seconds, self.end)
        while not done():
            if self.adapter.poll() is not None:
                raise Failed(f"the adapter ended with code {self.adapter.returncode} before {what}{self.last_words()}")
            if end < time.monotonic():
                raise Failed(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(LOOK_SECONDS)

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"; its last words: `{lines[-1][:200]}`" if lines else ""

    def finish(self, expected: list) -> str:
        """Waits for the end and compares; returns a description of a correct result."""
        left = max(self.end - time.monotonic(), 0)
        try:
            code = self.adapter.wait(left)
        except subprocess.TimeoutExpired:
            raise Failed(f"the job has not ended within {self.options.limit:.0f} s") from None
        if code:
            raise Failed(f"the adapter ended with code {code}{self.last_words()}")
        lines = self.result()
        if wrong := difference(lines, expected):
            raise Failed(f"a wrong result: {wrong}")
        return f"all {len(expected)} lines"

    def result(self) -> list:
        if not self.output.is_dir():
            raise Failed("no output directory when the adapter had ended")
        lines = []
        for path in sorted(self.output.rglob("*")):
            names = path.relative_to(self.output).parts
            if path.is_file() and not any(name.startswith(("_", ".")) for name in names):
                lines += path.read_text(errors="replace").splitlines()
        return [" ".join(line.split(None, 1)).strip() for line in lines]


def check_words(trial: Trial):
    trial.start()
    return trial.finish(trial.given.counts)


def check_index(trial: Trial):
    trial.start()
    return trial.finish(trial.given.index)


def check_parallel(trial: Trial, kind: str):
    trial.order(f"hold.{kind}")
    trial.start()
    most = 0

    def together():
        nonlocal most
        most = max(most, len(trial.under_way(kind)))
        return 2 <= most

    try:
        trial.until(f"two {kind} calls", together)
    except Failed as failed:
        raise Failed(f"at most {most} at a time: {failed}") from None
    trial.release(kind)
    return f"{most} at a time, and {trial.finish(trial.given.counts)}"


def check_map_calls(trial: Trial):
    trial.order("hold.map")
    trial.start()
    trial.until("a map call", lambda: trial.calls("map"))
    # The duration of the first calls is measured here; nothing else is waited for.
    time.sleep(HOLD_SECONDS)
    trial.release("map")
    right = trial.finish(trial.given.counts)
    calls = collections.Counter(name for name, _, _ in trial.calls("map"))
    wrong = [f"{calls[name]} for {name}" for name in trial.given.files if calls[name] != 1]
    wrong += [f"{count} for `{name}`, which is no input" for name, count in calls.items() if name not in trial.given.files]
    if wrong:
        raise Failed(f"{sum(calls.values())} calls for {FILES} files: {', '.join(wrong)}")
    return f"{FILES} calls for {FILES} files, and {right}"


def check_early_exit(trial: Trial):
    trial.order("hold.map", "hold.reduce")
    trial.start()
    trial.until("map calls in two processes", lambda: 2 <= len(trial.under_way("map")))
    trial.release("map")
    trial.until("the reduce call", lambda: trial.under_way("reduce"))
    workers = {pid for kind in ("map", "reduce") for _, pid, _ in trial.calls(kind)}
    held = time.monotonic() + HOLD_SECONDS
    while time.monotonic() < held:
        if trial.adapter.poll() is not None:
            raise Failed("the adapter ended while a reduce call ran")
        gone = [pid for pid in workers if not lives(pid)]
        if gone:
            raise Failed(f"{len(gone)} of {len(workers)} workers ended while a reduce call ran")
        time.sleep(0.1)
    trial.release("reduce")
    return f"{len(workers)} workers there until the end, and {trial.finish(trial.given.counts)}"


def check_crash(trial: Trial):
    words = sorted(line.split()[0] for line in trial.given.counts)
    orders = ["crash.map.in-2.txt", "crash.map.in-5.txt"]
    orders += [f"crash.reduce.{words[len(words) * place // 10]}" for place in (4, 6, 8)]
    trial.order(*orders)
    trial.start()
    right = trial.finish(trial.given.counts)
    left = [name for name in orders if (trial.marks / name).exists()]
    if left:
        raise Failed(f"calls that were to crash did not: {', '.join(left)}")
    return f"{len(orders)} crashes, and {right}"


def check_stall(trial: Trial):
    order = trial.marks / "stall.map.in-3.txt"
    trial.order(order.name)
    trial.start()
    right = trial.finish(trial.given.counts)
    if order.exists():
        raise Failed("the call that was to stall did not")
    tries = sum(name == "in-3.txt" for name, _, _ in trial.calls("map"))
    return f"{tries} calls for the file that stalled, and {right}"


@dataclass
class Check:
    """A check, and a description of its expectation."""

    expected: str
    run: object
    job: str = "marked"
    reduces: int = REDUCES


CHECKS = {
    "word-count": Check("each word with its number", check_words, "wc"),
    "indexer": Check("each word with its files", check_index, "indexer"),
    "parallel-maps": Check("two map calls at a time, in two processes", lambda trial: check_parallel(trial, "map")),
    "parallel-reduces": Check("two reduce calls at a time, in two processes", lambda trial: check_parallel(trial, "reduce")),
    "map-calls": Check("one map call for each file", check_map_calls),
    "early-exit": Check("nobody ends before the job does", check_early_exit, reduces=1),
    "crash": Check("a right result though two maps and three reduces kill their workers", check_crash),
    "stall": Check("an end with the right result though a map stalls", check_stall),
}


def examine(options, name: str, directory: pathlib.Path) -> Verdict:
    """Runs one check."""
    check, given = CHECKS[name], Input.draw(options.seed)
    if shutil.which(options.adapter[0]) is None:
        return Verdict(check.expected, f"{options.adapter[0]} is no program that can be run", False)
    try:
        with Trial(options, directory / name, given, check.job, check.reduces) as trial:
            return Verdict(check.expected, check.run(trial), True)
    except Failed as failed:
        return Verdict(check.expected, str(failed), False)


def report(options, base: pathlib.Path) -> int:
    """Runs the requested checks, and prints the results; returns the exit code."""
    print(f"adapter: {shlex.join(options.adapter)}\nseed: {options.seed} (--seed {options.seed} draws the same inputs again)", flush=True)
    verdicts = {}
    for name in options.check or CHECKS:
        verdict = verdicts[name] = examine(options, name, base)
        print(f"{'pass' if verdict.passed else 'FAIL'}  {name:<16}  expected {verdict.expected}; seen: {verdict.seen}", flush=True)
    failed = [name for name, verdict in verdicts.items() if not verdict.passed]
    if failed and options.keep:
        print(f"inputs, outputs, marks and logs are kept in {base}")
    print(f"{len(failed)} of {len(verdicts)} checks failed: {', '.join(failed)}" if failed else f"all {len(verdicts)} checks passed")
    if options.gradescope:
        options.gradescope.parent.mkdir(parents=True, exist_ok=True)
        options.gradescope.write_text(json.dumps(gradescope(verdicts), indent=1))
    if options.autolab:
        # Its last line of output: an exit code would have make print another one.
        print(autolab(verdicts))
        return 0
    return 1 if failed else 0


def gradescope(verdicts) -> dict:
    """Results as Gradescope reads them, one point for each check."""
    return {"tests": [{"name": name, "score": int(verdict.passed), "max_score": 1, "status": "passed" if verdict.passed else "failed",
                       "output": f"expected {verdict.expected}; seen: {verdict.seen}"} for name, verdict in verdicts.items()]}


def autolab(verdicts) -> str:
    """Last line of a grader of Autolab: the points of each problem."""
    return json.dumps({"scores": {name: int(verdict.passed) for name, verdict in verdicts.items()}})


# A flaw, and the checks that must fail. All others must pass, so that a check fails for its own reason.
FLAWS = {
    "none": set(),
    "cuts-last-line": {"word-count"},
    "names-twice": {"indexer"},
    # Its only map at a time is the one that stalls, and two workers never map at once.
    "one-map-at-a-time": {"parallel-maps", "early-exit", "stall"},
    "one-reduce-at-a-time": {"parallel-reduces"},
    "impatient": {"map-calls"},
    "workers-leave-early": {"early-exit"},
    "ends-while-reduces-run": {"early-exit"},
    "forgets-lost-tasks": {"crash"},
    "keeps-broken-output": {"crash"},
    "waits-for-ever": {"stall"},
}


def self_test(options) -> int:
    """Checks that the kit accepts a correct implementation and rejects wrong ones."""
    toy = str(pathlib.Path(__file__).resolve().parent / "conformance_adapters" / "toy.py")
    for name in CHECKS:
        assert any(name in caught for caught in FLAWS.values()), f"no wrong adapter for {name}"
    print(f"seed: {options.seed}", flush=True)
    options.patience, options.limit = 6.0, 25.0
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="conformance-") as base, concurrent.futures.ThreadPoolExecutor(12) as pool:
        asked = {}
        for flaw in FLAWS:
            mine = argparse.Namespace(**{**vars(options), "adapter": [sys.executable, toy, "--flaw", flaw]})
            directory = pathlib.Path(base) / flaw
            directory.mkdir()
            asked[flaw] = {name: pool.submit(examine, mine, name, directory) for name in CHECKS}
        for flaw, expected in FLAWS.items():
            verdicts = {name: answer.result() for name, answer in asked[flaw].items()}
            refused = {name for name, verdict in verdicts.items() if not verdict.passed}
            print(f"{'pass' if refused == expected else 'FAIL'}  {flaw:<21} refused by {', '.join(sorted(refused)) or 'none'}", flush=True)
            for name in sorted(refused ^ expected):
                print(f"      {name} should have {'refused it' if name in expected else 'passed'}; seen: {verdicts[name].seen}")
            wrong += refused != expected
            # What graders read reports the same.
            reported = {test["name"] for test in gradescope(verdicts)["tests"] if test["score"] < test["max_score"] and test["status"] == "failed"}
            scores = json.loads(autolab(verdicts))["scores"]
            assert reported == refused == {name for name, score in scores.items() if not score} and len(scores) == len(CHECKS), flaw
    print("the kit is wrong" if wrong else f"one right implementation passes, {len(FLAWS) - 1} wrong ones are refused")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("adapter", nargs=argparse.REMAINDER, help="the program to check, with its first arguments; options of the kit stand before it")
    parser.add_argument("--check", action="append", choices=CHECKS, help="only this check; may be given several times")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31), help="of the inputs (default: another one each time)")
    parser.add_argument("--limit", type=float, default=60, help="seconds that a job may take (default: %(default)s)")
    parser.add_argument("--patience", type=float, default=20, help="seconds until two calls must have met (default: %(default)s)")
    parser.add_argument("--gradescope", type=pathlib.Path, metavar="FILE", help="write the results there as Gradescope reads them")
    parser.add_argument("--autolab", action="store_true", help="print the scores as a last line, as Autolab reads them, and end with 0")
    parser.add_argument("--keep", action="store_true", help="keep the directory when a check has failed")
    parser.add_argument("--protocol", action="store_true", help="what an adapter has to do")
    parser.add_argument("--self-test", action="store_true", help="try the kit on implementations that are known")
    options = parser.parse_args()
    if options.protocol:
        print(PROTOCOL, end="")
        return 0
    if options.self_test:
        return self_test(options)
    if not options.adapter:
        parser.error("no adapter; --protocol says what one is")
    if shutil.which(options.adapter[0]) is None and not (options.gradescope or options.autolab):
        parser.error(f"{options.adapter[0]} is no program that can be run")
    base = pathlib.Path(tempfile.mkdtemp(prefix="conformance-"))
    code = 2
    try:
        code = report(options, base)
    finally:
        if not (options.keep and code == 1):
            shutil.rmtree(base, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())

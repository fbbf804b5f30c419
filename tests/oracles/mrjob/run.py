#!/usr/bin/env python3
"""Runs the jobs and tests of mrjob and luigi on the program under its name `hadoop`, and compares with their local runners.

usage: tests/oracles/mrjob/run.py [--program target/debug/gristmill] [--environment DIRECTORY] [--only NAME]

mrjob 0.7.4 (also its source, for its tests) and luigi come from PyPI, into an environment in a temporary directory, or in
DIRECTORY, where it is kept. mrjob needs a Python up to 3.11, which need not be the one that runs this.
- mrjob's example jobs, `-r hadoop` compared with `-r inline`: the same lines once sorted, the same counters of the job.
- A job that fails: mrjob reports the traceback of its mapper as the probable cause, with the input that caused it.
- mrjob's own tests of `hadoop fs` (tests.fs.test_hadoop), on our `fs` instead of its stand-in.
- luigi: a job of luigi.contrib.hadoop, and every call of its hdfs client.

Ends with code 0 if all checks pass, 1 if not, and 3, with one line that gives the reason, if they cannot be installed.
"""
import argparse
import ast
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

CHILDREN = pathlib.Path(__file__).resolve().parent
ROOT = CHILDREN.parents[2]
MRJOB, LUIGI = "mrjob==0.7.4", "luigi==3.6.0"
# setuptools brings pkg_resources and distutils, which mrjob imports.
PACKAGES = [MRJOB, LUIGI, "setuptools<70"]
INSTALL_SECONDS_MAX = 300
RUN_SECONDS_MAX = 180
PYTHONS = ["python3.11", "python3.10", "python3.9", "python3.8"]
# Tests of mrjob that request what is refused here, with the error of each.
REFUSED_TESTS = {
    "test_ls_s3n": "Could not ls s3n://",
    "test_ls_s3a": "Could not ls s3a://",
}
TEXT = """the mill grinds the corn and the miller minds the mill
a mill that grinds no corn is no mill the miller said
stones and water water and stones the mill goes round
the corn is gold the flour is white the bread is brown
"""

# `beside`: the runner of mrjob that it is compared with.
Example = collections.namedtuple("Example", "name job arguments inputs beside", defaults=["inline"])


class Wrong(Exception):
    """A failed check."""


class CannotInstall(Exception):
    """Reason why the libraries cannot be installed."""


def call(words, seconds=RUN_SECONDS_MAX, **options):
    """Runs a program to its end and captures its output."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired as expired:
        raise Wrong(f"`{' '.join(map(str, words[:6]))}` did not end within {seconds} s") from expired


def old_python():
    """Returns a Python that still has the modules that mrjob imports."""
    if sys.version_info < (3, 12):
        return sys.executable
    for name in PYTHONS:
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return found
    raise CannotInstall(f"mrjob needs a Python up to 3.11 with venv, and none of {', '.join(PYTHONS)} is here")


class Environment:
    """The environment with mrjob and luigi."""

    def __init__(self, directory: pathlib.Path):
        self.python = directory / "bin" / "python"
        self.source = directory / "source"
        if self.source.is_dir():
            return
        try:
            self.install(directory)
        except (subprocess.SubprocessError, OSError, tarfile.TarError, StopIteration) as error:
            words = " ".join(map(str, error.cmd[:5])) if isinstance(error, subprocess.SubprocessError) else type(error).__name__
            raise CannotInstall(f"could not install {MRJOB} and {LUIGI} in {directory} ({words}: {error}); "
                                "this needs python3-venv and a way to PyPI") from error

    def install(self, directory: pathlib.Path) -> None:
        def run(*words):
            subprocess.run(words, check=True, timeout=INSTALL_SECONDS_MAX, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run(old_python(), "-m", "venv", directory)
        pip = [self.python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run(*pip, "install", *PACKAGES)
        run(*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", directory / "sdist", MRJOB)
        with tarfile.open(next((directory / "sdist").glob("mrjob-*.tar.gz"))) as archive:
            archive.extractall(directory / "unpacked", filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(directory / "unpacked")
        next((directory / "unpacked").iterdir()).rename(self.source)


class Home:
    """A home directory of Hadoop with our programs, and a root of `hdfs:` of its own."""

    def __init__(self, base: pathlib.Path, program: pathlib.Path, python: pathlib.Path):
        self.base = base
        # The `python3` of commands: a version that mrjob supports.
        self.pythons = python.parent
        self.hadoop = base / "home" / "bin" / "hadoop"
        self.hdfs = base / "hdfs"
        self.jar = base / "home" / "share" / "hadoop-streaming-3.3.6.jar"
        for directory in (self.hadoop.parent, self.hdfs, self.jar.parent, base / "tmp"):
            directory.mkdir(parents=True)
        self.jar.touch()
        for name in ("hadoop", "yarn", "mapred"):
            (self.hadoop.parent / name).symlink_to(program.resolve())

    def variables(self, **more) -> dict:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PATH": f"{self.hadoop.parent}:{self.pythons}:{kept.get('PATH', '')}", "HADOOP_HOME": str(self.base / "home"), "USER": "tester",
                "GRISTMILL_HDFS_ROOT": str(self.hdfs), "GRISTMILL_STREAMING_FLAGS": "--workers 1 --slots 2 --no-sync",
                "TMPDIR": str(self.base / "tmp"), "MRJOB_CONF": os.devnull, "PYTHONDONTWRITEBYTECODE": "1", **more}


def examples(environment: Environment, base: pathlib.Path):
    """mrjob's example jobs with inputs."""
    texts = []
    for number in range(3):
        text = base / f"text-{number}.txt"
        text.write_text(TEXT * (number + 1) + f"and number {number} has words of its own\n")
        texts.append(str(text))
    documents = environment.source / "mrjob" / "examples" / "docs-to-classify"
    classified = sorted(str(path) for path in documents.rglob("*.txt"))
    return [
        Example("mr_word_freq_count", "MRWordFreqCount", [], texts),
        Example("mr_most_used_word", "MRMostUsedWord", [], texts),
        Example("mr_next_word_stats", "MRNextWordStats", [], texts),
        # Its mapper is a command, which the inline runner does not take.
        Example("mr_grep", "MRGrepJob", ["-e", "corn"], texts, "local"),
        Example("mr_count_lines_by_file", "MRCountLinesByFile", [], texts),
        Example("mr_count_lines_right", "MRCountLinesRight", [], texts),
        Example("mr_text_classifier", "MRTextClassifier", ["--min-df", "1"], classified),
    ]


def comparable(line: str, inputs) -> str:
    """Returns a line without what may differ: where a runner has put its inputs, in which order a job has filled an object or
    added up numbers, and the tab that Hadoop also writes after a line without one.
    """
    names = "|".join(re.escape(pathlib.Path(path).name) for path in inputs)
    line = re.sub(rf"[\w:/.\-]*/({names})", r"\1", line.removesuffix("\t"))
    try:
        fields = [json.loads(field, parse_float=lambda number: f"{float(number):.9g}") for field in line.split("\t")]
        return "\t".join(json.dumps(field, sort_keys=True) for field in fields)
    except json.JSONDecodeError:
        return line


def run_example(environment: Environment, home: Home, example: Example, runner: str):
    """Returns the sorted lines and counters of a job."""
    words = [environment.python, CHILDREN / "example.py", example.name, example.job, "-r", runner, *example.arguments]
    finished = call([*words, *example.inputs], cwd=home.base, env=home.variables())
    if finished.returncode:
        raise Wrong(f"{example.name} -r {runner} ended with code {finished.returncode}:\n{finished.stderr[-9000:]}")
    said = json.loads(finished.stdout)
    return sorted(comparable(line, example.inputs) for line in said["lines"]), said["counters"]


def check_example(environment: Environment, home: Home, example: Example) -> str:
    began = time.monotonic()
    expected, counters = run_example(environment, home, example, example.beside)
    found, hadoop_counters = run_example(environment, home, example, "hadoop")
    if not expected:
        raise Wrong("mrjob's own runner answers nothing: there is nothing to compare with")
    if found != expected:
        missing, more = set(expected) - set(found), set(found) - set(expected)
        raise Wrong(f"{len(found)} lines for {len(expected)}; missing {sorted(missing)[:3]}, too many {sorted(more)[:3]}")
    for step, groups in enumerate(counters):
        for group, counts in groups.items():
            if hadoop_counters[step].get(group) != counts:
                raise Wrong(f"counters of step {step + 1}, {group}: {counts} by mrjob, {hadoop_counters[step].get(group)} here")
    if any("Map-Reduce Framework" not in groups for groups in hadoop_counters):
        raise Wrong("a step has no counters of the framework")
    return f"{len(found)} lines and the counters of {len(counters)} steps are equal ({time.monotonic() - began:.1f} s)"


def check_counters(environment: Environment, home: Home) -> str:
    """Checks the counters of a job, of every step."""
    text = home.base / "counted.txt"
    text.write_text(TEXT)
    example = Example(str(CHILDREN / "counting.py"), "MRCounting", [], [str(text)])
    return check_example(environment, home, example)


def check_failure(environment: Environment, home: Home) -> str:
    """Checks the report of mrjob about a mapper that raises."""
    text = home.base / "failing.txt"
    text.write_text("one\ntwo\n")
    finished = call([environment.python, CHILDREN / "failing.py", "-r", "hadoop", text], cwd=home.base, env=home.variables())
    if finished.returncode == 0:
        raise Wrong("a job whose mapper raises has succeeded")
    cause = finished.stderr.partition("Probable cause of failure:")[2]
    for words in ("Traceback (most recent call last):", "ValueError: there is no two", "while reading input from", "failing.txt"):
        if words not in cause:
            raise Wrong(f"the probable cause has no {words!r}:\n{finished.stderr[-9000:]}")
    return "the mapper's traceback and its input are the probable cause"


def check_tests_of_mrjob(environment: Environment, home: Home) -> str:
    """Runs mrjob's own tests of `hadoop fs` on ours."""
    variables = home.variables(PYTHONPATH=str(environment.source))
    finished = call([environment.python, CHILDREN / "file_tests.py"], cwd=environment.source, env=variables)
    if finished.returncode:
        raise Wrong(f"they did not run:\n{finished.stderr[-9000:]}")
    results = json.loads(finished.stdout.splitlines()[-1])
    wrong = [f"{name}: {why[-300:]}" for name, why in results["failed"].items() if REFUSED_TESTS.get(name, "\0") not in why]
    passed = sorted(set(REFUSED_TESTS) - set(results["failed"]))
    if wrong or passed or results["run"] < 41:
        raise Wrong(f"{results['run']} run, failed: {wrong}, passed though they should be refused: {passed}")
    return f"{results['run'] - len(results['failed'])} of {results['run']} pass; {', '.join(REFUSED_TESTS)} ask for s3n: and s3a:, which are refused"


def check_luigi(environment: Environment, home: Home) -> str:
    """Checks a job of luigi, and its hdfs client."""
    text = home.base / "luigi.txt"
    text.write_text(TEXT)
    configuration = home.base / "luigi.cfg"
    configuration.write_text(f"[hadoop]\ncommand = {home.hadoop}\nstreaming-jar = {home.jar}\npython-executable = {environment.python}\n"
                             "[hdfs]\nclient = hadoopcli\n[core]\nlog_level = INFO\n")
    variables = home.variables(LUIGI_CONFIG_PATH=str(configuration), PYTHONPATH=str(CHILDREN))
    finished = call([environment.python, CHILDREN / "luigi_job.py", text], cwd=home.base, env=variables)
    if finished.returncode:
        raise Wrong(f"ended with code {finished.returncode}:\n{finished.stderr[-9000:]}")
    found = dict(ast.literal_eval(finished.stdout.splitlines()[-1]))
    if found != collections.Counter(TEXT.split()):
        raise Wrong(f"counted {found}")
    return f"{len(found)} words are counted; every call of its hdfs client does what it says"


def checks(environment: Environment, base: pathlib.Path):
    """Yields every check with its name."""
    for example in examples(environment, base):
        yield example.name, lambda home, example=example: check_example(environment, home, example)
    for name, check in [("counters", check_counters), ("failure", check_failure), ("fs", check_tests_of_mrjob), ("luigi", check_luigi)]:
        yield name, lambda home, check=check: check(environment, home)


def run(environment: Environment, base: pathlib.Path, program: pathlib.Path, only) -> int:
    """Runs all checks; returns the number that failed."""
    failed = 0
    for name, check in checks(environment, base):
        if only and name not in only:
            continue
        try:
            print(f"{name}: {check(Home(base / name, program, environment.python))}", flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"{name}: WRONG: {wrong}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--program", type=pathlib.Path, default=target / "debug" / "gristmill")
    parser.add_argument("--environment", type=pathlib.Path)
    parser.add_argument("--only", action="append", metavar="NAME")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gristmill-mrjob-") as temporary:
        base = pathlib.Path(temporary)
        try:
            environment = Environment((options.environment or base / "environment").absolute())
        except CannotInstall as error:
            print(f"mrjob/run.py: {' '.join(str(error).split())}", file=sys.stderr)
            return 3
        wrong = run(environment, base, options.program, options.only)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

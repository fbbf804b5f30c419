#!/usr/bin/env python3
"""Measures jobs of Hadoop Streaming beside the same commands in a pipeline of the shell, in turn.

usage: scripts/streaming_speed.py [--program PROGRAM] [--megabytes 200] [--rounds 2] [--environment FOLDER]

    word count   awk as mapper and reducer, beside `awk | sort --parallel=2 | awk`   aim: at most 1.3 times its time
    identity     `cat` as mapper and reducer: bytes through both pipes                aim: at least 300 MB/s
    tiny         two lines, `tr` and `uniq -c`                                        aim: at most 60 ms
    mrjob        the word count of 16 MB, beside mrjob's example of it, `-r local`    aim: at least 3 times as fast

mrjob is installed as by scripts/mrjob.py, into FOLDER if that is named; where it cannot be, its row says so and is missed.
Of each the shortest round counts, beside it all rounds; processor seconds are those of the round, commands included. Both
sides write to files, and nothing is synced. Without --program the shipped build is made first. Ends with code 1 if an aim
is missed. Not here: whether results are right (streaming.py), jobs of our own (bench.sh).
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from mrjob import CannotInstall, Environment
from shipped import shipped

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = "{ for (i = 1; i <= NF; i++) print $i \"\\t1\" }"
SUM = "BEGIN { FS = \"\\t\" } $1 != word { if (NR > 1) print word \"\\t\" count; word = $1; count = 0 } { count += $2 } END { if (NR) print word \"\\t\" count }"
RATIO_MAX, IDENTITY_MB_MIN, TINY_MS_MAX, MRJOB_RATIO_MIN = 1.3, 300, 60, 3
TINY_ROUNDS = 20
MRJOB_BYTES = 16_000_000


def timed(words, folder, **more):
    """Seconds and processor seconds of a command in an emptied folder."""
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    took, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, used


def streaming(program, text, mapper, reducer, slots=2):
    return [program, "streaming", "--workers", "1", "--slots", str(slots), "--no-sync", "-input", str(text), "-output", "out",
            "-mapper", mapper, "-reducer", reducer, "-numReduceTasks", "2"]


def shown(rounds):
    walls = ", ".join(f"{took:.3f}" for took, _ in rounds)
    took, used = min(rounds)
    return f"{took:.3f} s, {used:.2f} CPU s (rounds: {walls})"


def same_lines(one, other):
    """Whether the files hold the same lines in any order."""
    lines = [sorted(b"".join(path.read_bytes() for path in paths).splitlines()) for paths in (one, other)]
    return lines[0] == lines[1] and lines[0] != []


def beside_mrjob(program, text, base, environment):
    """Rounds of our word count and of mrjob's local runner, of the lines in the first bytes of a text."""
    python = environment.python
    less = base / "less"
    with text.open("rb") as lines:
        less.write_bytes(b"".join(lines.readlines(MRJOB_BYTES)))
    example = environment.source / "mrjob" / "examples" / "mr_word_freq_count.py"
    words = [python, example, "-r", "local", "--no-bootstrap-mrjob", "--no-cat-output", "--output-dir", "out", less]
    theirs = [timed(words, base / "mrjob", env={**os.environ, "MRJOB_CONF": os.devnull})]
    ours = [timed(streaming(program, less, f"awk '{WORDS}'", f"awk '{SUM}'"), base / "ours")]
    # Its keys are JSON.
    counts = sorted(line.replace(b'"', b"") for path in (base / "mrjob/out").glob("part-*") for line in path.read_bytes().splitlines())
    if counts != sorted(line for path in base.glob("ours/out/part-*") for line in path.read_bytes().splitlines()):
        sys.exit("mrjob and the job counted differently")
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--environment", type=pathlib.Path)
    asked = parser.parse_args()
    program = shipped(asked.program)
    missed = []

    def judged(what, value, good):
        print(f"    {what}: {value}{'' if good else '  MISSED'}")
        if not good:
            missed.append(what)

    with tempfile.TemporaryDirectory(prefix="gristmill-speed-", dir=os.environ.get("TMPDIR")) as base:
        base = pathlib.Path(base)
        text = base / "text"
        subprocess.run([program, "gen", "text", text, "--size", f"{asked.megabytes}MB", "--words", "50000"], check=True, capture_output=True)
        size_mb = text.stat().st_size / 1e6
        ours, theirs, identity = [], [], []
        pipeline = f"awk '{WORDS}' {text} | LC_ALL=C sort --parallel=2 -S 1G | awk '{SUM}' > counts"
        for _ in range(asked.rounds):
            ours.append(timed(streaming(program, text, f"awk '{WORDS}'", f"awk '{SUM}'"), base / "ours"))
            theirs.append(timed(["bash", "-c", pipeline], base / "theirs"))
        if not same_lines(base.glob("ours/out/part-*"), [base / "theirs/counts"]):
            sys.exit("the pipeline and the job counted differently")
        print(f"word count of {size_mb:.0f} MB\n    job       {shown(ours)}\n    pipeline  {shown(theirs)}")
        ratio = min(ours)[0] / min(theirs)[0]
        judged("job over pipeline", f"{ratio:.2f}", ratio <= RATIO_MAX)
        for _ in range(asked.rounds):
            identity.append(timed(streaming(program, text, "cat", "cat"), base / "identity"))
        written = sum(path.stat().st_size for path in base.glob("identity/out/part-*"))
        # Hadoop's output format writes a tab behind a key without a value.
        with text.open("rb") as lines:
            expected = text.stat().st_size + sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(1 << 20), b""))
        if written != expected:
            sys.exit(f"the identity wrote {written} bytes, not {expected}")
        print(f"identity of {size_mb:.0f} MB\n    job       {shown(identity)}")
        rate = size_mb / min(identity)[0]
        judged("MB/s", f"{rate:.0f}", IDENTITY_MB_MIN <= rate)
        small = base / "small"
        small.write_text("the mill\nthe grist\n")
        tiny = [timed(streaming(program, small, 'tr " " "\\n"', "uniq -c"), base / "tiny") for _ in range(TINY_ROUNDS)]
        median = sorted(tiny)[TINY_ROUNDS // 2][0] * 1000
        print(f"tiny job\n    median of {TINY_ROUNDS}")
        judged("ms", f"{median:.1f}", median <= TINY_MS_MAX)
        print("mrjob's local runner")
        try:
            environment = Environment((asked.environment or base / "environment").absolute())
        except CannotInstall as why:
            judged("mrjob over job", f"not known: {why}", False)
        else:
            ours, theirs = beside_mrjob(program, text, base, environment)
            print(f"    job       {shown(ours)}\n    mrjob     {shown(theirs)}")
            ratio = min(theirs)[0] / min(ours)[0]
            judged("mrjob over job", f"{ratio:.1f}", MRJOB_RATIO_MIN <= ratio)
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()

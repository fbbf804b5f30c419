#!/usr/bin/env python3
"""Measures jobs of Python functions next to other programs that run the same functions on this machine.

usage: scripts/python_speed.py [--program target/release/gristmill] [--text FILE] [--output benches/results/python.md]

- Word count of a text by functions, with and without a combiner, and its lines unchanged, next to `multiprocessing.Pool` with as
  many processes as there are cores. The pool always combines in a dictionary.
- Word count of a made-up WET file by `python/examples/crawl.py`, next to mrjob's local runner with the same mapper.

Rounds are interleaved, and all counts must be equal. The packages come from PyPI into an environment in a temporary
directory; code 3 if they cannot be installed. Without --text a text of 100 MB is made up.
"""
import argparse
import collections
import gzip
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from python import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["mrjob==0.7.4", "setuptools<70"]
ROUNDS = 5
SEED = 46
TEXT_BYTES = 100 << 20
PAGES = 20_000
LIMIT_SECONDS = 600

# The job, and the same by a pool: chunks of whole lines, one dictionary each.
JOB = '''
import sys, zlib, gristmill
def words(line):
    for word in line.split():
        yield word, 1
def total(word, counts):
    yield word, sum(counts)
def same(line):
    yield line, None
if __name__ == "__main__":
    kind, text = sys.argv[1:]
    if kind == "identity":
        job = gristmill.Job(same)
    else:
        job = gristmill.Job(words, total, combiner=total if kind == "combined" else None)
    pairs = gristmill.run(job, text)
    if kind == "identity":
        print(sum(1 for _ in pairs))
    else:
        print(zlib.crc32(repr(sorted(pairs)).encode()))
'''
POOL = r'''
import collections, multiprocessing, os, sys, zlib
def lines_of(chunk):
    path, start, end = chunk
    with open(path, "rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()
        while file.tell() < end:
            yield file.readline().decode("utf-8", "surrogateescape").rstrip("\n")
def words(line):
    for word in line.split():
        yield word, 1
def counted(chunk):
    counts = collections.Counter()
    for line in lines_of(chunk):
        for word, one in words(line):
            counts[word] += one
    return counts
def same(chunk):
    return [(line, None) for line in lines_of(chunk)]
if __name__ == "__main__":
    kind, path = sys.argv[1:]
    size, step = os.path.getsize(path), 4 << 20
    chunks = [(path, at, min(at + step, size)) for at in range(0, size, step)]
    with multiprocessing.Pool(os.cpu_count()) as pool:
        if kind == "identity":
            print(sum(len(part) for part in pool.imap(same, chunks)))
        else:
            counts = collections.Counter()
            for part in pool.imap_unordered(counted, chunks):
                counts.update(part)
            print(zlib.crc32(repr(sorted(counts.items())).encode()))
'''
MRJOB = '''
from mrjob.job import MRJob
from warcio.archiveiterator import ArchiveIterator
class Words(MRJob):
    def mapper(self, _, path):
        with open(path, "rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "conversion":
                    for word in record.content_stream().read().decode("utf-8", "replace").lower().split():
                        yield word, 1
    def combiner(self, word, counts):
        yield word, sum(counts)
    def reducer(self, word, counts):
        yield word, sum(counts)
if __name__ == "__main__":
    Words.run()
'''


def installed(directory: pathlib.Path, given: argparse.Namespace) -> pathlib.Path:
    """Creates the environment of the package's tests, with mrjob; returns its Python."""
    python = environment(directory, given)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]).returncode:
        print("python_speed.py: mrjob could not be installed", file=sys.stderr)
        sys.exit(3)
    return python


def made_up(directory: pathlib.Path, bytes_wanted: int) -> pathlib.Path:
    """Writes a text whose words are as frequent as those of a language."""
    draw, path = random.Random(SEED), directory / "text"
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randrange(2, 12))) for _ in range(50_000)]
    weights = [1 / (place + 1) for place in range(len(words))]
    with open(path, "w") as file:
        while file.tell() < bytes_wanted:
            drawn = draw.choices(words, weights, k=100_000)
            file.writelines(" ".join(drawn[at : at + 10]) + "\n" for at in range(0, len(drawn), 10))
    return path


def wet(directory: pathlib.Path) -> pathlib.Path:
    """Writes a WET file of pages of 300 words, compressed record by record."""
    draw, path = random.Random(SEED), directory / "pages.wet.gz"
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randrange(2, 12))) for _ in range(20_000)]
    weights = [1 / (place + 1) for place in range(len(words))]
    with open(path, "wb") as file:
        for number in range(PAGES):
            body = " ".join(draw.choices(words, weights, k=300)).encode()
            head = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://mill.example/{number}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
            head += f"WARC-Record-ID: <urn:uuid:{number:x}>\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
            file.write(gzip.compress(head.encode() + body + b"\r\n\r\n", 6))
    return path


def counts_of(kind: str, output: str) -> object:
    """Result of a run, in a form that all programs share."""
    if kind != "wet":
        return int(output)
    counts = collections.Counter()
    for line in output.splitlines():
        first, second = line.split("\t")
        word, count = (first.strip('"'), second) if first.startswith('"') else (second, first)
        counts[word] += int(count)
    return counts


def measured(rows: dict, variables: dict, directory: pathlib.Path) -> list:
    """Runs the programs of each row in turn; returns medians and the ratios of the rounds."""
    lines = []
    for name, (kind, programs) in rows.items():
        seconds = {program: [] for program in programs}
        for _ in range(ROUNDS):
            results = []
            for program, words in programs.items():
                begin = time.monotonic()
                done = subprocess.run(words, capture_output=True, text=True, env=variables, cwd=directory, timeout=LIMIT_SECONDS)
                seconds[program].append(time.monotonic() - begin)
                assert done.returncode == 0, done.stderr
                results.append(counts_of(kind, done.stdout))
            assert results[0] == results[1], f"{name}: the results differ"
        (ours, mine), (other, theirs) = seconds.items()
        ratios = sorted(one / two for one, two in zip(mine, theirs))
        line = [name, f"{statistics.median(mine):.2f} s", f"{other}: {statistics.median(theirs):.2f} s", f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"]
        print(*line, sep="\t", flush=True)
        lines.append(line)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/gristmill")
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.set_defaults(wheel=None)
    given = parser.parse_args()
    if not given.program.is_file():
        parser.error(f"--program {given.program} is not there: cargo build --release --features full -p gristmill")
    with tempfile.TemporaryDirectory(prefix="gristmill-python-speed-") as base:
        directory = pathlib.Path(base)
        python = installed(directory / "environment", given)
        text = (given.text or made_up(directory, TEXT_BYTES)).resolve()
        pages = wet(directory)
        (directory / "paths").write_text(f"{pages}\n")
        for name, source in (("job.py", JOB), ("pool.py", POOL), ("mrjob_words.py", MRJOB)):
            (directory / name).write_text(source)
        pair = lambda kind: {"gristmill": [python, "job.py", kind, text], "Pool": [python, "pool.py", kind, text]}
        rows = {
            "word count, combined": ("count", pair("combined")),
            "word count, not combined": ("count", pair("single")),
            "lines unchanged": ("count", pair("identity")),
            "word count of a WET file": ("wet", {
                "gristmill": [python, ROOT / "python/examples/crawl.py", "words", pages],
                "mrjob -r local": [python, "mrjob_words.py", "-r", "local", "-q", "paths"]}),
        }
        variables = {**os.environ, "TMPDIR": base, "XDG_STATE_HOME": f"{base}/state", "PATH": f"{python.parent}:{os.environ['PATH']}"}
        size = f"{text.stat().st_size / 1e6:.0f} MB of text, {pages.stat().st_size / 1e6:.0f} MB of WET"
        lines = measured(rows, variables, directory)
    if given.output:
        table = ["| job | gristmill | the other | ratio (of each round) |", "|---|---|---|---|", *("| " + " | ".join(line) + " |" for line in lines)]
        build = subprocess.run([given.program, "--version"], capture_output=True, text=True).stdout.strip()
        head = f"# Python functions\n\nMade by `scripts/python_speed.py` with {build}, Python {sys.version.split()[0]}, on {os.cpu_count()} cores; {size}; medians of {ROUNDS} interleaved rounds.\n\n"
        given.output.write_text(head + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()

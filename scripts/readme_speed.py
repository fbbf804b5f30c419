#!/usr/bin/env python3
"""Writes the table of speeds in README.md from the archived runs of `scripts/bench.sh table`.

usage: scripts/readme_speed.py [--check]      --check only checks that README.md has that table: code 1 if not
"""
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS, README = ROOT / "benches/results/table-runs.jsonl", ROOT / "README.md"
ROWS = {
    "wordcount-books": "word count, books",
    "sort": "sort, 10 M records",
    "join-repartition": "join, repartition",
    "grep-regex": "grep, regular expression",
    "grep-fixed": "grep, fixed string",
    "grep-small-files": "grep, 50,000 files of 2 kB",
}
NOT_PEERS = ("ours", "limit")
HEAD = ["| job | Gristmill | strongest peers |", "|---|---|---|"]


def medians(row: str) -> dict:
    """Median wall times of the last measurement of each program, without the warm-up."""
    runs = {}
    for entry in map(json.loads, RUNS.read_text().splitlines()):
        run = entry["finding"].get("run")
        if entry["row"] == row and run and run["round"] > 0:
            runs.setdefault((entry["contestant"], entry["invocation"]), []).append(run["measured"]["wall_s"])
    last = {name: max(of for other, of in runs if other == name) for name, _ in runs}
    return {name: statistics.median(runs[name, of]) for name, of in last.items()}


def line(row: str) -> str:
    found = medians(row)
    peers = sorted((time, name) for name, time in found.items() if not name.startswith(NOT_PEERS))[:2]
    return f"| {ROWS[row]} | {found['ours']:.2f} s | {', '.join(f'{name} {time:.2f} s' for time, name in peers)} |"


def main():
    lines = README.read_text().splitlines()
    start = lines.index(HEAD[0])
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    wanted = [*lines[:start], *HEAD, *map(line, ROWS), *lines[end:]]
    if sys.argv[1:] == ["--check"]:
        if wanted != lines:
            sys.exit("README.md does not have the speeds of benches/results/table-runs.jsonl: run scripts/readme_speed.py")
    else:
        README.write_text("\n".join(wanted) + "\n")


if __name__ == "__main__":
    main()

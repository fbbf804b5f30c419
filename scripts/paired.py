#!/usr/bin/env python3
"""Compares the policies of a comparison with its first one, metric by metric, run by run of one repetition.

usage: scripts/paired.py FOLDER/report.csv

Prints the first policy's mean flow time and 99th percentile of slowdown over another's, less 1, with 95 % intervals
(Student's t over repetitions). Ratios are taken within a repetition, where both met the same jobs.
"""
import collections
import csv
import math
import statistics
import sys

# 97.5 % quantiles of Student's t by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201}


def quantile(values: list[float], share: float) -> float:
    """Linear between neighbours, as `compare` has it."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (place - low) * (values[high] - values[low])


jobs: dict = collections.defaultdict(lambda: collections.defaultdict(lambda: ([], [])))
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        flows, slowdowns = jobs[row["policy"]][int(row["repetition"])]
        # Reports of before have the unit in the name.
        flow, alone = (row.get(name, row.get(f"{name}_s")) for name in ("flow", "alone"))
        flows.append(float(flow))
        if alone:
            slowdowns.append(float(flow) / float(alone))
first, *others = jobs
for other in others:
    words = []
    for title, measure in (("mean flow", lambda run: statistics.mean(run[0])),
                           ("p99 slowdown", lambda run: quantile(run[1], 0.99) if run[1] else None)):
        shares = [measure(jobs[first][one]) / measure(jobs[other][one]) - 1
                  for one in jobs[first] if one in jobs[other] and measure(jobs[first][one]) is not None]
        if len(shares) - 1 in T:
            half = T[len(shares) - 1] * statistics.stdev(shares) / math.sqrt(len(shares))
            words.append(f"{title} {100 * statistics.mean(shares):+.1f} % (± {100 * half:.1f})")
    print(f"{first} against {other}: {', '.join(words)}")

#!/usr/bin/env python3
"""Compares the verdicts of two runs of `gristmill paper`: how many of each there are, and a line of CSV for each number
and claim whose verdict changed or that one of them does not have.

    scripts/verdicts.py BEFORE/results.json AFTER/results.json [--csv FILE]

`why` is the evidence of the later run; what changed in a rule stands in CHANGELOG.md. Not here: any verdict of its own.
"""

import argparse
import collections
import csv
import json
import pathlib

ORDER = ["holds", "partly", "fails", "open", "input"]


def verdicts(path):
    """(paper, kind, what) -> (verdict, evidence), in the order of the page."""
    found = {}
    for paper in json.loads(path.read_text())["papers"]:
        for section in paper["sections"]:
            for block in section["blocks"]:
                for claim in block.get("claims", []):
                    key = paper["name"], "claim", f"{section['id']}: {claim['place']}: {claim['statement']}"
                    found[free(found, key)] = (claim["verdict"], claim["evidence"])
                for number in block.get("comparison", []):
                    key = paper["name"], "number", f"{section['title']}: {number['what']}"
                    found[free(found, key)] = (number["verdict"], said_of(number))
    return found


def free(found, key):
    """The key, numbered where one like it stands before."""
    again = sum((*key[:2], key[2].split(" (again ")[0]) == (*other[:2], other[2].split(" (again ")[0]) for other in found)
    return (*key[:2], f"{key[2]} (again {again})") if again else key


def said_of(number):
    """What decides a number's verdict, in a line."""
    shown = {"printed": (number["printed"], None), "reference": number["reference"] or (None, None)}
    shown["ours"] = (number["ours"], number["half_width"])
    words = [
        f"{name} {value:.6g}" + (f" ± {half_width:.3g}" if half_width else "")
        for name, (value, half_width) in shown.items()
        if value is not None
    ]
    return "; ".join(filter(None, [", ".join(words), number["note"]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path, help="where the changes go")
    asked = parser.parse_args()
    before, after = verdicts(asked.before), verdicts(asked.after)
    for kind in ("number", "claim"):
        for name, run in (("before", before), ("after", after)):
            counts = collections.Counter(said[0] for key, said in run.items() if key[1] == kind)
            print(f"{kind}s {name}: " + ", ".join(f"{counts.pop(verdict, 0)} {verdict}" for verdict in ORDER), dict(counts) or "")
    rows = []
    for key in [*after, *(key for key in before if key not in after)]:
        was, (now, why) = before.get(key, ("", ""))[0], after.get(key, ("", "no longer asked"))
        if was != now:
            rows.append([*key, was, now, why])
    print(f"{len(rows)} changed")
    for row in rows:
        print(f"  {row[3] or 'new'} -> {row[4] or 'gone'}  {row[0]} {row[1]}: {row[2][:110]}")
    if asked.csv:
        with asked.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["paper", "kind", "what", "before", "after", "why"], *rows])


if __name__ == "__main__":
    main()

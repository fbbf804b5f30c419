#!/usr/bin/env python3
"""Prints the claims of pages of `gristmill lab paper` as Markdown, for benches/results.

usage: scripts/papers.py PAGE [PAGE ...]     directories of pages, the first with all papers, the others such as another seed

Verdicts are those of all pages that have the claim, in their order; the evidence is that of the first. The last line counts the
claims that are open on the first page, and those on which pages differ.
"""
import json
import pathlib
import sys


def claims(page: dict) -> dict:
    """Returns the claims by paper, section, and number within the section."""
    found = {}
    for paper in page["papers"]:
        for section in paper["sections"]:
            all_claims = [claim for block in section["blocks"] for claim in block.get("claims", [])]
            found.update({(paper["name"], section["title"], number): claim for number, claim in enumerate(all_claims)})
    return found


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    pages = [json.loads((pathlib.Path(path) / "results.json").read_text()) for path in sys.argv[1:]]
    by_page = [claims(page) for page in pages]
    if any(found.keys() - by_page[0].keys() for found in by_page):
        print("a page has claims that the first lacks: give one with all papers first, at the same scale", file=sys.stderr)
        return 2
    seen = {key: [found[key]["verdict"] for found in by_page if key in found] for key in by_page[0]}
    print("| paper | printed numbers | agree | reference numbers | agree | claims | hold | in part | fail | open |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, tally in pages[0]["tallies"]:
        counts = [number for kind in ["printed", "reference"] for number in [sum(tally[kind].values()), tally[kind]["holds"]]]
        counts += [sum(tally["claims"].values()), *(tally["claims"][verdict] for verdict in ["holds", "partly", "fails", "open"])]
        print(f"| {name} | {' | '.join(map(str, counts))} |")
    before = None
    for (paper, section, number), claim in by_page[0].items():
        verdicts = seen[paper, section, number]
        if (paper, section) != before:
            before = paper, section
            print(f"\n## {paper}: {section}\n\n| place | statement | verdict | evidence |\n|---|---|---|---|")
        verdict = verdicts[0] if len(set(verdicts)) == 1 else ", ".join(verdicts)
        print(f"| {cell(claim['place'])} | {cell(claim['statement'])} | {verdict} | {cell(claim['evidence'])} |")
    is_open = sum(claim["verdict"] == "open" for claim in by_page[0].values())
    again = [verdicts for verdicts in seen.values() if len(verdicts) > 1]
    differ = sum(len(set(verdicts)) > 1 for verdicts in again)
    print(f"\n{len(seen)} claims, {is_open} open; {len(again)} are on several pages, {differ} of them with different verdicts.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes an archive from which a reviewer repeats the results: sources, claims with their commands, checksums.

usage: scripts/artifact.py DIRECTORY

DIRECTORY gets the sources of the last commit, the archived results, README.md with the claims, `kick-the-tyres.sh`,
`reproduce.sh CLAIM`, a container recipe, and SHA256SUMS. It must not exist.
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Name, claim, command in the directory of the sources, minutes and GB of disk on two cores, and the archived result.
CLAIMS = (
    ("outputs", "Jobs publish the right bytes, also when processes and connections die.", "scripts/test.sh", 30, 20, None),
    ("papers", "The algorithms of the five papers, and what holds and fails of their statements in simulation.",
     "$G lab paper all --out ../papers --overwrite", 4, 1, "papers.md"),
    ("papers-real", "The same on real processes. Nothing else may run on the machine meanwhile.",
     "$G lab paper all --real --keep-runs --out ../papers-real --overwrite", 60, 4, "papers-real.md"),
    ("divide", "Divided tasks shorten mean flow times of mixes by 13 to 20 % in simulation.", "scripts/targets.py --seeds 40", 40, 1, "targets.md"),
    ("prediction", "Simulations of a workload predict its measured mean flow times.",
     "$G lab compare examples/workloads/mixed.toml --policy fifo,fair,max-srpt --repeat 3 --out ../comparison", 5, 2, "schedulers.md"),
    ("speed", "Jobs of 1 GB next to other systems, which the script installs.", "scripts/bench.sh table", 60, 40, "table.md"),
    ("recovery", "Costs of lost workers, routes and masters. Needs root for network namespaces.", "tests/faults/recovery.py", 60, 4, "recovery.md"),
)
TYRES = """#!/usr/bin/env bash
# Builds the program and tries each part once: under ten minutes on two cores, 3 GB of disk.
set -euo pipefail
cd "$(dirname "$0")/source"
cargo build --release --features full -p gristmill
G=$PWD/target/release/gristmill
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
"$G" gen text words.txt --size 64MiB --seed 7
"$G" run wordcount words.txt --output counts --reduces 2 --quiet
tr -s ' \\n' '\\n\\n' < words.txt | awk 'NF { count[$0]++ } END { for (word in count) print word "\\t" count[word] }' | LC_ALL=C sort > wanted
LC_ALL=C sort counts/part-* | cmp - wanted
echo "word count: the same counts as awk"
"$G" lab paper overlap --quick --out overlap --quiet
"$G" lab sim --model cluster --policy fifo,fair,gristmill --workload mix:jobs=60 --seeds 3 --bound
echo "kick-the-tyres: everything ran"
"""
REPRODUCE = """#!/usr/bin/env bash
# Repeats one claim of README.md.
set -euo pipefail
case ${{1:-}} in
{names}) ;;
*) echo "usage: reproduce.sh {names}" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/source"
G=$PWD/target/release/gristmill
[[ -x $G ]] || cargo build --release --features full -p gristmill
case $1 in
{cases}
esac
"""
README = """# Gristmill {version}: artifact

Sources of commit {commit}, the claims with the command for each, and the results as archived. Licence: MIT or Apache-2.0 (source/LICENSE-*).
How to cite: source/CITATION.cff. Checksums: `sha256sum --check SHA256SUMS`.

## Needs

Linux on x86-64, Rust {rust} or newer, a C compiler, Python 3.11, the network for the first build; two cores, 8 GB of memory, and the disk of each claim. `podman build -t gristmill -f Containerfile .` makes an image with all of it.
The archived results are from {machine}.

## Kick the tyres

`./kick-the-tyres.sh`: builds, counts words and compares with awk, runs one paper and one simulation. Under ten minutes; its last line is `kick-the-tyres: everything ran`.

## Claims

`./reproduce.sh CLAIM` runs the command in `source`; times and disk are of two cores.

| claim | what | command | minutes | disk, GB | archived result |
|---|---|---|---|---|---|
{claims}

Pages of papers and comparisons are directories with `index.html`, the numbers as CSV, and `results.json`. Verdicts that the seed or the machine may change say `open`.

## Where to look in the sources

`ARCHITECTURE.md` names the parts and the place for a new policy, job, flag or metric; `scheduler/POLICIES.md` the policies with their papers and equations; `docs/book` has a chapter for each paper.

## Checklist

- Available: this archive holds sources, licence and checksums, and needs nothing from its authors.
- Functional: documented (README.md, the book), complete (every claim has its command), exercisable (`kick-the-tyres.sh`).
- Reproduced: `reproduce.sh` for each claim, next to `results`.
"""
CONTAINER = """FROM rust:{rust}-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv sqlite3 ripgrep iproute2 zstd util-linux && rm -rf /var/lib/apt/lists/*
COPY . /artifact
WORKDIR /artifact
CMD ["./kick-the-tyres.sh"]
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    out = parser.parse_args().directory
    out.mkdir(parents=True)
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    with subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        (out / "source").mkdir()
        subprocess.run(["tar", "--extract", "--directory", out / "source"], stdin=archive.stdout, check=True)
    if archive.returncode:
        sys.exit("artifact.py: git archive failed")
    shutil.copytree(out / "source/benches/results", out / "results")
    machine = json.loads((out / "results/machine.json").read_text())
    described = f"a {'virtual ' * machine['is_virtual']}machine with {machine['cores']} cores of {machine['processor']} and " \
                f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['kernel']}, unless a file says otherwise"
    rows = "\n".join(
        f"| {name} | {claim} | `{command.replace('$G', 'gristmill')}` | {minutes} | {disk} | {f'results/{file}' if file else 'the tests pass'} |"
        for name, claim, command, minutes, disk, file in CLAIMS)
    cases = "\n".join(f"{name}) {command} ;;" for name, _, command, *_ in CLAIMS)
    rust = package["rust-version"]
    texts = {"README.md": README.format(version=package["version"], commit=commit, rust=rust, machine=described, claims=rows),
             "Containerfile": CONTAINER.format(rust=rust), "kick-the-tyres.sh": TYRES,
             "reproduce.sh": REPRODUCE.format(cases=cases, names="|".join(name for name, *_ in CLAIMS))}
    for name, text in texts.items():
        (out / name).write_text(text)
    for name in ("kick-the-tyres.sh", "reproduce.sh"):
        (out / name).chmod(0o755)
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.is_symlink())
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(out)}\n" for path in files)
    (out / "SHA256SUMS").write_text("".join(sums))
    print(f"{out}: {len(files)} files, {len(CLAIMS)} claims")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks what is built in from elsewhere by the rules of deny.toml: licences, bans, sources, and advisories where it can.

usage: scripts/supply-chain.py                 checks this repository
       scripts/supply-chain.py --self-test     bad dependencies of each kind must be caught

Licences, bans and sources it reads out of `cargo metadata` itself, without a network. Advisories need cargo-deny and the
advisory database, which is a git repository: where that can be reached, cargo-deny is installed below target if it is not
there (three minutes on two cores) and checks everything once more. Where not, stderr says so, and the rest still counts.
Ends with code 1 and a line for each dependency that breaks a rule. Not here: whether the facts in deny.toml are wise.
"""
import argparse
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "target" / "tools"
CARGO_DENY = "0.20.2"
DATABASE = "https://github.com/RustSec/advisory-db"
REACH_SECONDS_MAX = 20
# What is understood here. Anything else in deny.toml would be checked by cargo-deny alone, so it is refused.
UNDERSTOOD = {
    "advisories": {"ignore"},
    "licenses": {"allow"},
    "bans": {"wildcards", "allow-wildcard-paths", "multiple-versions", "skip", "deny"},
    "sources": {"unknown-registry", "unknown-git"},
}


def say(text: str) -> None:
    print(f"supply-chain.py: {text}", file=sys.stderr)


def rules_of(path: pathlib.Path) -> dict:
    rules = tomllib.loads(path.read_text())
    unknown = [f"[{table}] {key}" for table in rules for key in rules[table] if key not in UNDERSTOOD.get(table, ())]
    strict = {("bans", "wildcards"), ("bans", "multiple-versions"), ("sources", "unknown-registry"), ("sources", "unknown-git")}
    unknown += [f"[{table}] {key} other than deny" for table, key in strict if rules[table][key] != "deny"]
    if unknown:
        sys.exit(f"{path}: not understood here: {', '.join(sorted(unknown))}")
    return rules


def cargo(workspace: pathlib.Path, *words: str) -> str:
    locked = ["--locked"] if (workspace / "Cargo.lock").exists() else []
    asked = subprocess.run(["cargo", *words, *locked], cwd=workspace, capture_output=True, text=True)
    if asked.returncode != 0:
        sys.exit(f"cargo {' '.join(words)} in {workspace}:\n{asked.stderr}")
    return asked.stdout


def metadata_of(workspace: pathlib.Path) -> dict:
    """What cargo says of all packages, and which of them some feature on some system asks for: a lock file names more."""
    metadata = json.loads(cargo(workspace, "metadata", "--format-version", "1"))
    tree = cargo(workspace, "tree", "--workspace", "--target", "all", "--edges", "normal,build,dev", "--prefix", "none")
    used = {tuple(line.split()[:2]) for line in tree.splitlines() if " v" in line}
    metadata["used"] = [each for each in metadata["packages"] if (each["name"], f"v{each['version']}") in used]
    return metadata


def is_allowed(licence: str, allowed: list[str]) -> bool:
    """Whether an SPDX expression is met by licences that are allowed: AND before OR, WITH belongs to its licence."""
    words = re.findall(r"[()]|[^\s()]+", licence.replace("/", " OR "))

    def either() -> bool:
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both() -> bool:
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        word = words.pop(0)
        if word == "(":
            met = either()
            return words.pop(0) == ")" and met
        while words and words[0] == "WITH":
            word = f"{word} WITH {words[1]}"
            del words[:2]
        return word in allowed

    try:
        return either() and not words
    except IndexError:
        return False


def broken(rules: dict, metadata: dict) -> list[str]:
    """A line for each package and rule that it breaks."""
    packages = metadata["used"]
    named = {package["id"]: package["name"] for package in packages}
    lines = []
    for package in packages:
        what = f"{package['name']} {package['version']}"
        if not is_allowed(package["license"] or "", rules["licenses"]["allow"]):
            lines.append(f"{what}: licence {package['license']!r} is not allowed")
        source = package["source"] or ""
        if source and not source.startswith("registry+"):
            lines.append(f"{what}: comes from {source}")
        for dependency in package["dependencies"]:
            # What comes from the default registry names none.
            if dependency["registry"]:
                lines.append(f"{what}: takes {dependency['name']} from {dependency['registry']}")
            if dependency["req"] == "*" and not dependency.get("path") and not source:
                lines.append(f"{what}: takes any version of {dependency['name']}")
    for ban in rules["bans"]["deny"]:
        for node in metadata["resolve"]["nodes"]:
            taken = {named.get(other) for other in node["dependencies"] if node["id"] in named}
            if ban["crate"] in taken and named[node["id"]] not in ban.get("wrappers", ()):
                lines.append(f"{named[node['id']]}: takes {ban['crate']}, which is banned: {ban['reason']}")
    skipped = [skip["crate"].split("@") for skip in rules["bans"]["skip"]]
    versions: dict[str, list[str]] = {}
    for package in packages:
        spared = [name for name, version in skipped if f"{package['version']}.".startswith(f"{version}.")]
        if package["name"] not in spared:
            versions.setdefault(package["name"], []).append(package["version"])
    lines += [f"{name}: is there in versions {', '.join(all)}" for name, all in versions.items() if 1 < len(all)]
    return lines


def cargo_deny() -> str | None:
    return shutil.which("cargo-deny", path=f"{TOOLS / 'bin'}:{pathlib.Path.home() / '.cargo/bin'}:{os.environ['PATH']}")


def database_answers() -> bool:
    ask = ["git", "ls-remote", "--exit-code", DATABASE, "HEAD"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        asked = subprocess.run(ask, timeout=REACH_SECONDS_MAX, env=os.environ | {"GIT_TERMINAL_PROMPT": "0"}, **quiet)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def check_advisories() -> bool:
    """Whether cargo-deny is content, or cannot be asked, which is said."""
    if not database_answers():
        say(f"ADVISORIES WERE NOT CHECKED: {DATABASE} cannot be reached from here")
        return True
    if not cargo_deny():
        say(f"installing cargo-deny {CARGO_DENY} below target")
        install = ["cargo", "install", "--locked", "cargo-deny", "--version", CARGO_DENY, "--root", str(TOOLS)]
        if subprocess.run(install).returncode != 0:
            say("ADVISORIES WERE NOT CHECKED: cargo-deny could not be installed")
            return True
    return subprocess.run([cargo_deny(), "--locked", "check"], cwd=ROOT).returncode == 0


def manifest(name: str, licence: str | None, dependencies: str = "", version: str = "1.0.0") -> str:
    licence = f'license = "{licence}"\n' if licence else ""
    return f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2024"\n{licence}[dependencies]\n{dependencies}'


def seed(folder: pathlib.Path, text: str) -> None:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "lib.rs").write_text("")
    (folder / "Cargo.toml").write_text(text)


def lines_for(rules: dict, dependencies: str, *crates: tuple[str, str]) -> list[str]:
    """What is found in a program with these dependencies; crates are folders with their manifests."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for name, text in crates:
            seed(folder / name, text)
        if "git = " in dependencies:
            who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "a"]):
                subprocess.run(["git", *words], cwd=folder / "far", check=True)
        seed(folder / "own", manifest("own", "MIT", dependencies.replace("PLACE", place)))
        return broken(rules, metadata_of(folder / "own"))


def self_test(rules: dict) -> None:
    """Ends with code 1 if something bad is let through, or something good is not."""
    near = 'near = { path = "../near" }\n'
    cases = [
        (None, near, [("near", manifest("near", "Apache-2.0 AND (MIT OR GPL-3.0-only)"))]),
        ("licence 'GPL-3.0-only'", near, [("near", manifest("near", "GPL-3.0-only"))]),
        ("licence 'MIT AND GPL-3.0-only'", near, [("near", manifest("near", "MIT AND GPL-3.0-only"))]),
        ("licence None", near, [("near", manifest("near", None))]),
        ("comes from git+", 'far = { version = "1", git = "file://PLACE/far" }\n', [("far", manifest("far", "MIT"))]),
        ("which is banned", 'native-tls = { path = "../near" }\n', [("near", manifest("native-tls", "MIT"))]),
        ("takes bincode", 'bincode = { path = "../near" }\n', [("near", manifest("bincode", "MIT", version="2.0.1"))]),
        ("in versions", 'near = { path = "../near" }\nold = { path = "../old", package = "near" }\n',
         [("near", manifest("near", "MIT")), ("old", manifest("near", "MIT", version="0.9.0"))]),
    ]
    wrong = []
    for expected, dependencies, crates in cases:
        found = lines_for(rules, dependencies, *crates)
        good = not found if expected is None else len(found) == 1 and expected in found[0]
        wrong += [] if good else [f"expected {expected}, found {found}"]
    # What no program here can depend on without a network: as its manifest would say it.
    for key, value, expected in (("registry", "https://example.org/index", "from https"), ("req", "*", "any version")):
        changed = copy.deepcopy(metadata_of(ROOT))
        own = next(package for package in changed["packages"] if package["name"] == "gristmill-worker")
        next(taken for taken in own["dependencies"] if taken["name"] == "bytes")[key] = value
        found = broken(rules, changed)
        wrong += [] if len(found) == 1 and expected in found[0] else [f"expected {expected}, found {found}"]
    wrong += seeded_advisory_lets_through() if cargo_deny() else []
    if wrong:
        sys.exit("\n".join(wrong))
    say("bad dependencies of each kind are caught" + ("" if cargo_deny() else "; advisories not tried: no cargo-deny"))


def seeded_advisory_lets_through() -> list[str]:
    """cargo-deny with a database of two advisories: the one that is excepted, and one against something we use."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        for number, crate in (("RUSTSEC-2025-0141", "bincode"), ("RUSTSEC-2099-0001", "libc")):
            (folder / "db" / "crates" / crate).mkdir(parents=True)
            words = f'[advisory]\nid = "{number}"\npackage = "{crate}"\ndate = "2025-01-01"\n[versions]\npatched = []\n'
            path = folder / "db" / "crates" / crate / f"{number}.md"
            path.write_text(f"```toml\n{words}```\n\n# Seeded\n\nFor a test.\n")
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "a"]):
            subprocess.run(["git", *words], cwd=folder / "db", check=True)
        places = f'[advisories]\ndb-path = "{folder}/cache"\n'
        config = folder / "deny.toml"
        config.write_text((ROOT / "deny.toml").read_text().replace("[advisories]\n", places, 1))
        command = [cargo_deny(), "--locked", "--config", str(config), "check", "advisories"]
        instead = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": DATABASE}
        instead["GIT_CONFIG_KEY_0"] = f"url.file://{folder}/db.insteadOf"
        asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | instead)
        words = asked.stdout + asked.stderr
        caught = asked.returncode != 0 and "RUSTSEC-2099-0001" in words and "ID: RUSTSEC-2025-0141" not in words
        return [] if caught else [f"a seeded advisory: code {asked.returncode}\n{words}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    flags = parser.parse_args()
    rules = rules_of(ROOT / "deny.toml")
    if flags.self_test:
        self_test(rules)
        return
    metadata = metadata_of(ROOT)
    lines = broken(rules, metadata)
    for line in lines:
        say(line)
    content = check_advisories()
    if lines or not content:
        sys.exit(1)
    say(f"{len(metadata['used'])} packages keep to the licences, bans and sources of deny.toml")


if __name__ == "__main__":
    main()

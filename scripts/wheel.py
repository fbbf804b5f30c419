#!/usr/bin/env python3
"""Builds the wheel of the Python package: the module in python/gristmill, and the program as a command of the environment.

usage: scripts/wheel.py [--binary target/release/gristmill] [--out target/wheels] [--strip] [--fast]

The platform tag is read off the program: the newest version of glibc that it asks for, so that pip refuses it where it could
not run; one without any is good for every Linux. The same program and sources give the same bytes. Needs readelf (binutils).

--strip leaves out debug information, and --fast packs less tightly: for tests. It is no build back end: there is nothing to
compile, and the one line of a name that cannot be known beforehand is the tag.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python"
# Names of machines as readelf has them, and as wheels have them.
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
# The oldest glibc that pip has tags for by version.
GLIBC_MIN = (2, 5)
# The time of all files unless SOURCE_DATE_EPOCH says otherwise: the first that zip knows.
EPOCH = 315532800
ELF = b"\x7fELF"


def readelf(option: str, binary: pathlib.Path) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(["readelf", "--wide", option, binary], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def platform_tag(binary: pathlib.Path) -> str:
    """The tag of the systems on which a program runs."""
    with open(binary, "rb") as file:
        if file.read(len(ELF)) != ELF:
            raise SystemExit(f"{binary} is no program for Linux, so no wheel can be made of it")
    machine = re.search(r"Machine:\s+(.*)", readelf("--file-header", binary)).group(1).strip()
    if machine not in MACHINES:
        raise SystemExit(f"{binary} is for {machine}; wheels are made for {', '.join(MACHINES.values())}")
    machine = MACHINES[machine]
    if "INTERP" not in readelf("--program-headers", binary):
        return f"manylinux_{GLIBC_MIN[0]}_{GLIBC_MIN[1]}_{machine}.musllinux_1_1_{machine}"
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", binary))
    newest = max([(int(major), int(minor)) for major, minor in found] + [GLIBC_MIN])
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}"


def metadata(project: dict, version: str) -> str:
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"Requires-Python: {project['requires-python']}", f"License-Expression: {project['license']}"]
    lines += [f"License-File: {path.name}" for path in licences()]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {needed}; extra == "{extra}"' for needed in needs]
    lines += ["Description-Content-Type: text/markdown", "", (PACKAGE / project["readme"]).read_text()]
    return "\n".join(lines)


def licences() -> list:
    return sorted(ROOT.glob("LICENSE-*"))


def build(binary: pathlib.Path, out: pathlib.Path, level: int) -> pathlib.Path:
    """Writes the wheel, and says where."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    tag = f"py3-none-{platform_tag(binary)}"
    stem = f"{project['name']}-{version}"
    info = f"{stem}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: gristmill scripts/wheel.py\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{platform}\n" for platform in tag.removeprefix("py3-none-").split("."))
    entries = {f"gristmill/{path.name}": path.read_bytes()
               for path in (PACKAGE / "gristmill").iterdir() if path.suffix == ".py" or path.name == "py.typed"}
    entries[f"{stem}.data/scripts/gristmill"] = binary.read_bytes()
    entries |= {f"{info}/licenses/{path.name}": path.read_bytes() for path in licences()}
    entries[f"{info}/METADATA"] = metadata(project, version).encode()
    entries[f"{info}/WHEEL"] = wheel.encode()
    record = f"{info}/RECORD"
    digest = lambda content: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in sorted(entries.items())]
    entries[record] = ("".join(rows) + f"{record},,\n").encode()
    moment = time.gmtime(max(EPOCH, int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))))[:6]
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as file:
        # The record comes last, as the specification asks.
        for name, content in [*sorted((name, content) for name, content in entries.items() if name != record), (record, entries[record])]:
            entry = zipfile.ZipInfo(name, moment)
            entry.create_system = 3
            entry.external_attr = (0o100755 if ".data/scripts/" in name else 0o100644) << 16
            file.writestr(entry, content, zipfile.ZIP_DEFLATED, level)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/gristmill")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/wheels")
    parser.add_argument("--strip", action="store_true")
    parser.add_argument("--fast", action="store_true")
    given = parser.parse_args()
    if not given.binary.is_file():
        sys.exit(f"wheel.py: {given.binary} is not there: build it with `cargo build --release -p gristmill`, or name another by --binary")
    with tempfile.TemporaryDirectory() as folder:
        binary = given.binary
        if given.strip:
            binary = pathlib.Path(folder) / "gristmill"
            subprocess.run(["strip", "-o", binary, given.binary], check=True)
        print(build(binary, given.out, 1 if given.fast else 9))


if __name__ == "__main__":
    main()

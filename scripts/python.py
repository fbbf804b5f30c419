#!/usr/bin/env python3
"""Tests of the Python package: a wheel is built and installed in a fresh environment, and python/tests run there.

usage: scripts/python.py [--binary target/debug/gristmill] [PYTEST OPTION...]

Packages that tests need are pinned in python/tests/requirements.txt. Code 3: they could not be installed, which it says.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "python/tests"
COULD_NOT_INSTALL = 3
INSTALL_SECONDS_MAX = 300


def environment(folder: pathlib.Path, wheel: str) -> pathlib.Path:
    """Makes an environment with the wheel and what tests need; answers its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    try:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", TESTS / "requirements.txt"],
                       check=True, timeout=INSTALL_SECONDS_MAX)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"python.py: what the tests need could not be installed: {error}", file=sys.stderr)
        sys.exit(COULD_NOT_INSTALL)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/debug/gristmill")
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="gristmill-python-test-") as base:
        folder = pathlib.Path(base)
        made = subprocess.run([ROOT / "scripts/wheel.py", "--binary", given.binary, "--out", folder, "--strip", "--fast"],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        python = environment(folder / "environment", made)
        # Away from the sources: what is tested is what was installed.
        shutil.copytree(TESTS, folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "temporary").mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRISTMILL", "PYTHON", "HADOOP"))}
        variables = {**kept, "TMPDIR": str(folder / "temporary"), "XDG_STATE_HOME": str(folder / "state"),
                     "GRISTMILL_STREAMING_FLAGS": "", "PATH": f"{python.parent}:{os.environ['PATH']}"}
        done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, folder / "tests"], cwd=folder / "tests", env=variables)
        if done.returncode:
            sys.exit(done.returncode)
        typed = subprocess.run([python, "-m", "mypy", "--strict", "--cache-dir", folder / "types", "-p", "gristmill"],
                               cwd=folder, env=variables)
        sys.exit(typed.returncode)


if __name__ == "__main__":
    main()

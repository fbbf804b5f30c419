#!/usr/bin/env python3
"""Tests of the Python package: python/tests and mypy, in a fresh environment.

usage: scripts/python.py [--program target/debug/gristmill | --wheel FILE] [PYTEST OPTION...]

--wheel installs a wheel (`pip wheel --no-deps .` builds one); without it the environment gets the module and a built program.
Packages of the tests are pinned in python/tests/requirements.txt. Code 3: they could not be installed.
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


def environment(directory: pathlib.Path, given: argparse.Namespace) -> pathlib.Path:
    """Creates an environment with the package and the requirements of the tests; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = directory / "bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if given.wheel:
        subprocess.run([*pip, "--no-index", given.wheel], check=True)
    else:
        packages = next(directory.glob("lib/python*/site-packages"))
        shutil.copytree(ROOT / "python/gristmill", packages / "gristmill", ignore=shutil.ignore_patterns("__pycache__"))
        (directory / "bin/gristmill").symlink_to(given.program.resolve())
    try:
        subprocess.run([*pip, "--requirement", TESTS / "requirements.txt"], check=True, timeout=INSTALL_SECONDS_MAX)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"python.py: the packages of the tests could not be installed: {error}", file=sys.stderr)
        sys.exit(COULD_NOT_INSTALL)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/gristmill")
    parser.add_argument("--wheel", type=pathlib.Path)
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="gristmill-python-test-") as base:
        directory = pathlib.Path(base)
        python = environment(directory / "environment", given)
        # Away from the sources: the installed package is tested.
        shutil.copytree(TESTS, directory / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "python/examples", directory / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        (directory / "temporary").mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRISTMILL", "PYTHON", "HADOOP"))}
        variables = {**kept, "TMPDIR": str(directory / "temporary"), "XDG_STATE_HOME": str(directory / "state"),
                     "GRISTMILL_STREAMING_FLAGS": "", "PATH": f"{python.parent}:{os.environ['PATH']}"}
        tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, directory / "tests"]
        types = [python, "-m", "mypy", "--strict", "--cache-dir", directory / "types", "-p", "gristmill"]
        for words, place in ((tests, directory / "tests"), (types, directory)):
            if code := subprocess.run(words, cwd=place, env=variables).returncode:
                sys.exit(code)


if __name__ == "__main__":
    main()

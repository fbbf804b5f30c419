#!/usr/bin/env python3
"""The book in docs/book and the README: their commands run, the book's pages built.

usage: scripts/book.py run [CHAPTER...]     types every command of README.md and the book and compares what it prints
       scripts/book.py build                writes target/book/index.html and its other pages
       scripts/book.py --self-test          made-up books: one that is right, and one wrong in each way that there is

`run` needs the programs of the tests (cargo test builds them). In a chapter,

    ```console                a block whose lines behind `$ ` are typed, in one shell and one folder for each chapter;
                              the other lines must be printed, `...` standing for any part of a line or any lines
    ```console exit=2         the same, and the last command ends with this code
    ```console not-run="..."  not typed, for the reason that is given
    ```rust file=PATH         stands in that file of the repository, word by word, and so is compiled and tested there

`build` makes an environment of Python in target/book-python with what docs/book/requirements.txt pins by its hash, and
refuses pages that would ask another host for anything, and links that lead nowhere; made-up pages try that each time.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

from book_source import BOOK, ROOT, Wrong, blocks_of, chapters_of, difference

CHAPTER_SECONDS_MAX = 120.0
# Typed like a chapter, in an empty folder. Its Rust is compiled with the documentation of the program.
README = ROOT / "README.md"
MARK = "--- end of command"
# Reasons are read by people: a word is not one.
REASON_WORDS_MIN = 3
PROGRAMS = ("gristmill", "own_policy", "spending", "tf_idf", "inverted_index")


def check_code(text: str):
    """Code that names its file must stand there."""
    for block in blocks_of(text):
        if block.kind == "rust" and "file" not in block.options:
            raise Wrong(f"line {block.line}: code without file=PATH is compiled by nobody")
        if "file" in block.options:
            path = ROOT / block.options["file"]
            if not path.is_file() or block.body not in path.read_text():
                raise Wrong(f"line {block.line}: this code does not stand in {block.options['file']}")


def commands_of(text: str) -> list:
    """The commands of a chapter that are typed."""
    commands = []
    for block in blocks_of(text):
        if block.kind in ("sh", "bash", "shell"):
            raise Wrong(f"line {block.line}: commands belong into a block called console")
        if block.kind == "console" and "not-run" not in block.options:
            commands += block.commands()
        elif block.kind == "console" and len(block.options["not-run"].split()) < REASON_WORDS_MIN:
            raise Wrong(f"line {block.line}: not-run needs a reason")
    return commands


def typed(commands: list, files: pathlib.Path, bin_folder: pathlib.Path, seconds_max: float) -> list:
    """Types commands in one shell and a folder of its own; answers what each printed and its exit code."""
    with tempfile.TemporaryDirectory(prefix="gristmill-book-") as base:
        folder = pathlib.Path(base) / "work"
        shutil.copytree(files, folder) if files.is_dir() else folder.mkdir()
        for name in ("state", "temporary"):
            (pathlib.Path(base) / name).mkdir()
        script = pathlib.Path(base) / "script"
        script.write_text("".join(f"{command.text}\nprintf '\\n{MARK} %d\\n' $?\n" for command in commands))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL")}
        environment = {**kept, "PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": base, "XDG_STATE_HOME": f"{base}/state",
                       "TMPDIR": f"{base}/temporary", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        out = pathlib.Path(base) / "printed"
        with open(out, "wb") as sink:
            shell = subprocess.Popen(["bash", "--noprofile", "--norc", str(script)], cwd=folder, env=environment,
                                     stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
        try:
            shell.wait(seconds_max)
        except subprocess.TimeoutExpired:
            pass
        # What a chapter has left running ends with it.
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(shell.pid, end)
            except ProcessLookupError:
                break
            time.sleep(0.3)
        shell.wait()
        return parted(out.read_text(errors="replace"))


def parted(printed: str) -> list:
    """What each command that ended has printed, with its exit code."""
    answers, lines = [], []
    for line in printed.splitlines():
        if line.startswith(MARK):
            # The mark began with a line end of its own, which is not the command's.
            while lines and not lines[-1]:
                lines.pop()
            answers.append((lines, int(line.removeprefix(MARK))))
            lines = []
        else:
            lines.append(line)
    return answers


def run_chapter(path: pathlib.Path, bin_folder: pathlib.Path, seconds_max: float) -> int:
    """Types a chapter's commands and compares; answers how many there are."""
    text = path.read_text()
    if path != README:
        check_code(text)
    commands = commands_of(text)
    if not commands:
        return 0
    answers = typed(commands, path.parent / "files", bin_folder, seconds_max)
    for command, (printed, code) in zip(commands, answers):
        shown = "\n    ".join(printed) or "(nothing)"
        where = f"line {command.line}: `{command.text.splitlines()[0]}`"
        if code != command.exit_code:
            raise Wrong(f"{where} ended with code {code} instead of {command.exit_code} and printed\n    {shown}")
        if wrong := difference(printed, command.expected):
            raise Wrong(f"{where}: {wrong}; it printed\n    {shown}")
    if len(answers) < len(commands):
        missing = commands[len(answers)]
        raise Wrong(f"line {missing.line}: `{missing.text.splitlines()[0]}` did not end within {seconds_max:.0f} s of the chapter")
    return len(commands)


def run(book: pathlib.Path, chapters: list, target: pathlib.Path) -> int:
    """Types the commands of these chapters, or of all; answers the exit code."""
    known = [README.name, *(name for _, name in chapters_of(book))]
    for name in chapters:
        if name not in known:
            raise SystemExit(f"book.py: no chapter {name}; there are {', '.join(known)}")
    failed, began = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gristmill-book-bin-") as bin_folder:
        for program in PROGRAMS:
            (pathlib.Path(bin_folder) / program).symlink_to((target / program).resolve())
        for name in chapters or known:
            started = time.monotonic()
            try:
                count = run_chapter(README if name == README.name else book / name, pathlib.Path(bin_folder), CHAPTER_SECONDS_MAX)
                print(f"{name}: {count} commands do as the book says ({time.monotonic() - started:.0f} s)", flush=True)
            except Wrong as wrong:
                print(f"{name}: {wrong}", flush=True)
                failed.append(name)
    print(f"{time.monotonic() - began:.0f} s; " + (f"the book is wrong in {', '.join(failed)}" if failed else "every command does as the book says"))
    return 1 if failed else 0


def python_of_book(target: pathlib.Path) -> pathlib.Path:
    """The Python with which pages are made; its packages are pinned by their hashes."""
    environment, wanted = target / "book-python", BOOK / "requirements.txt"
    python, done = environment / "bin" / "python", environment / "requirements.txt"
    if not (done.is_file() and done.read_text() == wanted.read_text()):
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
                        "--only-binary", ":all:", "-r", str(wanted)], check=True)
        shutil.copy(wanted, done)
    return python


def build(target: pathlib.Path) -> int:
    """Makes the pages in an environment of their own."""
    try:
        python = python_of_book(target)
    except subprocess.CalledProcessError as error:
        print(f"book.py: could not make the environment of docs/book/requirements.txt in {target}: {' '.join(error.cmd[:4])} "
              f"ended with code {error.returncode}; it needs python3-venv and a way to PyPI", file=sys.stderr)
        return 3
    pages = ROOT / "scripts" / "book_pages.py"
    return subprocess.run([str(python), str(pages), str(BOOK), str(target / "book")]).returncode


# Made-up chapters: a name, the chapter, and what must be said of it; nothing where it is right.
MADE_UP = [
    ("right", "```console\n$ echo one; echo two\none\ntwo\n$ x=3\n$ echo $x in 12 ms\n3 in ... ms\n```", None),
    ("lines-between", "```console\n$ seq 9\n1\n...\n9\n```", None),
    ("goes-on", "```console\n$ cat <<END\n> a b\n> END\na b\n```", None),
    ("says-its-code", "```console exit=3\n$ (exit 3)\n```", None),
    ("wrong-output", "```console\n$ echo one\ntwo\n```", "expected `two`, found `one`"),
    ("wrong-number", "```console\n$ echo 12 ms\n1... s\n```", "expected `1... s`"),
    ("too-little", "```console\n$ echo one\none\ntwo\n```", "expected `two`, found the end"),
    ("too-much", "```console\n$ seq 3\n1\n2\n```", "more was printed than the book says: `3`"),
    ("fails", "```console\n$ ls /nowhere\n```", "ended with code 2 instead of 0"),
    ("does-not-fail", "```console exit=1\n$ true\n```", "ended with code 0 instead of 1"),
    ("no-such-program", "```console\n$ gristmil run\n```", "ended with code 127"),
    ("sticks", "```console\n$ sleep 60\n```", "did not end within"),
    ("ends-the-shell", "```console\n$ exit 0\n$ echo here\n```", "`exit 0` did not end"),
    ("no-reason", '```console not-run="slow"\n$ sleep 60\n```', "needs a reason"),
    ("hidden-command", "```sh\nrm -r /\n```", "belong into a block called console"),
    ("no-command", "```console\nhello\n```", "output before the first command"),
    ("code-of-nowhere", "```rust file=examples/src/lib.rs\nfn main() {}\n```", "does not stand in"),
    ("code-without-file", "```rust\nfn main() {}\n```", "compiled by nobody"),
]


def self_test() -> int:
    """Whether each wrong book is found out, for what is wrong with it."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gristmill-book-test-") as base:
        for name, chapter, expected in MADE_UP:
            path = pathlib.Path(base) / f"{name}.md"
            path.write_text(textwrap.dedent(chapter) + "\n")
            try:
                run_chapter(path, pathlib.Path(base), 2.0)
                said = None
            except Wrong as wrong:
                said = str(wrong)
            right = said is None if expected is None else said is not None and expected in said
            failed += not right
            if not right:
                print(f"FAIL  {name}: expected {expected!r}, said {said!r}")
    print("the check of the book is wrong" if failed else f"{len(MADE_UP)} made-up chapters judged as they should be")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("what", nargs="?", choices=["run", "build"])
    parser.add_argument("chapter", nargs="*", help="files of docs/book; all if none is named")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug",
                        help="folder of the programs (default: %(default)s)")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.what is None:
        parser.error("run, build or --self-test")
    if options.what == "build":
        return build(options.programs.parent)
    return run(BOOK, options.chapter, options.programs)


if __name__ == "__main__":
    sys.exit(main())

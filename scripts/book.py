#!/usr/bin/env python3
"""Checks README.md and the chapters in docs/book: runs their commands, compares their code and follows their links.

usage: scripts/book.py run [CHAPTER...]     all chapters and README.md, or the named ones
       scripts/book.py flags                writes the chapter of flags, docs/book/flags.md, from the help texts
       scripts/book.py --self-test          made-up chapters: correct ones, and one for each error that must be found

Needs the programs that `cargo test` builds. In a chapter,

    ```console                the lines after `$ ` are run, in one shell and one directory for each chapter;
                              the other lines must be printed, `...` means any part of a line or any lines
    ```console exit=2         the same, and the last command exits with this code
    ```console not-run="..."  not run, for this reason
    ```rust file=PATH         this file of the repository contains the code word by word, so it is compiled and tested there

`mdbook build docs` makes the HTML of the book.
"""
import argparse
import collections
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
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "book"
# Run like a chapter, in an empty directory. Its Rust is compiled with the documentation of the program.
README = ROOT / "README.md"
# Generated.
FLAGS = BOOK / "flags.md"
PROGRAMS = ("gristmill", "own_policy", "spending", "tf_idf", "inverted_index")
CHAPTER_SECONDS_MAX = 120.0
# A reason is for readers: one word is not enough.
REASON_WORDS_MIN = 3
MARK = "--- end of command"
# A part of a line, or any number of whole lines, that differs from run to run.
ANY = "..."
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)(?P<rest>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r'([\w-]+)=("[^"]*"|\S+)')
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


class Wrong(Exception):
    """An error of the book."""


@dataclass
class Command:
    text: str
    line: int
    expected: list = field(default_factory=list)
    exit_code: int = 0


@dataclass
class Block:
    """A block of code between fences."""

    kind: str
    options: dict
    body: str
    line: int

    def commands(self) -> list:
        """Commands of a `console`: lines after `$ `, continued after `> `; all other lines are expected output."""
        commands = []
        for number, line in enumerate(self.body.splitlines(), self.line + 1):
            if line.startswith("$ "):
                commands.append(Command(line[2:], number))
            elif not commands:
                raise Wrong(f"line {number}: output before the first command")
            elif line.startswith("> ") and not commands[-1].expected:
                commands[-1].text += "\n" + line[2:]
            else:
                commands[-1].expected.append(line)
        if not commands:
            raise Wrong(f"line {self.line}: a console without a command (lines that begin with `$ `)")
        commands[-1].exit_code = int(self.options.get("exit", 0))
        return commands


def blocks_of(text: str) -> list:
    blocks = []
    for found in FENCE.finditer(text):
        options = {name: value.strip('"') for name, value in OPTION.findall(found["rest"])}
        indent = len(found["indent"])
        body = "".join(line[indent:] + "\n" for line in found["body"].splitlines())
        blocks.append(Block(found["kind"], options, body, text.count("\n", 0, found.start()) + 1))
    return blocks


def chapters_of(book: pathlib.Path) -> list:
    """Files in the order of SUMMARY.md, which must list every chapter of the directory."""
    listed = re.findall(r"^ *-? ?\[[^\]]+\]\(([^)]+\.md)\)$", (book / "SUMMARY.md").read_text(), re.MULTILINE)
    existing = {path.name for path in book.glob("*.md")} - {"SUMMARY.md"}
    if existing != set(listed):
        raise Wrong(f"SUMMARY.md and the directory differ: {sorted(existing ^ set(listed))}")
    return listed


def anchors_of(text: str) -> set:
    """Anchors of the headings, as GitHub and mdBook name them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def check_links(path: pathlib.Path, text: str):
    for link in LINK.findall(FENCE.sub("", text)):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or anchor and anchor not in anchors_of(target.read_text()):
            raise Wrong(f"the target of the link {link} does not exist")


def check_code(text: str):
    """Checks that code with a file name is in that file."""
    for block in blocks_of(text):
        if block.kind == "rust" and "file" not in block.options:
            raise Wrong(f"line {block.line}: code without file=PATH is not compiled")
        if "file" in block.options:
            path = ROOT / block.options["file"]
            if not path.is_file() or block.body not in path.read_text():
                raise Wrong(f"line {block.line}: {block.options['file']} does not contain this code")


def commands_of(text: str) -> list:
    """Returns the commands of a chapter that are run."""
    commands = []
    for block in blocks_of(text):
        if block.kind in ("sh", "bash", "shell"):
            raise Wrong(f"line {block.line}: commands belong in a block called console")
        if block.kind == "console" and "not-run" not in block.options:
            commands += block.commands()
        elif block.kind == "console" and len(block.options["not-run"].split()) < REASON_WORDS_MIN:
            raise Wrong(f"line {block.line}: not-run needs a reason")
    return commands


def typed(commands: list, files: pathlib.Path, programs: pathlib.Path, seconds_max: float) -> list:
    """Runs commands in one shell and a directory of its own; returns the output and exit code of each."""
    with tempfile.TemporaryDirectory(prefix="gristmill-book-") as name:
        base = pathlib.Path(name)
        work = base / "work"
        shutil.copytree(files, work) if files.is_dir() else work.mkdir()
        for name in ("state", "temporary"):
            (base / name).mkdir()
        script, out = base / "script", base / "output"
        script.write_text("".join(f"{command.text}\nprintf '\\n{MARK} %d\\n' $?\n" for command in commands))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL")}
        environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(base), "XDG_STATE_HOME": f"{base}/state",
                       "TMPDIR": f"{base}/temporary", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        with open(out, "wb") as sink:
            shell = subprocess.Popen(["bash", "--noprofile", "--norc", str(script)], cwd=work, env=environment,
                                     stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
        try:
            shell.wait(seconds_max)
        except subprocess.TimeoutExpired:
            pass
        # Ends processes that the chapter has left running.
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(shell.pid, end)
            except ProcessLookupError:
                break
            time.sleep(0.3)
        shell.wait()
        return split_output(out.read_text(errors="replace"))


def split_output(output: str) -> list:
    """Lines and exit code of each command that ended."""
    ended, lines = [], []
    for line in output.splitlines():
        if line.startswith(MARK):
            # The mark starts with a line end of its own.
            while lines and not lines[-1]:
                lines.pop()
            ended.append((lines, int(line.removeprefix(MARK))))
            lines = []
        else:
            lines.append(line)
    return ended


def matches(line: str, wanted: str) -> bool:
    pattern = ".*".join(re.escape(piece) for piece in wanted.rstrip().split(ANY))
    return re.fullmatch(pattern, line.rstrip()) is not None


def difference(printed: list, expected: list):
    """Returns the first difference as text; None if the output matches or the book shows none."""
    if not expected:
        return None
    # reach[k]: numbers of printed lines that the first k expected lines can match.
    reach = [{0}]
    for wanted in expected:
        if wanted.strip() == ANY:
            reach.append(set(range(min(reach[-1]), len(printed) + 1)))
        else:
            reach.append({at + 1 for at in reach[-1] if at < len(printed) and matches(printed[at], wanted)})
        if not reach[-1]:
            at = max(reach[-2])
            found = f"`{printed[at]}`" if at < len(printed) else "the end"
            return f"expected `{wanted}`, found {found}"
    return None if len(printed) in reach[-1] else f"more was printed than the book shows: `{printed[max(reach[-1])]}`"


def run_chapter(path: pathlib.Path, programs: pathlib.Path, seconds_max: float) -> int:
    """Checks a chapter; returns the number of its commands."""
    text = path.read_text()
    check_links(path, text)
    if path != README:
        check_code(text)
    commands = commands_of(text)
    ended = typed(commands, path.parent / "files", programs, seconds_max) if commands else []
    for command, (printed, code) in zip(commands, ended):
        shown = "\n    ".join(printed) or "(nothing)"
        where = f"line {command.line}: `{command.text.splitlines()[0]}`"
        if code != command.exit_code:
            raise Wrong(f"{where} exited with code {code} instead of {command.exit_code} and printed\n    {shown}")
        if wrong := difference(printed, command.expected):
            raise Wrong(f"{where}: {wrong}; it printed\n    {shown}")
    if len(ended) < len(commands):
        missing = commands[len(ended)]
        raise Wrong(f"line {missing.line}: `{missing.text.splitlines()[0]}` did not end within {seconds_max:.0f} s, or ended the shell")
    return len(commands)


class Help:
    """Help text of a command: its first paragraph, usage and commands, and (heading, flag, meaning) of each flag."""

    def __init__(self, program: pathlib.Path, words: tuple):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL")}
        text = subprocess.run([program, *words, "--help-all"], check=True, stdout=subprocess.PIPE, text=True, env=kept).stdout
        about, _, rest = text.partition("\nUsage: ")
        self.about = " ".join(about.split("\n\n")[0].split()).rstrip(".")
        self.usage, _, rest = rest.partition("\n")
        self.commands, flags, heading = [], [], ""
        for line in rest.splitlines():
            if found := re.match(r"([A-Z].*):$", line):
                heading = found[1]
            elif heading == "Commands" and (found := re.match(r"  ([a-z][a-z-]*) ", line)) and found[1] != "help":
                self.commands.append(found[1])
            elif heading.startswith(("Commands", "Example")):
                continue
            elif found := re.match(r" {2,6}(-\S.*?|\[?<?[A-Z]\S*?)(?:  +(.*))?$", line):
                flags.append([heading, found[1], found[2] or ""])
            elif flags and line.startswith(" " * 8):
                flags[-1][2] += " " + line.strip()
        self.flags = [tuple(" ".join(part.split()) for part in flag) for flag in flags]


def table(flags: list) -> str:
    escaped = [[text.replace("|", "\\|") for text in flag] for flag in flags]
    rows = "".join(f"| `{flag}` | {meaning} |\n" for _, flag, meaning in escaped)
    return f"\n| flag | meaning |\n|---|---|\n{rows}" if rows else ""


def flags_chapter(program: pathlib.Path) -> str:
    """Returns the chapter of flags: those of at least three commands once, then those of each command."""
    helps, waiting = {}, [()]
    while waiting:
        words = waiting.pop(0)
        helps[words] = Help(program, words)
        # `submit` has the jobs of `run`.
        waiting += [(*words, command) for command in helps[words].commands if words != ("submit",)]
    uses = collections.Counter(flag for words, found in helps.items() for flag in found.flags if words)
    shared = [flag for flag, count in uses.items() if 3 <= count]
    parts = ["# Flags\n\n`scripts/book.py flags` writes this chapter from the help texts of the program.\n"]
    for heading in dict.fromkeys(flag[0] for flag in shared):
        parts.append(f"\n## {heading} (several commands)\n{table([flag for flag in shared if flag[0] == heading])}")
    for words, found in sorted(helps.items()):
        own = [flag for flag in found.flags if flag not in shared]
        if words and (own or not found.commands):
            parts.append(f"\n## gristmill {' '.join(words)}\n\n{found.about}.\n\n`{found.usage}`\n{table(own)}")
    return "".join(parts)


def run(chapters: list, target: pathlib.Path) -> int:
    known = [README.name, *chapters_of(BOOK)]
    chapters = [pathlib.Path(name).name for name in chapters]
    if unknown := set(chapters) - set(known):
        raise Wrong(f"no such chapter: {', '.join(sorted(unknown))}")
    failed, started = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gristmill-book-bin-") as programs:
        for program in PROGRAMS:
            (pathlib.Path(programs) / program).symlink_to((target / program).resolve())
        for name in chapters or known:
            try:
                if name == FLAGS.name and flags_chapter(target / "gristmill") != FLAGS.read_text():
                    raise Wrong("the help texts have changed; `scripts/book.py flags` writes this chapter")
                count = run_chapter(README if name == README.name else BOOK / name, pathlib.Path(programs), CHAPTER_SECONDS_MAX)
                print(f"{name}: {count} commands behave as shown", flush=True)
            except Wrong as wrong:
                print(f"{name}: {wrong}", flush=True)
                failed.append(name)
    print(f"{time.monotonic() - started:.0f} s; " + (f"wrong: {', '.join(failed)}" if failed else "every command behaves as shown"))
    return 1 if failed else 0


# Made-up chapters: a name, the chapter, and a part of the error; None if the chapter is correct.
MADE_UP = [
    ("right", "```console\n$ echo one; echo two\none\ntwo\n$ x=3\n$ echo $x in 12 ms\n3 in ... ms\n```", None),
    ("lines-between", "```console\n$ seq 9\n1\n...\n9\n```", None),
    ("continued", "```console\n$ cat <<END\n> a b\n> END\na b\n```", None),
    ("states-its-code", "```console exit=3\n$ (exit 3)\n```", None),
    ("links", "# One word, or two\n[here](#one-word-or-two) [away](https://example.org)", None),
    ("wrong-output", "```console\n$ echo one\ntwo\n```", "expected `two`, found `one`"),
    ("wrong-number", "```console\n$ echo 12 ms\n1... s\n```", "expected `1... s`"),
    ("too-little", "```console\n$ echo one\none\ntwo\n```", "expected `two`, found the end"),
    ("too-much", "```console\n$ seq 3\n1\n2\n```", "more was printed than the book shows: `3`"),
    ("fails", "```console\n$ ls /nowhere\n```", "exited with code 2 instead of 0"),
    ("does-not-fail", "```console exit=1\n$ true\n```", "exited with code 0 instead of 1"),
    ("no-such-program", "```console\n$ gristmil run\n```", "exited with code 127"),
    ("hangs", "```console\n$ sleep 60\n```", "did not end within"),
    ("ends-the-shell", "```console\n$ exit 0\n$ echo here\n```", "`exit 0` did not end"),
    ("no-reason", '```console not-run="slow"\n$ sleep 60\n```', "needs a reason"),
    ("hidden-command", "```sh\nrm -r /\n```", "belong in a block called console"),
    ("no-command", "```console\nhello\n```", "output before the first command"),
    ("other-code", "```rust file=examples/src/lib.rs\nfn main() {}\n```", "does not contain this code"),
    ("code-without-file", "```rust\nfn main() {}\n```", "is not compiled"),
    ("no-such-file", "[there](nowhere.md)", "link nowhere.md does not exist"),
    ("no-such-heading", "# One\n[there](#two)", "link #two does not exist"),
]


def self_test() -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gristmill-book-test-") as base:
        for name, chapter, expected in MADE_UP:
            path = pathlib.Path(base) / f"{name}.md"
            path.write_text(textwrap.dedent(chapter) + "\n")
            try:
                run_chapter(path, pathlib.Path(base), 2.0)
                error = None
            except Wrong as wrong:
                error = str(wrong)
            if error != expected and (error is None or expected is None or expected not in error):
                failed += 1
                print(f"FAIL  {name}: expected {expected!r}, got {error!r}")
    print("the check of the book is wrong" if failed else f"{len(MADE_UP)} made-up chapters are judged correctly")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("what", nargs="?", choices=["run", "flags"])
    parser.add_argument("chapter", nargs="*", help="files of docs/book; all if none is named")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug",
                        help="directory of the programs (default: %(default)s)")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.what is None:
        parser.error("run, flags or --self-test")
    try:
        if options.what == "flags":
            FLAGS.write_text(flags_chapter(options.programs / "gristmill"))
            return 0
        return run(options.chapter, options.programs)
    except Wrong as wrong:
        print(f"book.py: {wrong}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

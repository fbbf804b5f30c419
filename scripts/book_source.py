"""The book's chapters as its scripts read them: which there are, what their blocks of code hold, what a command must print."""
import pathlib
import re
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "book"
# A part of a line, or any number of whole lines, that differs from run to run.
ANY = "..."
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)(?P<rest>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r'([\w-]+)=("[^"]*"|\S+)')


class Wrong(Exception):
    """What is wrong with the book."""


@dataclass
class Command:
    """What is typed, and what must come of it."""

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
        """Those of a `console`: lines behind `$ `, gone on with behind `> `; all other lines are what they print."""
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
    """All blocks of code of a chapter."""
    blocks = []
    for found in FENCE.finditer(text):
        options = {name: value.strip('"') for name, value in OPTION.findall(found["rest"])}
        indent = len(found["indent"])
        body = "".join(line[indent:] + "\n" for line in found["body"].splitlines())
        blocks.append(Block(found["kind"], options, body, text.count("\n", 0, found.start()) + 1))
    return blocks


def chapters_of(book: pathlib.Path) -> list:
    """(title, file) of each chapter, in the order of SUMMARY.md; every chapter of the folder must be among them."""
    listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+\.md)\)$", (book / "SUMMARY.md").read_text(), re.MULTILINE)
    there = {path.name for path in book.glob("*.md")} - {"SUMMARY.md"}
    if there != {name for _, name in listed}:
        raise Wrong(f"SUMMARY.md and the folder differ: {sorted(there ^ {name for _, name in listed})}")
    return listed


def matches(line: str, wanted: str) -> bool:
    """Whether a printed line is what the book says, with `...` for any part of it."""
    pattern = ".*".join(re.escape(piece) for piece in wanted.rstrip().split(ANY))
    return re.fullmatch(pattern, line.rstrip()) is not None


def difference(printed: list, expected: list):
    """What is wrong with what a command printed, in words; nothing if it is what the book says.

    Where the book says nothing, anything may be printed.
    """
    if not expected:
        return None
    # reach[k] is how far the first k expected lines can have come: numbers of printed lines.
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
    return None if len(printed) in reach[-1] else f"more was printed than the book says: `{printed[max(reach[-1])]}`"

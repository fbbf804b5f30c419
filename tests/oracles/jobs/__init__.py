"""Shared by the parts of tests/oracles/differential.py: cases, their files, and expected results.

Each other file here is one job: its flags, how its cases are drawn, and its expected output.
"""
import bz2
import dataclasses
import gzip
import pathlib
import struct
import subprocess
import zlib

# Value of a flag without one.
ON = True

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclasses.dataclass
class File:
    """A file of a case. `packed` is the extension of its compressed form, or empty."""
    name: str
    data: bytes
    packed: str = ""
    hidden: bool = False  # its name does not say that it is compressed
    marked: bool = False  # a byte order mark is before the data

    def path(self) -> str:
        return f"{self.name}.{self.packed}" if self.packed and not self.hidden else self.name

    def stored(self) -> bytes:
        data = BYTE_ORDER_MARK + self.data if self.marked else self.data
        half = len(data) // 2
        if self.packed == "gz":  # two members
            return b"".join(gzip.compress(piece, 1, mtime=0) for piece in (data[:half], data[half:]))
        if self.packed == "zst":  # two frames
            return zstd_frame(data[:half]) + zstd_frame(data[half:])
        return bz2.compress(data, 1) if self.packed == "bz2" else data


def zstd_frame(data: bytes) -> bytes:
    """Returns a frame of uncompressed blocks: enough for a reader of frames, without a program."""
    blocks = [data[at:at + (1 << 16)] for at in range(0, len(data), 1 << 16)] or [b""]
    heads = [struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] for number, block in enumerate(blocks)]
    frame = b"".join(head + block for head, block in zip(heads, blocks))
    return b"\x28\xb5\x2f\xfd" + struct.pack("<BI", 0b1010_0000, len(data)) + frame


@dataclasses.dataclass
class Case:
    """One run of the program, as plain data, so that it can be shrunk."""
    job: str
    options: dict          # the job's own flags
    inputs: dict           # typed paths, by role ("" for inputs without a flag)
    files: list
    general: dict          # flags that all jobs have
    cluster: dict | None   # flags of `run`; None: on the shared cluster
    output: str            # "print", "parts" or "detach"
    pattern: object = None # grep: the tree of the pattern
    closed: str = ""       # a shell redirection that closes a stream of the program

    def read(self, role: str) -> list:
        """Returns the name and contents of each nonempty file of an input, in the order of the input."""
        found = []
        for typed in self.inputs[role]:
            of_file = [file for file in self.files if file.path() == typed]
            inside = [file for file in self.files if file.path().startswith(typed + "/")]
            inside.sort(key=lambda file: file.path().encode("utf-8", "surrogateescape"))
            if not of_file and not inside:
                raise Invalid(f"there is no {typed}")
            for file in of_file or inside:
                if not file.path().rsplit("/", 1)[-1].startswith(("_", ".")) or of_file:
                    if file.stored():
                        found.append((file.path(), file.data))
        return found


class Invalid(Exception):
    """An invalid case, as can happen while a case is shrunk."""


class Dispute(Exception):
    """Two oracles give different results."""


@dataclasses.dataclass
class Refused:
    """The program must end with this code and no output. If two things are wrong, either may be found first."""
    code: int
    reason: str
    other_code: int | None = None


class Exactly:
    """All parts concatenated are these bytes."""

    def __init__(self, whole: bytes):
        self.whole = whole

    def difference(self, parts: list, _borders: bool) -> str | None:
        return first_difference(b"".join(parts), self.whole)


def first_difference(found: bytes, expected: bytes) -> str | None:
    if found == expected:
        return None
    ours, theirs = found.split(b"\n"), expected.split(b"\n")
    at = next((at for at, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    show = lambda lines: repr(lines[at])[:200] if at < len(lines) else "the end"
    return (f"{len(ours) - 1} lines of {len(found)} bytes, expected {len(theirs) - 1} of {len(expected)}; "
            f"line {at + 1} is {show(ours)}, expected {show(theirs)}")


def lines_of(data: bytes) -> list:
    """Returns lines without their line feed; the last one may lack it."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def too_long(case: Case, role: str, length_max: int | None) -> bool:
    """Returns true if a line is longer than --max-record allows."""
    return length_max is not None and any(
        length_max < len(line) for _, data in case.read(role) for line in lines_of(data))


def record_max(case: Case) -> int | None:
    return int(case.general["--max-record"]) if "--max-record" in case.general else None


def run(command: list, directory: pathlib.Path, stdin: bytes = b"", codes=(0,)) -> bytes:
    """Returns the output of an oracle."""
    done = subprocess.run(command, cwd=directory, input=stdin, capture_output=True, env=C_LOCALE)
    if done.returncode not in codes:
        raise Dispute(f"{command[0]} ended with code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


C_LOCALE = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin", "RIPGREP_CONFIG_PATH": ""}

# Names that a shell, a sort or a parser may handle wrongly.
NAMES = ["a", "b", "Z", "a b", "ä", "x'y", "-v", "new\nline", "tab\there", "c:d", "é%41", "$HOME", "*", "\\n"]


def draw_files(draw, contents: list, of_text: bool = True, mark: bool = True) -> tuple:
    """Draws files of these contents, and the paths by which an input names them. Files that are not `of_text` are known only by
    their names.
    """
    names = draw.sample(NAMES, len(contents)) if draw.random() < 0.3 else [f"f{n}" for n in range(len(contents))]
    in_directory = 0.15 > draw.random()
    files = []
    for name, data in zip(names, contents):
        packed = draw.choice(["gz", "zst", "bz2"]) if draw.random() < 0.15 else ""
        hidden, marked = of_text and draw.random() < 0.5, of_text and mark and draw.random() < 0.08
        # A file name that starts with - is not a flag: inputs are typed after --, values of flags are not.
        name = f"in/{name}" if in_directory else f"./{name}" if name.startswith("-") else name
        files.append(File(name, data, packed, hidden, marked))
    if in_directory:
        # Neither belongs to the input.
        files += [File("in/_SUCCESS", b"hidden,1\n"), File("in/.part", b"hidden,2\n")]
        return files, ["in"]
    paths = [file.path() for file in files]
    if draw.random() < 0.05:
        paths.append(draw.choice(paths))  # named twice, read twice
    return files, paths


def checksum(data: bytes) -> int:
    return zlib.crc32(data)

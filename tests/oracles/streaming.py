#!/usr/bin/env python3
"""Gives random jobs of Hadoop Streaming to the program, and computes the expected output from Hadoop's documented rules.

usage: tests/oracles/streaming.py [--program target/debug/gristmill] [--seconds 30] [--seed N]
       tests/oracles/streaming.py --seed N --case M     one case again

A case draws lines (bytes of any kind, empty ones, ends by LF, CR and CRLF, files without an end), how they reach the mapper,
the mapper, fields and separators of keys, the partitioner, the comparator, the number of reduces and the reducer. The rules
are implemented here again, from their description alone: where lines end, where they are split into key and value, the hash
of each partitioner, the order of each comparator, the format of the output. The same commands run here, on all lines at once.
Values of one key have no guaranteed order, and so are compared as a multiset; everything else is compared byte by byte.

Ends with code 1 at the first difference; its files are kept and its command is printed.
"""
import argparse
import collections
import dataclasses
import functools
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB_SECONDS_MAX = 60
MAPPERS = {
    "cat": ["cat"],
    "awk": ["awk", "{ print $0 }"],
    "fields": ["awk", "-F.", "{ print $2 \".\" $1 \"\\t\" NF }"],
    "sed": ["sed", "s/a/bb/"],
    "twice": ["sed", "p"],
    "identity": None,
}


@dataclasses.dataclass
class Spec:
    """One `-k` of a comparator or partitioner."""
    begin: int
    begin_character: int
    end: int
    end_character: int
    numeric: bool
    reverse: bool

    def text(self) -> str:
        end = ""
        if self.end:
            end = f",{self.end}" + (f".{self.end_character}" if self.end_character else "")
        flags = ("n" if self.numeric else "") + ("r" if self.reverse else "")
        begin = f".{self.begin_character}" if self.begin_character != 1 else ""
        return f"-k{self.begin}{begin}{end}{flags}"


@dataclasses.dataclass
class Case:
    files: list
    input_format: str
    mapper: str
    reducer: str
    reduces: int
    map_separator: bytes
    key_fields: int
    reduce_separator: bytes
    reduce_fields: int
    output_separator: bytes
    key_separator: bytes
    partition: list  # None: by hash; a list: by fields of keys
    order: list  # None: by bytes
    maps: int
    old_names: bool


def draw_specs(draw: random.Random, numeric: bool) -> list:
    specs = []
    for _ in range(draw.randint(1, 2)):
        begin = draw.randint(1, 3)
        end = draw.choice([0, begin, begin + 1])
        specs.append(Spec(begin, draw.choice([1, 1, 1, 2]), end, draw.choice([0, 0, 2, 3]) if end else 0,
                          numeric and draw.random() < 0.5, numeric and draw.random() < 0.3))
    return specs


def draw_case(draw: random.Random) -> Case:
    numeric_words = [b"0", b"7", b"-7", b"10", b"007", b"1.5", b"-12.25", b"3.", b"123456789012345678"]
    pieces = [b"a", b"b", b"ab", b"\xff", b"\xc3\xa9", b"\xc3", b"\x80\x00", b" ", b"\t", b"\t", b".", b".", b"::", b",", b"zz"] + numeric_words
    ends = draw.choice([[b"\n"], [b"\n"], [b"\n", b"\r\n"], [b"\n", b"\r", b"\r\n"]])
    files = []
    for _ in range(draw.randint(1, 3)):
        text = b""
        for _ in range(draw.choice([0, 1, 3, 30, 200])):
            text += b"".join(draw.choice(pieces) for _ in range(draw.randint(0, 6))) + draw.choice(ends)
        files.append(text[:-1] if text and draw.random() < 0.3 else text)
    separators = [b"\t", b"\t", b".", b"::", b","]
    order = draw_specs(draw, True) if draw.random() < 0.3 else None
    return Case(
        files=files,
        input_format=draw.choice(["text", "text", "text", "pairs", "numbered"]),
        mapper=draw.choice(sorted(MAPPERS)),
        reducer=draw.choice(["cat", "cat", "awk", "identity"]),
        reduces=draw.choice([0, 1, 1, 2, 3, 7]),
        map_separator=draw.choice(separators),
        key_fields=draw.choice([1, 1, 2, 3]),
        reduce_separator=draw.choice(separators),
        reduce_fields=draw.choice([1, 1, 2]),
        output_separator=draw.choice([b"\t", b"\t", b"|", b"--"]),
        key_separator=draw.choice(separators),
        partition=draw.choice([None, None, draw_specs(draw, False), []]),
        order=order,
        maps=draw.choice([1, 2, 5]),
        old_names=draw.random() < 0.5,
    )


# The rules.


def lines_of(text: bytes) -> list:
    """Splits lines at LF, CR or CRLF; the last may have no end."""
    lines = re.split(rb"\r\n|\n|\r", text)
    return lines[:-1] if lines[-1] == b"" else lines


def split_line(line: bytes, separator: bytes, fields: int):
    """Returns key and value, split at the separator that ends the last field of the key."""
    at = -len(separator)
    for _ in range(fields):
        at = line.find(separator, at + len(separator))
        if at < 0:
            return line, b""
    return line[:at], line[at + len(separator):]


def hash_of(numbers, begin: int) -> int:
    value = begin
    for number in numbers:
        value = (31 * value + number) & 0xFFFFFFFF
    return value


def signed(data: bytes):
    return [byte - 256 if byte > 127 else byte for byte in data]


def lengths_of_fields(key: bytes, separator: bytes) -> list:
    """Returns the lengths of fields. After a separator of several bytes, the search continues one byte after its start."""
    lengths, start = [], 0
    while (at := key.find(separator, start)) >= 0:
        lengths.append(at - start)
        start = at + 1
    return lengths + [len(key) - start]


def part_of_key(spec: Spec, key: bytes, separator: bytes):
    """Returns the bytes that a `-k` names; None if the key has no such field."""
    lengths = lengths_of_fields(key, separator)

    def before(field):
        return sum(lengths[:field - 1]) + len(separator) * min(field - 1, len(lengths))
    if len(lengths) < spec.begin or len(key) < before(spec.begin) + spec.begin_character:
        return None
    begin = before(spec.begin) + spec.begin_character - 1
    if spec.end == 0 or len(lengths) < spec.end:
        end = len(key)
    else:
        end = min(before(spec.end) + (spec.end_character or lengths[spec.end - 1]), len(key))
    return key[begin:max(begin, end)]


def partition(case: Case, key: bytes) -> int:
    if case.partition is None:
        value = hash_of(signed(key), 1)
    elif not case.partition:
        # String.hashCode, of UTF-16.
        units = key.decode("utf-8", "replace").encode("utf-16-be")
        value = hash_of([units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)], 0)
    elif not key:
        return 0
    else:
        text = key.decode("utf-8", "replace").encode()
        value = 0
        for spec in case.partition:
            part = part_of_key(spec, text, case.key_separator)
            value = hash_of(signed(part), value) if part is not None else value
    return (value & 0x7FFFFFFF) % case.reduces


def number(text: bytes) -> Decimal:
    """Parses a sign, digits, a point, digits; the rest is ignored."""
    match = re.match(rb"-?\d*(\.\d*)?", text)[0]
    return Decimal(match.decode()) if re.search(rb"\d", match) else Decimal(0)


def compare(case: Case, one: bytes, other: bytes) -> int:
    if case.order is None:
        return (one > other) - (one < other)
    for spec in case.order:
        first, second = (part_of_key(spec, key, case.key_separator) for key in (one, other))
        if first is None or second is None:
            result = (first is not None) - (second is not None)
        elif spec.numeric:
            result = (number(first) > number(second)) - (number(first) < number(second))
        else:
            result = (first > second) - (first < second)
        if result:
            return -result if spec.reverse else result
    return 0


def run_command(words: list, text: bytes) -> bytes:
    return subprocess.run(words, input=text, capture_output=True, check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}).stdout


def mapped(case: Case) -> list:
    """Returns pairs of all maps, in the order of the input."""
    pairs = []
    for text in case.files:
        # A byte order mark is not in any drawn piece; offsets are in bytes.
        offset = 0
        for line in lines_of(text):
            begin = offset
            offset = begin + len(line) + (2 if text[begin + len(line):begin + len(line) + 2] == b"\r\n" else 1)
            pairs.append(split_line(line, b"\t", 1) if case.input_format == "pairs" else (str(begin).encode(), line))
    words = MAPPERS[case.mapper]
    if words is None:
        return pairs
    hides_key = case.input_format == "text"
    fed = b"".join((value if hides_key else key + b"\t" + value) + b"\n" for key, value in pairs)
    return [split_line(line, case.map_separator, case.key_fields) for line in lines_of(run_command(words, fed))]


def written(case: Case, key: bytes, value: bytes) -> bytes:
    """Returns a pair of the reducer's input as a line of the output."""
    if case.reducer != "identity":
        key, value = split_line(key + b"\t" + value, case.reduce_separator, case.reduce_fields)
    return key + case.output_separator + value + b"\n"


def wrong_with(case: Case, parts: list):
    """Returns the error in the parts that the program wrote; None if there is none."""
    pairs = mapped(case)
    if case.reduces == 0:
        expected = b"".join(key + case.output_separator + value + b"\n" for key, value in pairs)
        found = b"".join(parts)
        return None if found == expected else f"maps wrote {found[:300]!r}..., expected {expected[:300]!r}..."
    if len(parts) != case.reduces:
        return f"{len(parts)} parts, expected {case.reduces}"
    by_part = collections.defaultdict(list)
    for key, value in pairs:
        by_part[partition(case, key)].append((key, value))
    for index, part in enumerate(parts):
        wrong = wrong_with_part(case, by_part[index], part)
        if wrong:
            return f"part {index}: {wrong}"
    return None


def wrong_with_part(case: Case, pairs: list, part: bytes):
    order = functools.cmp_to_key(lambda one, other: compare(case, one[0], other[0]))
    pairs = sorted(pairs, key=order)
    groups = []
    for pair in pairs:
        if groups and compare(case, groups[-1][0][0], pair[0]) == 0:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    rest = part
    for group in groups:
        # All values come with the first key of their group; which key that is is not guaranteed.
        candidates = {}
        for first in {key for key, _ in group}:
            candidates[first] = collections.Counter(written(case, first, value) for _, value in group)
        matched = None
        for lines in candidates.values():
            length = sum(len(line) * count for line, count in lines.items())
            if collections.Counter(cut(rest[:length])) == joined(lines):
                matched = length
                break
        if matched is None:
            return f"at {rest[:200]!r} expected one of {[dict(lines) for lines in list(candidates.values())[:2]]!r}"
        rest = rest[matched:]
    return f"{rest[:200]!r} is too much" if rest else None


def cut(text: bytes) -> list:
    return text.split(b"\n")[:-1] if text.endswith(b"\n") or not text else [b"no end"]


def joined(lines) -> collections.Counter:
    return collections.Counter({line[:-1]: count for line, count in lines.items()})


# The program.


def command_of(case: Case, base: pathlib.Path) -> list:
    def name(old, new):
        return old if case.old_names else new

    def text(data: bytes) -> str:
        return data.decode()
    properties = [
        ("stream.map.output.field.separator", text(case.map_separator)),
        ("stream.num.map.output.key.fields", case.key_fields),
        ("stream.reduce.output.field.separator", text(case.reduce_separator)),
        (name("stream.num.reduce.output.fields", "stream.num.reduce.output.key.fields"), case.reduce_fields),
        (name("mapred.textoutputformat.separator", "mapreduce.output.textoutputformat.separator"), text(case.output_separator)),
        (name("map.output.key.field.separator", "mapreduce.map.output.key.field.separator"), text(case.key_separator)),
        (name("mapred.map.tasks", "mapreduce.job.maps"), case.maps),
        (name("mapred.reduce.tasks", "mapreduce.job.reduces"), case.reduces),
    ]
    words = []
    if case.partition is not None:
        words += ["-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"]
        options = " ".join(spec.text() for spec in case.partition)
        properties.append((name("mapred.text.key.partitioner.options", "mapreduce.partition.keypartitioner.options"), options))
    if case.order is not None:
        properties.append((name("mapred.output.key.comparator.class", "mapreduce.job.output.key.comparator.class"),
                           "org.apache.hadoop.mapred.lib.KeyFieldBasedComparator"))
        options = " ".join(spec.text() for spec in case.order)
        properties.append((name("mapred.text.key.comparator.options", "mapreduce.partition.keycomparator.options"), options))
    if case.input_format != "text":
        words += ["-inputformat", {"pairs": "KeyValueTextInputFormat", "numbered": "NLineInputFormat"}[case.input_format]]
        properties.append((name("mapred.line.input.format.linespermap", "mapreduce.input.lineinputformat.linespermap"), 50))
    mapper = MAPPERS[case.mapper]
    words += ["-mapper", shlex.join(mapper) if mapper else "IdentityMapper"]
    if case.reduces:
        words += ["-reducer", {"cat": "cat", "awk": "awk '{ print $0 }'", "identity": "IdentityReducer"}[case.reducer]]
    generic = [word for key, value in properties for word in ("-D", f"{key}={value}")]
    inputs = ["-input", str(base / "in")]
    return [*generic, *inputs, "-output", str(base / "out"), "-cmdenv", "LC_ALL=C", *words]


def run_case(program: pathlib.Path, case: Case, base: pathlib.Path):
    """Returns the parts that the program writes."""
    (base / "in").mkdir(parents=True)
    for index, text in enumerate(case.files):
        (base / "in" / f"file-{index}").write_bytes(text)
    words = [program, "streaming", "--workers", "1", "--slots", "2", "--no-sync", *command_of(case, base)]
    try:
        finished = subprocess.run(words, capture_output=True, timeout=JOB_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return words, None, f"did not end within {JOB_SECONDS_MAX} s"
    if finished.returncode:
        return words, None, f"ended with code {finished.returncode}: {finished.stderr.decode(errors='replace')[-1500:]}"
    return words, [path.read_bytes() for path in sorted((base / "out").glob("part-*"))], None


def seeded(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed}/{number}")


def run(options) -> int:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    ends, done = time.monotonic() + options.seconds, 0
    numbers = [options.case] if options.case is not None else iter(range(1 << 30))
    for number_of_case in numbers:
        if options.case is None and ends < time.monotonic():
            break
        case = draw_case(seeded(seed, number_of_case))
        base = pathlib.Path(tempfile.mkdtemp(prefix="gristmill-streaming-"))
        words, parts, wrong = run_case(options.program, case, base)
        wrong = wrong or wrong_with(case, parts)
        if wrong:
            print(f"case {number_of_case} of seed {seed}: {wrong}\n{dataclasses.replace(case, files=[])}\n{shlex.join(map(str, words))}", flush=True)
            return 1
        shutil.rmtree(base)
        done += 1
    print(f"{done} jobs answer as Hadoop's rules do")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--program", type=pathlib.Path, default=target / "debug" / "gristmill")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--case", type=int)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

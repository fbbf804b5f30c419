"""sort: every combination of flags, against a plain sort in python and `LC_ALL=C sort`.

Not compared with coreutils: records of fixed length, which it does not support, and keys by bytes of lines that contain the
separator byte (a key of coreutils ends at the end of a field, ours at the end of the record).
"""
import functools
import itertools
import re

from . import Case, Dispute, Exactly, ON, Refused, draw_files, lines_of, record_max, run

FLAGS = ["--record-length", "--key-bytes", "--field", "--delimiter", "--numeric", "--reverse", "--unique", "--stable"]
SHORT = {"--reverse": "-r", "--unique": "-u"}

KEYS = ["whole", "key-bytes", "field", "field-delimiter", "record-length", "record-length-key-bytes"]


def combinations() -> list:
    return list(itertools.product(KEYS, *[[False, True]] * 4))


def draw_line(draw, style: str) -> bytes:
    if style == "numbers":
        sign, dot = draw.choice(["", "", "-", "+", " ", "\t-", "--"]), draw.choice(["", "", ".", ".0", ".50", ".05"])
        digits = draw.choice(["", "0", "00", str(draw.randrange(12)), str(draw.randrange(10**9)), "9" * draw.randrange(300)])
        return (sign + digits + dot + draw.choice(["", "", "kg", "e5", " 1", "\t2"])).encode()
    if style == "few":
        return bytes(draw.choices(b"ab\t,0", k=draw.randrange(4)))
    if style == "bytes":
        return bytes(draw.choices(b"ab\t,0123-.\0\xff \r\x01", k=draw.randrange(12)))
    return bytes(draw.choices(range(97, 123), k=draw.randrange(30))) + b"\t" + str(draw.randrange(50)).encode()


def draw(random, combination, big: bool = False) -> Case:
    key, numeric, reverse, unique, stable = combination
    options = {}
    length = random.choice([1, 2, 3, 7, 10])
    if "record-length" in key:
        options["--record-length"] = str(length)
    if "key-bytes" in key:
        start = random.randrange(6)
        options["--key-bytes"] = f"{start}.." + random.choice(["", str(start + random.randint(1, 5))])
    if "field" in key:
        options["--field"] = str(random.randint(1, 3))
    if key == "field-delimiter":
        options["--delimiter"] = random.choice([",", "a", "0", " ", "-", "\\t"])
    for flag, on in (("--numeric", numeric), ("--reverse", reverse), ("--unique", unique), ("--stable", stable)):
        if on:
            options[flag] = ON
    contents = []
    style = random.choice(["numbers", "few", "bytes", "words"])
    for _ in range(random.choice([1, 1, 2, 3, 6])):
        count = random.choice([4000, 20_000]) if big else random.choice([0, 1, 3, 20, 100])
        if "record-length" in key:
            contents.append(bytes(random.choices(b"ab0\n\0\xff,9", k=count * length + (random.random() < 0.01))))
        else:
            lines = [draw_line(random, style) for _ in range(count)]
            contents.append(b"\n".join(lines) + (b"\n" if lines and random.random() < 0.7 else b""))
    files, paths = draw_files(random, contents, of_text="record-length" not in key)
    return Case("sort", options, {"": paths}, files, {}, None, "print")


def number(text: bytes) -> tuple:
    """Returns a decimal number of any length as a value that compares exactly."""
    negative, whole, fraction = re.match(rb"[ \t]*(-?)([0-9]*)(?:\.([0-9]*))?", text).groups()
    whole, fraction = whole.lstrip(b"0"), (fraction or b"").rstrip(b"0")
    if not whole and not fraction:
        return (0, 0, b"", b"")
    if negative:
        turned = bytes.maketrans(b"0123456789", b"9876543210")
        # Of negative fractions the shorter one is larger: a sentinel above all digits ends them.
        return (-1, -len(whole), whole.translate(turned), fraction.translate(turned) + b"~")
    return (1, len(whole), whole, fraction)


def expected(case: Case, directory):
    options, length = case.options, int(case.options.get("--record-length", 0))
    lines = []
    for name, data in case.read(""):
        if length and len(data) % length:
            return Refused(4, f"{name} is no whole number of records")
        lines += [data[at:at + length] for at in range(0, len(data), length)] if length else lines_of(data)
    if not length and any(record_max(case) is not None and record_max(case) < len(line) for line in lines):
        return Refused(4, "a line is longer than --max-record")
    delimiter = options.get("--delimiter", "\\t").replace("\\t", "\t").encode()

    def part(line: bytes) -> bytes:
        if "--key-bytes" in options:
            start, _, end = options["--key-bytes"].partition("..")
            return line[int(start):int(end) if end else None]
        if "--field" in options:
            fields = line.split(delimiter)
            return fields[int(options["--field"]) - 1] if int(options["--field"]) <= len(fields) else b""
        return line

    key = (lambda line: number(part(line))) if "--numeric" in options else part
    reverse, by_input = "--reverse" in options, "--stable" in options or "--unique" in options
    # `reverse=True` keeps the order of equal elements, as the program does.
    ordered = sorted(lines, key=key if by_input else (lambda line: (key(line), line)), reverse=reverse)
    if "--unique" in options:
        ordered = [line for at, line in enumerate(ordered) if not at or key(line) != key(ordered[at - 1])]
    whole = b"".join(line + (b"" if length else b"\n") for line in ordered)
    if not length and len(lines) < 5000:
        compare_with_coreutils(case, lines, whole, delimiter, directory)
    return Exactly(whole)


def compare_with_coreutils(case: Case, lines: list, whole: bytes, delimiter: bytes, directory) -> None:
    options = case.options
    command = ["sort"] + [short for flag, short in
                          (("--reverse", "-r"), ("--unique", "-u"), ("--stable", "-s"), ("--numeric", "-n")) if flag in options]
    if "--field" in options:
        command += ["-t", delimiter.decode(), "-k", f"{options['--field']},{options['--field']}"]
    if "--key-bytes" in options:
        if any(b"\x02" in line for line in lines):
            return
        start, _, end = options["--key-bytes"].partition("..")
        command += ["-t", "\x02", "-k", f"1.{int(start) + 1}" + (f",1.{end}" if end else "")]
    found = run(command, directory, b"".join(line + b"\n" for line in lines))
    if found != whole:
        raise Dispute(f"{command}: {Exactly(whole).difference([found], False)}")

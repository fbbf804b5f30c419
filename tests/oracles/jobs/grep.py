r"""grep: random patterns with every operator, against ripgrep and against python, line by line.

A pattern is a tree, written once as the program and ripgrep read it and once as python's `re` does, so that no dialect is
guessed. Nodes:
    ("lit", ours, python, bytes_only)   a character, or None for python where it has no such thing
    ("class", ours, python)             a set of characters
    ("look", ours, python, kind)        an assertion
    ("cat", nodes), ("alt", nodes), ("group", kind, node), ("rep", node, least, most, lazy), ("flags", on, off, node)

Not compared with ripgrep (13), because it differs by design:
  - `\A`, `\z` and anchors that are not of lines (`(?-m:^)`): it searches whole buffers, so they mean the file; ours the line;
  - `(?R)`, `\b{start}` and similar: its regex crate is too old to know them (`(?<name>` is written
    `(?P<name>` for it);
  - `(?x)` around a pattern with blanks is the same in both, and compared;
  - word boundaries on text that is not all ASCII: its old crate does not match `\b` after `é` if a search starts there, and
    matches `\B` next to a byte that is not UTF-8;
  - the pieces (-o, --count-matches) of patterns with word boundaries: of `A*` it treats `\b[^a]` as one match, where python
    and GNU grep find the second, which starts at the end of the first;
  - empty matches of -o: it prints empty lines, or the whole line if there are no others; its pieces are taken from --json,
    without the empty ones;
  - the counts of -c: it prints nothing for files without a match, ours prints 0 for a single file.
Not compared with python:
  - parts without Unicode (`(?-u:...)`) inside a pattern with it: it has none;
  - word boundaries on text with a stray continuation byte of UTF-8: the regex crate looks past it, back to the character
    before (`k\xa9|` has a boundary where the bar is). The old one of ripgrep does not, so neither is compared.
Not compared at all are the pieces (-o, --count-matches) of patterns that repeat something that can match nothing, such as
`(?:|a){2,}`. Engines with backtracking, engines without, and the old crate of ripgrep choose different matches. The set of
matching lines is the same, and is compared.
Python reads bytes that are not UTF-8 as surrogates, which no class here contains; `\B` and the half boundaries never match
next to one.
"""
import base64
import collections
import itertools
import json
import re
import shutil

from . import C_LOCALE, Case, Dispute, Exactly, ON, Refused, draw_files, lines_of, record_max, run, too_long

FLAGS = ["--ignore-case", "--invert-match", "--only-matching", "--fixed-strings", "--count", "--count-matches"]
SHORT = {"--ignore-case": "-i", "--invert-match": "-v", "--only-matching": "-o", "--fixed-strings": "-F", "--count": "-c"}

RIPGREP = shutil.which("rg", path=C_LOCALE["PATH"])

RAW = r"\udc80-\udcff"  # bytes that are not UTF-8, as python reads them
LITERALS = [("a", "a"), ("b", "b"), ("A", "A"), ("B", "B"), ("c", "c"), ("0", "0"), ("_", "_"), (" ", " "), (r"\x20", " "), ("-", "-"),
            (r"\.", r"\."), ("é", "é"), ("É", "É"), (r"\x{e9}", "é"), (r"\u00e9", "é"), (r"\t", r"\t"), (r"\r", r"\r"),
            (r"\x00", r"\x00"), (r"\x41", "A"), ("ß", "ß"), ("ſ", "ſ"), (r"\*", r"\*"), ("k", "k")]
CLASSES = [(".", f"[^\\n{RAW}]"), (r"\s", r"\s"), (r"\S", f"[^\\s{RAW}]"), (r"\w", r"\w"), (r"\W", f"[^\\w{RAW}]"), (r"\d", r"\d"),
           (r"\D", f"[^\\d{RAW}]"), ("[ab]", "[ab]"), ("[^a]", f"[^a\\n{RAW}]"), ("[a-c]", "[a-c]"), ("[^a-b_]", f"[^a-b_\\n{RAW}]"),
           ("[a-c&&[^b]]", "[ac]"), ("[a-c--b]", "[ac]"), ("[a-c~~b-d]", "[ad]"), ("[[:alpha:]]", "[a-zA-Z]"),
           ("[[:^alpha:]]", f"[^a-zA-Z\\n{RAW}]"), ("[[:space:]]", r"[ \t\n\r\x0b\x0c]"), (r"[\w.]", r"[\w.]"),
           (r"[^\w]", f"[^\\w\\n{RAW}]"), ("[é]", "[é]"), ("[^é]", f"[^é\\n{RAW}]"), (r"[\x00-\x20]", r"[\x00-\x20]"),
           (r"\p{L}", r"[^\W\d_]"), (r"\p{Lu}", "[A-ZÉẞ]"), (r"\P{L}", f"[^a-zA-ZéÉßſ\\n{RAW}]"), (r"\pN", r"\d"), ("[]a]", r"[\]a]"), ("[a-]", r"[a\-]")]
DOTALL = ("(?s:.)", f"[^\\n{RAW}]")
LOOKS = [("^", "^", "line"), ("$", r"\Z", "line"), (r"\b", r"\b", "word"), (r"\B", f"(?:(?<![{RAW}])(?![{RAW}])(?!\\b))", "half"), (r"\A", r"\A", "file"),
         (r"\z", r"\Z", "file"), ("(?-m:^)", r"\A", "file"), ("(?-m:$)", r"\Z", "file"), ("(?R:^)", r"(?:\A|(?<=\r))", "new"),
         ("(?R:$)", r"(?:\Z|(?=\r))", "new"), (r"\b{start}", r"(?:(?<!\w)(?=\w))", "new"), (r"\b{end}", r"(?:(?<=\w)(?!\w))", "new"),
         (r"\b{start-half}", f"(?<![\\w{RAW}])", "new half"), (r"\b{end-half}", f"(?![\\w{RAW}])", "new half"), ("()", "()", "line"),
         ("(?:)", "(?:)", "line")]
# In patterns that are all without Unicode: python reads them as bytes.
BYTE_LITERALS = [("a", "a"), ("b", "b"), ("A", "A"), ("0", "0"), ("_", "_"), (" ", " "), (r"\xFF", r"\xff"), (r"\xC3", r"\xc3"),
                 (r"\xA9", r"\xa9"), (r"\r", r"\r"), (r"\x00", r"\x00")]
BYTE_CLASSES = [(".", r"[^\n]"), (r"\s", r"\s"), (r"\S", r"[^\s]"), (r"\w", r"\w"), (r"\W", r"[^\w\n]"), (r"\d", r"\d"), (r"\D", r"[^\d\n]"),
                ("[ab]", "[ab]"), ("[^a]", r"[^a\n]"), (r"[^\xC3]", r"[^\xc3\n]"), (r"[\x80-\xFF]", r"[\x80-\xff]"), ("(?s:.)", r"[^\n]")]

BYTE_LOOKS = [(text, {r"\B": r"(?!\b)", r"\b{start-half}": r"(?<!\w)", r"\b{end-half}": r"(?!\w)"}.get(text, twin), kind)
              for text, twin, kind in LOOKS]

MODES = ["lines", "lines -v", "only", "count", "count -v", "count-matches"]


def combinations() -> list:
    return list(itertools.product(MODES, [False, True], [False, True]))


def draw_tree(draw, depth: int, of_bytes: bool):
    if depth == 0 or draw.random() < 0.25:
        kind = draw.random()
        if kind < 0.45:
            return ("lit", *draw.choice(BYTE_LITERALS if of_bytes else LITERALS))
        if kind < 0.75:
            if not of_bytes and draw.random() < 0.08:
                # Without Unicode inside a pattern with it.
                return ("class", draw.choice(["(?-u:.)", r"(?-u:\xC3)", r"(?-u:\w)", r"(?-u:[^a])", r"(?-u:\b)", r"(?-u:\B)"]), None)
            return ("class", *draw.choice(BYTE_CLASSES if of_bytes else [*CLASSES, DOTALL]))
        return ("look", *draw.choice(BYTE_LOOKS if of_bytes else LOOKS))
    kind = draw.random()
    below = lambda: draw_tree(draw, depth - 1, of_bytes)
    if kind < 0.35:
        return ("cat", [below() for _ in range(draw.randint(1, 4))])
    if kind < 0.5:
        return ("alt", [below() if draw.random() < 0.9 else ("cat", []) for _ in range(draw.randint(2, 3))])
    if kind < 0.85:
        least, most = draw.choice([(0, 1), (0, None), (1, None), (2, 2), (0, 2), (1, 3), (2, None), (0, 0), (1, 1)])
        return ("rep", below(), least, most, draw.random() < 0.3)
    if kind < 0.93:
        return ("group", draw.choice(["(", "(?:", "(?P<n>", "(?<n>"]), below())
    on, off = draw.choice([("i", ""), ("", "i"), ("s", ""), ("U", ""), ("i", "s"), ("x", "")])
    return ("flags", on, off, below())


def ours(node, blank: bool = False) -> str:
    kind = node[0]
    if kind == "lit" and blank and node[1] == " ":
        return r"\x20"  # under (?x) a blank means nothing
    if kind in ("lit", "class", "look"):
        return node[1]
    if kind == "cat":
        return (" " if blank else "").join(wrapped(part, blank) if part[0] == "alt" else ours(part, blank) for part in node[1])
    if kind == "alt":
        return "|".join(ours(part, blank) for part in node[1])
    if kind == "group":
        return node[1] + ours(node[2], blank) + ")"
    if kind == "flags":
        blank = blank or "x" in node[1]
        return f"(?{node[1]}{'-' + node[2] if node[2] else ''}:{ours(node[3], blank)})"
    _, inside, least, most, lazy = node
    return wrapped(inside, blank) + repeat(least, most) + ("?" if lazy else "")


def wrapped(node, blank: bool) -> str:
    text = ours(node, blank)
    return text if node[0] in ("lit", "class") else f"(?:{text})"


def repeat(least: int, most) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
    return short or (f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}")


def python(node, swapped: bool = False) -> str | None:
    """Returns the same pattern for `re`; None if it does not support it."""
    kind = node[0]
    if kind in ("lit", "class", "look"):
        return node[2]
    if kind in ("cat", "alt"):
        parts = [python(part, swapped) for part in node[1]]
        if None in parts:
            return None
        return "".join(f"(?:{part})" for part in parts) if kind == "cat" else f"(?:{'|'.join(parts)})"
    if kind == "group":
        inside = python(node[2], swapped)
        return None if inside is None else f"(?:{inside})"
    if kind == "flags":
        inside = python(node[3], swapped != ("U" in node[1]))
        if inside is None:
            return None
        return f"(?i:{inside})" if "i" in node[1] else f"(?-i:{inside})" if "i" in node[2] else f"(?:{inside})"
    _, inside, least, most, lazy = node
    inside = python(inside, swapped)
    return None if inside is None else f"(?:{inside}){repeat(least, most)}{'?' if lazy != swapped else ''}"


def parts_of(node):
    yield node
    for below in node[1] if node[0] in ("cat", "alt") else [node[2]] if node[0] == "group" else \
            [node[3]] if node[0] == "flags" else [node[1]] if node[0] == "rep" else []:
        yield from parts_of(below)


def nullable(node) -> bool:
    kind = node[0]
    return {"lit": lambda: False, "class": lambda: r"(?-u:\b)" == node[1] or r"(?-u:\B)" == node[1], "look": lambda: True,
            "cat": lambda: all(map(nullable, node[1])), "alt": lambda: any(map(nullable, node[1])),
            "group": lambda: nullable(node[2]), "flags": lambda: nullable(node[3]),
            "rep": lambda: node[2] == 0 or nullable(node[1])}[kind]()


def smaller(node):
    """Yields patterns with one part less."""
    kind = node[0]
    if kind in ("cat", "alt"):
        for at, part in enumerate(node[1]):
            yield (kind, node[1][:at] + node[1][at + 1:])
            yield part
            for less in smaller(part):
                yield (kind, node[1][:at] + [less] + node[1][at + 1:])
    elif kind != "lit" and kind != "class" and kind != "look":
        place = {"group": 2, "flags": 3, "rep": 1}[kind]
        yield node[place]
        for less in smaller(node[place]):
            yield node[:place] + (less,) + node[place + 1:]
    if kind != "lit":
        yield ("lit", "a", "a")


PIECES = [b"a", b"a", b"b", b"b", b"A", b"B", b"c", b"k", b"0", b"_", b" ", b"-", b".", b"*", b"\n", b"\n", b"\r\n", b"\r", b"\t",
          "é".encode(), "É".encode(), "ß".encode(), "ſ".encode(), b"\xc3", b"\xa9", b"\xff", b"\0"]


def draw(random, combination, big: bool = False) -> Case:
    mode, ignore_case, fixed = combination
    options = {}
    if fixed:
        options["--fixed-strings"] = ON
        text = "".join(random.choices("abAB0_ -.é*\r\0"[:random.choice([2, 4, 9, 13])].replace("\0", ""), k=random.choice([0, 1, 1, 2, 3])))
        pattern = text
    else:
        of_bytes = random.random() < 0.15
        pattern = (of_bytes, draw_tree(random, random.choice([1, 2, 3, 4]), of_bytes))
        if random.random() < 0.01:
            pattern = (False, ("cat", [("lit", random.choice([r"\n", "\n", r"\x0A"]), None), pattern[1]]))
    if ignore_case:
        options["--ignore-case"] = ON
    for flag, modes in (("--invert-match", ("lines -v", "count -v")), ("--only-matching", ("only",)),
                        ("--count", ("count", "count -v")), ("--count-matches", ("count-matches",))):
        if mode in modes:
            options[flag] = ON
    case = Case("grep", options, {}, [], {}, None, "print", pattern)
    contents = []
    ascii_only = random.random() < 0.5
    strays = not has_word_boundary(case) or random.random() < 0.1
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        pieces = [piece for piece in random.sample(PIECES, random.randint(2, len(PIECES))) if piece < b"\x80" or not ascii_only and (strays or piece != b"\xa9")]
        contents.append(b"".join(random.choices(pieces + [b"a", b"\n"], k=100_000 if big else random.choice([0, 1, 6, 30, 100, 400]))))
    files, paths = draw_files(random, contents)
    case.inputs, case.files = {"": paths}, files
    return case


def pattern_text(case: Case) -> str:
    if isinstance(case.pattern, str):
        return case.pattern
    of_bytes, tree = case.pattern
    text = f"(?-u:{ours(tree)})" if of_bytes else ours(tree)
    names = itertools.count()  # group names must be unique
    return re.sub("<n>", lambda _: f"<n{next(names)}>", text)


def has_word_boundary(case: Case, of_bytes: bool = False) -> bool:
    """Returns true if the pattern has a word boundary of Unicode, or of bytes if those count too."""
    if isinstance(case.pattern, str) or (case.pattern[0] and not of_bytes):
        return False
    return any(node[0] == "look" and (node[3] in ("word", "half", "new half") or node[1].startswith(r"\b"))
               for node in parts_of(case.pattern[1]))


def ripgrep_knows(case: Case, text: bytes) -> bool:
    if not RIPGREP:
        return False
    if isinstance(case.pattern, str):
        return True
    if {"--only-matching", "--count-matches"} & set(case.options) and has_word_boundary(case, of_bytes=True):
        return False
    kinds = {node[3] for node in parts_of(case.pattern[1]) if node[0] == "look"}
    # ripgrep 13 finds `\B^` and `^\B` in different lines.
    if {"half", "line"} <= kinds:
        return False
    return not kinds & {"file", "new", "new half"} and (text.isascii() or not has_word_boundary(case))


def compiled(case: Case):
    """Returns the compiled pattern of python, and whether it reads lines as bytes; None if it is not compared."""
    flags = re.IGNORECASE if "--ignore-case" in case.options else 0
    if isinstance(case.pattern, str):
        return re.compile(re.escape(case.pattern), flags), False
    of_bytes, tree = case.pattern
    pattern = python(tree)
    if pattern is None:
        return None
    if of_bytes:
        return re.compile(pattern.encode("latin-1"), flags), True
    return re.compile(pattern, flags), False


def pieces(pattern, line):
    """Yields nonempty matches from left to right, by the rule of the regex crate: after an empty match at the end of the
    previous one, the search continues a character further."""
    at, last = 0, None
    while at <= len(line):
        match = pattern.search(line, at)
        if match and match.start() == match.end() == last:
            at += 1
            match = pattern.search(line, at) if at <= len(line) else None
        if not match:
            return
        at = last = match.end()
        if match[0]:
            yield match[0]


def expected(case: Case, directory):
    text = pattern_text(case)
    if spells_line_break(case):
        return Refused(2, "the pattern spells out a line break")
    if too_long(case, "", record_max(case)):
        return Refused(4, "a line is longer than --max-record")
    files = case.read("")
    whole = b"".join(data for _, data in files)
    if has_word_boundary(case) and re.search(r"[\udc80-\udcbf]", whole.decode("utf-8", "surrogateescape")):
        return None
    twin, ask_ripgrep = compiled(case), ripgrep_knows(case, whole)
    if "--only-matching" in case.options or "--count-matches" in case.options:
        ambiguous = not isinstance(case.pattern, str) and any(
            node[0] == "rep" and nullable(node[1]) for node in parts_of(case.pattern[1]))
        if ambiguous:
            return None
    if twin is None and not ask_ripgrep:
        return None  # undefined
    answers = []
    if ask_ripgrep:
        answers.append(of_ripgrep(case, text, files, directory))
    if twin is not None:
        answers.append(of_python(case, twin, files))
    if answers[0] != answers[-1]:
        raise Dispute(f"ripgrep and python: {Exactly(answers[1]).difference([answers[0]], False)}")
    return Exactly(answers[0])


def spells_line_break(case: Case) -> bool:
    return not isinstance(case.pattern, str) and any(node[0] == "lit" and node[2] is None for node in parts_of(case.pattern[1]))


def of_python(case: Case, twin, files: list) -> bytes:
    pattern, of_bytes = twin
    decode = (lambda line: line) if of_bytes else (lambda line: line.decode("utf-8", "surrogateescape"))
    encode = (lambda piece: piece) if of_bytes else (lambda piece: piece.encode("utf-8", "surrogateescape"))
    invert, out, ranked = "--invert-match" in case.options, [], collections.Counter()
    for path, data in files:
        lines = [line for line in lines_of(data) if (pattern.search(decode(line)) is None) == invert]
        if "--count" in case.options:
            out.append((path, len(lines)))
        elif "--only-matching" in case.options or "--count-matches" in case.options:
            found = [encode(piece) for line in lines for piece in pieces(pattern, decode(line))]
            ranked.update(found)
            out += found
        else:
            out += lines
    return written(case, files, out, ranked)


def of_ripgrep(case: Case, text: str, files: list, directory) -> bytes:
    flags = [SHORT[flag] for flag in case.options if flag in SHORT]
    if "--only-matching" in case.options or "--count-matches" in case.options:
        flags = [flag for flag in flags if flag != "-o"] + ["--json"]
    command = [RIPGREP, "--no-config", "-N", "-a", "-j1", "--encoding=none", "--no-filename", *flags, "-e",
               text.replace("(?<n", "(?P<n"), "-"]
    out, ranked = [], collections.Counter()
    for path, data in files:
        # Exit code 1 means that nothing matched.
        lines = lines_of(run(command, directory, data, codes=(0, 1)))
        if "--count" in case.options:
            out.append((path, int(lines[0]) if lines else 0))
        elif "--json" in flags:
            events = [json.loads(line) for line in lines]
            matches = [match["match"] for event in events if event["type"] == "match" for match in event["data"]["submatches"]]
            found = [base64.b64decode(match["bytes"]) if "bytes" in match else match["text"].encode() for match in matches]
            found = [piece for piece in found if piece]
            ranked.update(found)
            out += found
        else:
            out += lines
    return written(case, files, out, ranked)


def written(case: Case, files: list, out: list, ranked) -> bytes:
    if "--count-matches" in case.options:
        pairs = sorted(ranked.items(), key=lambda pair: (-pair[1], pair[0]))
        return b"".join(b"%d\t%s\n" % (count, string) for string, count in pairs)
    if "--count" in case.options:
        # A file whose compressed form is empty has no line to count.
        out = [pair for pair, (_, data) in zip(out, files) if data]
        if len(out) <= 1 and len(case.inputs[""]) == 1:
            return b"%d\n" % sum(count for _, count in out)
        return b"".join(f"{path}:{count}\n".encode() for path, count in out if count)
    return b"".join(line + b"\n" for line in out)

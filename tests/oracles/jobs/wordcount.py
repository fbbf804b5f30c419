"""wordcount: every flag, against plain counting, and `tr | sort | uniq -c` of the C locale.

Words of Unicode are found by the rules of UAX 29, implemented below for the characters that the generator draws: letters,
digits, the connectors and punctuation between them, combining marks, katakana, ideographs, and bytes that are not UTF-8.
"""
import collections
import itertools

from . import Case, Dispute, Exactly, ON, Refused, draw_files, first_difference, lines_of, record_max, run, too_long

FLAGS = ["--words", "--lowercase", "--top"]


def combinations() -> list:
    return list(itertools.product(["ascii", "unicode", None], [False, True], [False, True]))


PIECES = [b"a", b"B", b"ab", b"tea", b"Tea", "é".encode(), "É".encode(), "ß".encode(), "Σ".encode(), "İ".encode(), b" ", b" ",
          b" ", b"\n", b"\n", b"\r\n", b"\t", b"\x0b", b"\x0c", b"\r", b"1", b"12", b"3.5", b",", b".", b"'", b"_", b"-", b":",
          b"can't", "’".encode(), b"\xff", b"\xc3", b"\0", "\u0301".encode(), "カ".encode(), "漢".encode(), b"\x1f", b"\x85",
          "\u00a0".encode(), b"!"]


def draw(random, combination, big: bool = False) -> Case:
    words, lowercase, top = combination
    options = {}
    if words:
        options["--words"] = words
    if lowercase:
        options["--lowercase"] = ON
    if top:
        options["--top"] = str(random.choice([1, 2, 3, 10, 1000]))
    contents = []
    for _ in range(random.choice([1, 1, 2, 3, 6])):
        pieces = random.sample(PIECES, random.randint(2, len(PIECES)))
        count = random.choice([0, 1, 5, 40, 200, 600])
        contents.append(b"".join(random.choices(pieces, k=count)))
        if big:
            contents[-1] += b"".join(b"%x " % random.randrange(1 << 28) for _ in range(40_000))
    files, paths = draw_files(random, contents)
    return Case("wordcount", options, {"": paths}, files, {}, None, "print")


def expected(case: Case, directory):
    if too_long(case, "", record_max(case)):
        return Refused(4, "a line is longer than --max-record")
    unicode = case.options.get("--words") == "unicode"
    counts = collections.Counter()
    for _, data in case.read(""):
        if unicode:
            words = (word for line in lines_of(data) for word in unicode_words(line.decode("utf-8", "replace")))
            if "--lowercase" in case.options:
                words = (word.lower() for word in words)
            counts.update(word.encode() for word in words)
        else:
            words = (data.lower() if "--lowercase" in case.options else data).split()
            counts.update(words)
    if not unicode and sum(counts.values()) < 10_000:
        compare_with_uniq(case, counts, directory)
    if "--top" in case.options:
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:int(case.options["--top"])]
        return Exactly(b"".join(b"%s\t%d\n" % pair for pair in ranked))
    return Counts(counts)


def compare_with_uniq(case: Case, counts, directory) -> None:
    """Compares with the second oracle. `uniq -c` pads its counts with blanks."""
    text = b"\n".join(data for _, data in case.read(""))
    lower = "| tr A-Z a-z" if "--lowercase" in case.options else ""
    script = rf"tr -s ' \t\n\v\f\r' '\n' {lower} | grep -av '^$' | sort | uniq -c"
    found = {}
    for line in lines_of(run(["bash", "-c", script], directory, text)):
        count, word = line.lstrip(b" ").split(b" ", 1)
        found[word] = int(count)
    if found != counts:
        raise Dispute(f"uniq -c counts {found}, we count {dict(counts)}")


class Counts:
    """Expected counts: each word must be once in all parts, and each part in byte order."""

    def __init__(self, counts):
        self.counts = counts

    def difference(self, parts: list, borders: bool) -> str | None:
        found = []
        for number, part in enumerate(parts):
            lines = lines_of(part)
            words = [line.rpartition(b"\t")[0] for line in lines]
            if borders and words != sorted(words):
                return f"part {number} is out of order"
            found += lines
        found.sort(key=lambda line: line.rpartition(b"\t")[0])
        return first_difference(b"".join(line + b"\n" for line in found),
                                b"".join(b"%s\t%d\n" % pair for pair in sorted(self.counts.items())))


# Classes of the characters above by UAX 29, table 3; all others are Other.
def word_class(letter: str) -> str:
    if letter in "'":
        return "Single_Quote"
    if letter in ".’":
        return "MidNumLet"
    if letter == ":":
        return "MidLetter"
    if letter in ",;":
        return "MidNum"
    if letter == "_":
        return "ExtendNumLet"
    if letter in "\u0301\u0307":
        return "Extend"
    if letter == "カ":
        return "Katakana"
    if letter.isdecimal():
        return "Numeric"
    if letter == "漢":
        return "Other"
    if letter in "\r\x0b\x0c\x85":
        return "Newline"
    if letter == " ":
        return "WSegSpace"
    return "ALetter" if letter.isalpha() else "Other"


def unicode_words(text: str) -> list:
    """Returns the pieces between word boundaries that contain a letter or a digit."""
    classes = [word_class(letter) for letter in text]
    words, begin = [], 0
    for at in range(1, len(text) + 1):
        if at == len(text) or boundary(classes, at):
            words.append(text[begin:at])
            begin = at
    return [word for word in words if any(letter.isalnum() for letter in word)]


def base(classes: list, at: int) -> int:
    """Returns the position of the character that the marks up to here belong to (WB4)."""
    while 0 < at and classes[at] == "Extend" and classes[at - 1] != "Newline":
        at -= 1
    return at


def boundary(classes: list, at: int) -> bool:
    left, right = classes[at - 1], classes[at]
    if "Newline" in (left, right):
        return True  # WB3a, WB3b; a carriage return meets no line feed within a line
    if (left, right) == ("WSegSpace", "WSegSpace"):
        return False  # WB3d
    if right == "Extend":
        return False  # WB4
    first = base(classes, at - 1)
    left = classes[first]
    before = classes[base(classes, first - 1)] if first else ""
    ahead = at + 1
    while ahead < len(classes) and classes[ahead] == "Extend":
        ahead += 1
    after = classes[ahead] if ahead < len(classes) else ""
    letters, numbers = ("ALetter",), ("Numeric",)
    if left in letters and right in letters:
        return False  # WB5
    if left in letters and right in ("MidLetter", "MidNumLet", "Single_Quote") and after in letters:
        return False  # WB6
    if before in letters and left in ("MidLetter", "MidNumLet", "Single_Quote") and right in letters:
        return False  # WB7
    if left in numbers and right in numbers or left in letters and right in numbers or left in numbers and right in letters:
        return False  # WB8 to WB10
    if before in numbers and left in ("MidNum", "MidNumLet", "Single_Quote") and right in numbers:
        return False  # WB11
    if left in numbers and right in ("MidNum", "MidNumLet", "Single_Quote") and after in numbers:
        return False  # WB12
    if (left, right) == ("Katakana", "Katakana"):
        return False  # WB13
    if left in ("ALetter", "Numeric", "Katakana", "ExtendNumLet") and right == "ExtendNumLet":
        return False  # WB13a
    return not (left == "ExtendNumLet" and right in ("ALetter", "Numeric", "Katakana"))  # WB13b

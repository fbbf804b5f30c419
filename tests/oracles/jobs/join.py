"""join: all types and strategies, against a separate parser and join, and for the resulting rows sqlite.

The rule of quotes, as `worker/src/input/border.rs` has it: a quote opens a quoted part only as the first byte of a field.
Inside, two quotes mean one and a single one ends the part; the text up to the next delimiter is then literal. Outside quotes
a row ends at a line feed, and one carriage return before it belongs to the line end. Blank lines are not rows. A byte order
mark at the start of a file belongs to no row. A row cannot span files. Refused are quotes that are never closed, rows of
other lengths than the first, and headers that differ from that of the first file.
(The csv module of python is no oracle: it reads bare carriage returns as line ends.)
"""
import collections
import itertools
import sqlite3

from . import Case, Dispute, Exactly, Refused, draw_files, first_difference, lines_of

FLAGS = ["--left", "--right", "--on", "--type", "--columns", "--header", "--delimiter", "--strategy", "--broadcast-max",
         "--group-max"]
TYPES = ["inner", "left", "right", "full", "semi", "anti"]
# Size of a row of the held side besides its bytes; --group-max counts it.
HELD_ROW_BYTES = 8


def combinations() -> list:
    return list(itertools.product(TYPES, ["auto", "repartition", "broadcast"], [None, "yes", "no"], ["names", "numbers"],
                                  [False, True]))


FIELDS = [b"", b"a", b"b", b"ab", b"1", b"2", b"10", b" ", b"\r", b"a\r", b"\ra", b"\n", b"a\nb", b"\r\n", b'"', b'a"b', b'""',
          b",", b";", b"x,y", b"\t", "é".encode(), b"\xff", b"\0", b"longer text here", b"\\", b"'"]
PLAIN = [b"", b"a", b"b", b"ab", b"1", b"2", b"10", b" ", "é".encode(), b"\xff", b"\0", b"longer text here", b"'"]


def draw(random, combination, big: bool = False) -> Case:
    kind, strategy, header, naming, with_columns = combination
    delimiter = random.choice([",", ",", ";", "\\t", "a"])
    byte = delimiter.replace("\\t", "\t").encode()
    named = header == "yes" or header is None and naming == "names"
    fields = random.choice([FIELDS, FIELDS, PLAIN])
    if byte == b"a":
        fields = [field for field in fields if b"a" not in field]
    keys = random.sample(fields, random.randint(1, min(8, len(fields))))
    key_columns = random.choice([1, 1, 1, 2, 3])
    sides, inputs, files, general = {}, {}, [], {}
    for side in ("left", "right"):
        width = random.randint(1, 4)
        names = [f"{letter}{side[0] if random.random() < 0.3 else ''}" for letter in random.sample("abkxyz", width)]
        if random.random() < 0.1:
            names = random.sample(["1", "2", "3", "4", "07", "#1"], width)
        if byte == b"a":
            names = [name.replace("a", "q") for name in names]
        names = [random.choice([name, f"{name} {name}", f'{name}"', f"{name}é"]) if random.random() < 0.1 else name
                 for name in names]
        if byte == b"a":
            names = [name.replace("a", "q") for name in names]
        on = [random.randrange(width) for _ in range(key_columns)]
        contents = []
        for number in range(random.choice([1, 1, 2, 3, 5])):
            order = list(range(width))
            if named and number and random.random() < 0.05 and width > 1:
                random.shuffle(order)
            rows = []
            for _ in range(8000 if big else random.choice([0, 1, 2, 8, 30])):
                row = [random.choice(keys) if place in on else random.choice(fields) for place in range(width)]
                if big:
                    row[on[0]] += b"%d" % random.randrange(20_000)
                rows.append([row[place] for place in order])
            if fields is PLAIN and rows and random.random() < 0.05:
                rows[random.randrange(len(rows))].append(b"more")  # refused, or skipped
                if random.random() < 0.7:
                    general["--skip-bad-records"] = random.choice(["1", "3", "10000"])
            if named:
                rows.insert(0, [names[place].encode() for place in order])
                if number and random.random() < 0.01:
                    rows[0][0] += b"z"  # another column: refused
            contents.append(draw_table(random, rows, byte, plain=fields is PLAIN))
        of_side, paths = draw_files(random, contents, mark=False)  # tables have their own
        for file in of_side:  # both sides may have a file of one name
            file.name = f"{side}-{file.name}".replace(f"{side}-./", f"./{side}")
        inputs[f"--{side}"] = [f"{side}-{path}".replace(f"{side}-./", f"./{side}") for path in paths]
        files += of_side
        sides[side] = (names, on)
    if random.random() < 0.01 and files[0].data:
        files[0].data += random.choice([byte, b'"open', byte + b'"never closed'])

    def column(side, place):
        names = sides[side][0]
        if named and (naming == "names" and random.random() < 0.8) and safe(names[place]):
            return names[place]
        return random.choice(["", "", "#"]) + str(place + 1)

    pairs = []
    for left, right in zip(sides["left"][1], sides["right"][1]):
        one, other = column("left", left), column("right", right)
        pairs.append(one if one == other and random.random() < 0.5 else f"{one}={other}")
    options = {"--on": ",".join(pairs)}
    if kind != "inner" or random.random() < 0.5:
        options["--type"] = kind
    if with_columns:
        choices = [(side, place) for side in ("left", "right") for place in range(len(sides[side][0]))]
        if kind in ("semi", "anti"):
            choices = [choice for choice in choices if choice[0] == "left"]
        wanted = random.choices(choices, k=random.randint(1, 5))
        options["--columns"] = ",".join(f"{side}.{column(side, place)}" for side, place in wanted)
    if header:
        options["--header"] = header
    if delimiter != "," or random.random() < 0.2:
        options["--delimiter"] = delimiter
    if strategy != "auto" or random.random() < 0.5:
        options["--strategy"] = strategy
    if random.random() < 0.15:
        options["--broadcast-max"] = random.choice(["0", "50", "1KiB", "1GiB"])
    if random.random() < 0.15:
        options["--group-max"] = random.choice(["1GiB", "1MiB", "60", "400"])
    return Case("join", options, inputs, files, general, None, "print")


def safe(name: str) -> bool:
    """Returns true if a name can be written in --on and --columns."""
    return not set(name) & set(",=.")


def is_number(word: str) -> bool:
    """Returns true if a word means a position if no column has this name."""
    digits = word.removeprefix("#")
    return digits.isdigit() and not digits.startswith("0")


def draw_table(random, rows: list, delimiter: bytes, plain: bool) -> bytes:
    """Returns CSV of these rows: with quotes where they are needed and sometimes elsewhere, with all kinds of line
    ends."""
    out = [b"\xef\xbb\xbf"] if random.random() < 0.05 else []
    ends = random.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n"], [b"\n", b"\r\n", b"\n\n", b"\n\r\n"]]) if not plain else [b"\n"]
    zeal = random.choice([0, 0, 0.2, 1])
    for row in rows:
        cells = []
        for number, field in enumerate(row):
            # A bare carriage return is valid if no line feed follows it, a quote if it is not the first byte.
            last = number == len(row) - 1
            needed = delimiter in field or b"\n" in field or field.startswith(b'"') or (last and field.endswith(b"\r"))
            if needed or (not plain and random.random() < zeal) or (len(row) == 1 and not field.strip(b"\r\n")):
                cells.append(b'"' + field.replace(b'"', b'""') + b'"')
                if random.random() < 0.03 and not plain:
                    cells[-1] += b"tail"
            else:
                cells.append(field)
        out += [delimiter.join(cells), random.choice(ends)]
    if rows and random.random() < 0.4:
        out.pop()  # no last line end
        if not plain and random.random() < 0.4:
            out.append(b"\r")  # a lone one: it belongs to the last field, or follows its quote
    return b"".join(out)


def parse(data: bytes, delimiter: bytes) -> list | None:
    """Returns the rows of one file, parsed byte by byte; None if a quote is never closed."""
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    rows, row, field, begin = [], [], bytearray(), at
    field_begins = True

    def end_row(content_end):
        nonlocal row, field
        row.append(bytes(field))
        if begin < content_end:
            rows.append(row)
        row, field = [], bytearray()

    while at < len(data):
        byte = data[at:at + 1]
        if byte == b'"' and field_begins:
            at += 1
            while True:
                close = data.find(b'"', at)
                if close < 0:
                    return None
                field += data[at:close]
                at = close + 1
                if data[at:at + 1] != b'"':
                    break
                field += b'"'
                at += 1
            field_begins = False
            continue
        at += 1
        if byte == delimiter:
            row.append(bytes(field))
            field, field_begins = bytearray(), True
        elif byte == b"\n" or (byte == b"\r" and data[at:at + 1] == b"\n"):
            content_end = at - 1
            at += byte == b"\r"
            end_row(content_end)
            begin, field_begins = at, True
        else:
            field += byte
            field_begins = False
    if begin < at:
        end_row(at)
    return rows


def is_cut_by_returns(data: bytes) -> bool:
    """Returns true if a carriage return outside quotes is before the last byte."""
    pieces = data[:-1].split(b'"')[::2]
    return any(b"\r" in piece for piece in pieces)


def quoted(field: bytes, delimiter: bytes) -> bytes:
    if any(byte in field for byte in (b'"', delimiter, b"\n", b"\r")):
        return b'"' + field.replace(b'"', b'""') + b'"'
    return field


def line(fields: list, delimiter: bytes) -> bytes:
    return delimiter.join(quoted(field, delimiter) for field in fields) or b'""'


class Table:
    """The rows of all files of one side."""

    def __init__(self, case: Case, side: str, delimiter: bytes, header: bool):
        skips = case.general.get("--skip-bad-records", "0") != "0"
        self.stored_bytes = sum(len(file.stored()) * case.inputs[f"--{side}"].count(file.path()) for file in case.files)
        if any(file.path().startswith("%s/" % path) for file in case.files for path in case.inputs[f"--{side}"]):
            self.stored_bytes = sum(len(file.stored()) for file in case.files if file.path().startswith(f"{side}-in/")
                                    and not file.path().rsplit("/", 1)[-1].startswith(("_", ".")))
        self.header, self.rows, self.width, self.odd, self.other_header = None, [], None, None, None
        self.returns = None
        self.no_header, self.bad = False, 0
        for path, data in case.read(f"--{side}"):
            rows = parse(data, delimiter)
            if b"\n" not in data and is_cut_by_returns(data):
                self.returns = f"the rows of {path} end with carriage returns alone"
                continue
            if rows is None:
                self.odd = f"a quote of {path} is never closed"
                continue
            if not rows:
                continue
            if self.width is None:
                self.width = len(rows[0])
            if header:
                names = rows.pop(0)
                if self.header is None:
                    self.header = names
                if names != self.header:
                    self.other_header = f"the header of {path} has other columns"
            for row in rows:
                if len(row) != self.width and skips:
                    self.bad += 1
                elif len(row) != self.width:
                    self.odd = f"a row of {path} has {len(row)} fields"
                else:
                    self.rows.append(row)
        if self.returns:
            self.odd = self.returns
        self.names = self.header and [name.decode("utf-8", "replace") for name in self.header]
        if header and self.header is None:
            self.no_header = True

    def place(self, word: str) -> int | None:
        if self.names is not None and word in self.names:
            return self.names.index(word) if self.names.count(word) == 1 else None
        if not is_number(word) or self.width is not None and int(word.removeprefix("#")) > self.width:
            return None
        return int(word.removeprefix("#")) - 1


def expected(case: Case, directory):
    options = case.options
    delimiter = options.get("--delimiter", ",").replace("\\t", "\t").encode()
    on = [(pair.split("=", 1) * 2)[:2] for pair in options["--on"].split(",")]
    wanted = [word.split(".", 1) for word in options["--columns"].split(",")] if "--columns" in options else None
    named = not all(is_number(word) for pair in on for word in pair) or any(not is_number(word) for _, word in wanted or [])
    header = {"yes": True, "no": False}.get(options.get("--header"), named)
    if named and not header:
        return Refused(2, "columns are named, and there is no header")
    tables = {side: Table(case, side, delimiter, header) for side in ("left", "right")}
    left, right = tables["left"], tables["right"]
    odd = left.odd or right.odd
    if left.returns or right.returns:
        return Refused(4, odd, 2)
    bad, bad_max = left.bad + right.bad, int(case.general.get("--skip-bad-records", "0"))
    if bad > bad_max:
        odd = f"{bad} bad records are more than {bad_max}"
    refused = lambda code, reason: Refused(code, reason, 4 if odd else None)
    if odd and header and (left.header is None or right.header is None):
        return Refused(4, odd, 2)
    keys = {"left": [], "right": []}
    for number, (side, table) in enumerate(tables.items()):
        if table.no_header:
            return refused(4, "there is no header")
        keys[side] = [table.place(pair[number]) for pair in on]
        if None in keys[side]:
            return refused(2, f"there is no such column in the {side} table")
        if table.width is None:
            table.width = 1 + max(keys[side])
    kind, strategy = options.get("--type", "inner"), options.get("--strategy", "auto")
    cluster = case.cluster or {}
    # Only large cases can exceed a worker's quarter, and those name both flags.
    memory = size(cluster["--memory"]) // int(cluster["--workers"]) if "--memory" in cluster else 1 << 40
    held = held_side(kind, strategy, left, right, min(size(options.get("--broadcast-max", "64MiB")), memory // 4))
    if held is None:
        return refused(2, "it cannot be a broadcast")
    held, broadcast = held
    if wanted is not None:
        places = [(side, tables[side].place(word)) for side, word in wanted]
        if any(place is None for _, place in places) or kind in ("semi", "anti") and any(side == "right" for side, _ in places):
            return refused(2, "there is no such column of the output")
    else:
        places = [(side, place) for side in ("left", "right") for place in range(tables[side].width)
                  if side == "left" or kind not in ("semi", "anti")]
    for table in tables.values():
        if table.other_header:
            return refused(4, table.other_header)
    too_large = not broadcast and group_is_too_large(
        kind, tables[held], keys[held], [place for side, place in places if side == held], delimiter,
        size(options.get("--group-max", "256MiB")))
    if odd:
        return Refused(4, odd, 2 if too_large else None)
    if too_large:
        return Refused(2, "the rows of one key take more than --group-max")
    ordered = join(kind, tables, keys, held, broadcast)
    text = [line([(one if side == "left" else other)[place] if (one if side == "left" else other) else b""
                  for side, place in places], delimiter) for one, other in ordered]
    compare_with_sqlite(kind, tables, keys, places, delimiter, text)
    return Exactly(b"".join(row + b"\n" for row in text)) if broadcast else Rows(text, case.general.get("--reduces") == "1")


def size(text: str) -> int:
    for ending, factor in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)):
        if text.endswith(ending):
            return int(text[:-3]) * factor
    return int(text)


def held_side(kind: str, strategy: str, left: Table, right: Table, broadcast_max: int):
    """Returns the side that is held, and whether it is broadcast; None if it has to be and cannot."""
    if strategy != "repartition":
        smaller = "left" if left.stored_bytes < right.stored_bytes else "right"
        side = {"inner": smaller, "right": "left", "full": None}.get(kind, "right")
        if side and {"left": left, "right": right}[side].stored_bytes <= broadcast_max:
            return side, True
        if strategy == "broadcast":
            return None
    return "right" if kind in ("semi", "anti") or right.stored_bytes < left.stored_bytes else "left", False


def group_is_too_large(kind, table: Table, keys: list, written: list, delimiter: bytes, group_max: int) -> bool:
    sizes = collections.Counter()
    for row in table.rows:
        key = tuple(row[place] for place in keys)
        if kind in ("semi", "anti"):
            sizes[key] = HELD_ROW_BYTES
            continue
        text = delimiter.join(quoted(row[place], delimiter) for place in written)
        sizes[key] += HELD_ROW_BYTES + len(text)
    return any(group_max < taken for taken in sizes.values())


def join(kind: str, tables: dict, keys: dict, held: str, broadcast: bool) -> list:
    """Returns pairs of rows, one of them possibly missing, in the order of the output: that of the streamed rows if the other side
    is broadcast, else that of keys, and within a key again that of the streamed rows.
    """
    streamed = "right" if held == "left" else "left"
    key_of = lambda side, row: tuple(row[place] for place in keys[side])
    of_key = collections.defaultdict(list)
    for row in tables[held].rows:
        of_key[key_of(held, row)].append(row)
    keeps = {"left": ("left",), "right": ("right",), "full": ("left", "right")}.get(kind, ())

    def partners(row):
        found = of_key.get(key_of(streamed, row), [])
        if kind in ("semi", "anti"):
            return [(row, None)] if bool(found) == (kind == "semi") else []
        pairs = [(row, other) for other in found] or ([(row, None)] if streamed in keeps else [])
        return [(one, other) if streamed == "left" else (other, one) for one, other in pairs]

    if broadcast:
        return [pair for row in tables[streamed].rows for pair in partners(row)]
    groups = collections.defaultdict(list)
    seen = set()
    for row in tables[streamed].rows:
        seen.add(key_of(streamed, row))
        groups[key_of(streamed, row)] += partners(row)
    if held in keeps:
        for key, rows in of_key.items():
            if key not in seen:
                groups[key] += [(row, None) if held == "left" else (None, row) for row in rows]
    return [pair for key in sorted(groups) for pair in groups[key]]


def compare_with_sqlite(kind, tables: dict, keys: dict, places: list, delimiter: bytes, text: list) -> None:
    """Compares with the second oracle: the same rows in any order."""
    if 2000 < len(text):
        return
    database = sqlite3.connect(":memory:")
    for side in ("left", "right"):
        width = tables[side].width
        database.execute(f'create table "{side}" ({", ".join(f"c{place} blob" for place in range(width))})')
        database.executemany(f'insert into "{side}" values ({", ".join("?" * width)})', tables[side].rows)
    on = " and ".join(f'"left".c{one} = "right".c{other}' for one, other in zip(keys["left"], keys["right"]))
    columns = ", ".join(f'"{side}".c{place}' for side, place in places)
    if kind in ("semi", "anti"):
        negated = "" if kind == "semi" else "not"
        query = f'select {columns} from "left" where {negated} exists (select 1 from "right" where {on})'
    elif kind in ("right", "full") and sqlite3.sqlite_version_info < (3, 39):
        return
    else:
        query = f'select {columns} from "left" {kind} join "right" on {on}'
    found = sorted(line([field or b"" for field in row], delimiter) for row in database.execute(query))
    if found != sorted(text):
        raise Dispute(f"sqlite has {len(found)} rows, we have {len(text)}: {query}")


class Rows:
    """Expected rows by key; each part must be in the order of the whole, with any distribution of keys over parts."""

    def __init__(self, text: list, single: bool):
        self.text, self.single = text, single

    def difference(self, parts: list, borders: bool) -> str | None:
        whole = b"".join(row + b"\n" for row in self.text)
        if self.single:
            return first_difference(b"".join(parts), whole)
        # Rows contain quoted line breaks, so the sorted lines of all rows are compared.
        found = b"".join(parts)
        if sorted(found.split(b"\n")) != sorted(whole.split(b"\n")):
            return first_difference(b"\n".join(sorted(found.split(b"\n"))), b"\n".join(sorted(whole.split(b"\n"))))
        if borders:
            for number, part in enumerate(parts):
                rest = iter(lines_of(whole))
                if not all(any(row == other for other in rest) for row in lines_of(part)):
                    return f"part {number} is not in the order of the keys"
        return None

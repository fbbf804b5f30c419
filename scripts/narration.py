#!/usr/bin/env python3
"""Runs random small jobs with --narrate and --narrate-html and computes anew, in Python, what they ought to tell.

usage: scripts/narration.py [--program target/debug/gristmill] [--seconds 20] [--seed N]
       scripts/narration.py --seed N --case M     one case again
       scripts/narration.py --self-test           a story in which one thing is wrong must be caught, for each thing

Word counts, sorts, joins and greps of random texts, with random splits, reduces, workers and slots. What is computed here:
splits, records, pairs, combined pairs, hashes and partitions (worker/FORMAT.md), segments, who fetches what, the order in
which a reduce reads, groups, what is written for each, and the whole output. Compared with the page cell by cell; the text
must say the same words as the page, in the same order.

Ends with code 1 at the first difference, names seed and case, and keeps the files of that case.
"""
import argparse
import collections
import copy
import gzip
import html.parser
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

LIST_MAX = 500  # items of a list that are shown
VALUES_MAX = 200  # values of a key that are shown
WORDS_MAX = 200  # bytes of a key, value or record, or a character more
CASE_SECONDS_MAX = 60


class Wrong(Exception):
    """The story tells something else than what happened."""


def expect(true: bool, words: str) -> None:
    if not true:
        raise Wrong(words)


def same(told, meant, what: str) -> None:
    expect(told == meant, f"{what}: told {told!r}, but it is {meant!r}")


# --- What is told -----------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """The steps of a page: moment, kind, title, and blocks in their order."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.steps, self.into, self.cells = [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "section":
            self.steps.append({"kind": attributes["class"], "title": "", "moment": "", "blocks": []})
        elif not self.steps:
            return
        elif tag == "h2":
            self.into = "title"
        elif tag == "span":
            self.into = "moment"
        elif tag == "code":
            self.handle_data("`")
        elif tag == "p":
            self.steps[-1]["blocks"].append(["words", ""])
            self.into = "block"
        elif tag == "ul":
            self.steps[-1]["blocks"].append(["row", []])
        elif tag == "table":
            self.steps[-1]["blocks"].append(["table", []])
        elif tag == "tr":
            self.steps[-1]["blocks"][-1][1].append([])
        elif tag in ("li", "td", "th"):
            items = self.steps[-1]["blocks"][-1][1]
            self.cells = items if tag == "li" else items[-1]
            self.cells.append("")
            self.into = "cell"

    def handle_endtag(self, tag):
        if tag == "span":
            self.into = "title"
        elif tag == "code":
            self.handle_data("`")
        elif tag in ("h2", "p", "li", "td", "th"):
            self.into = None
        elif tag == "section":
            self.into = None
        elif tag == "main":
            self.steps_done, self.steps = self.steps, []

    def handle_data(self, data):
        if not self.steps or self.into is None:
            return
        step = self.steps[-1]
        if self.into in ("title", "moment"):
            step[self.into] += data
        elif self.into == "block":
            step["blocks"][-1][1] += data
        else:
            self.cells[-1] += data


def steps_of(page: str) -> list:
    steps = Page(page).steps_done
    for step in steps:
        step["title"] = step["title"].strip()
    return steps


def words_of(step) -> list:
    return [block[1] for block in step["blocks"] if block[0] == "words"]


def table(step, first: str):
    """Head and rows of the table with this first column, and how many rows more there are."""
    for at, (kind, body) in enumerate(step["blocks"]):
        if kind == "table" and body[0][0] == first:
            return body[0], body[1:], more_behind(step, at)
    raise Wrong(f"`{step['title']}` has no table of `{first}`")


def row(step, ending: str):
    """The list behind the words that end so, and how many items more there are."""
    for at, (kind, body) in enumerate(step["blocks"][:-1]):
        if kind == "words" and body.endswith(ending):
            kind, items = step["blocks"][at + 1]
            expect(kind == "row", f"`{step['title']}`: no list behind `{ending}`")
            return items, more_behind(step, at + 1)
    raise Wrong(f"`{step['title']}` does not say `{ending}`")


def more_behind(step, at: int) -> int:
    following = step["blocks"][at + 1 : at + 2]
    found = following and following[0][0] == "words" and re.match(r"… and (\d+) more\.", following[0][1])
    return int(found[1]) if found else 0


def same_list(told: list, more: int, meant: list, what: str) -> None:
    same(told, meant[:LIST_MAX], what)
    same(more, max(0, len(meant) - LIST_MAX), f"{what}: how many more")


def shown(text: str) -> str:
    """Words as a story has them: a backslash twice, and cut where they are long."""
    out, size = [], 0
    for character in text.replace("\\", "\\\\"):
        if WORDS_MAX <= size:
            out.append("…")
            break
        out.append(f"\\u{ord(character):04x}" if ord(character) < 32 and character not in "\n\t" else character)
        size += len(out[-1].encode())
    return "".join(out).replace("\t", " ").replace("\n", " | ")


def meant_by(words: str) -> str:
    """The text of which a story has these words, if it is not cut."""
    return words.replace("\\\\", "\\")


def shown_values(values: list) -> str:
    more = len(values) - VALUES_MAX
    return " ".join(values[:VALUES_MAX]) + (f" … and {more} more" if 0 < more else "")


def shown_line(line: str) -> str:
    return shown(line.replace("\t", " ⇥ "))


# --- What happened ----------------------------------------------------------------------------------------------------


def hash_of(key: bytes):
    """Of a key of at most 15 bytes; None for longer ones, whose hash is only held against itself."""
    if 15 < len(key):
        return None
    padded = key.ljust(15, b"\0") + bytes([len(key) + 1])
    low = int.from_bytes(padded[:8], "little") ^ 0x6A09E667F3BCC909
    high = int.from_bytes(padded[8:], "little") ^ 0xBB67AE8584CAA73B
    product = low * high
    return (product ^ product >> 64) & (1 << 64) - 1 | 1


def lines_of(data: bytes) -> list:
    """Where each line begins, and its bytes without its end."""
    at, lines = 0, []
    for line in data.splitlines(keepends=True) if data else []:
        lines.append((at, line.rstrip(b"\n")))
        at += len(line)
    return lines


def cut(data: bytes, split: int, is_table: bool) -> list:
    """Where the pieces of a file end."""
    if len(data) <= split:
        return [len(data)]
    if not is_table:
        return [*range(split, len(data), split), len(data)]
    ends, wanted, begun = [], split, 0
    while (newline := data.find(b"\n", max(begun, wanted - 1))) != -1:
        begun = newline + 1
        ends.append(begun)
        wanted = (begun // split + 1) * split
    return ends if ends and ends[-1] == len(data) else [*ends, len(data)]


def splits_of(files: list, split: int, is_table: bool) -> list:
    """Pieces (name, from, until) of each split."""
    splits, room = [], None
    for name, data in files:
        if not data:
            continue
        if len(data) <= split:
            if room is not None and len(data) <= room:
                splits[-1].append((name, 0, len(data)))
                room -= len(data)
            else:
                splits.append([(name, 0, len(data))])
                room = split - len(data)
            continue
        room, begin = None, 0
        for end in cut(data, split, is_table):
            splits.append([(name, begin, end)])
            begin = end
    return splits


class Case:
    """A job: its command, and what comes of it."""

    def __init__(self, seed: int, number: int):
        draw = random.Random(f"{seed}/{number}")
        self.job = ("wordcount", "sort", "join", "grep")[number % 4]
        self.reduces = draw.choice([1, 1, 2, 3, 5])
        self.split = draw.choice([20, 40, 90, 200, 5000])
        self.flags = ["--workers", str(draw.choice([1, 2, 3])), "--slots", str(draw.choice([1, 1, 2]))]
        if draw.random() < 0.2:
            self.flags += ["--shuffle", "http"]
        if draw.random() < 0.15:
            self.flags += ["--compress-output", "gzip"]
        if draw.random() < 0.2:
            self.flags += ["--policy", draw.choice(["fifo", "fair"])]
        self.options, self.combines, self.only_maps, self.tables, self.pattern = [], False, False, None, None
        big = draw.random() < 0.15
        lines = [" ".join(self.word(draw, big) for _ in range(draw.randint(0, 6))) for _ in range(draw.randint(150, 250) if big else draw.randint(1, 14))]
        text = ("\n".join(lines) + ("" if draw.random() < 0.2 else "\n")).encode()
        if big:
            self.split = draw.choice([3000, 100_000])
        self.files = [("a.txt", text)]
        if draw.random() < 0.4:
            self.files.append(("b.txt", "".join(f"{self.word(draw, False)}\n" for _ in range(draw.randint(0, 4))).encode()))
        getattr(self, "draw_" + self.job)(draw)
        # The least number of bytes in a split that keeps all tasks told.
        self.split = max(self.split, sum(len(data) for _, data in self.all_files()) // 40 + 1)

    def all_files(self) -> list:
        return self.files if self.tables is None else [file for side in self.tables for file in side]

    @staticmethod
    def word(draw, big: bool) -> str:
        if big:
            return f"w{draw.randint(0, 800)}"
        if draw.random() < 0.04:
            # Long ones that are alike as far as they are shown.
            return "long" * 55 + draw.choice("xyz")
        return draw.choice(["a", "b", "mill", "stone", "wheel", "grain", "ä", "the", "the", "turns", "sixteenletterskey", r"\xff"])

    def draw_wordcount(self, draw) -> None:
        self.combines = True

    def draw_sort(self, draw) -> None:
        pass

    def draw_grep(self, draw) -> None:
        self.pattern = draw.choice(["mill", "e", "^a", "w1", "x"])
        if draw.random() < 0.5:
            self.options, self.combines, self.reduces = ["--count-matches"], True, 1
        else:
            self.only_maps = True

    def draw_join(self, draw) -> None:
        def rows(name: str) -> bytes:
            keys = ["a", "b", "mill", "stone", "ä"]
            count = draw.randint(1, 9)
            return f"k,{name}\n".encode() + "".join(f"{draw.choice(keys)},{name}{at}\n" for at in range(count)).encode()

        self.tables = ([("left.csv", rows("l"))], [("right.csv", rows("r"))])
        self.only_maps = draw.random() < 0.3
        self.options = ["--strategy", "broadcast" if self.only_maps else "repartition"]

    def command(self, program: str) -> list:
        named = [name for name, _ in self.files]
        inputs = named if self.tables is None else ["--left", "left.csv", "--right", "right.csv", "--on", "k=k"]
        if self.pattern is not None:
            inputs = [self.pattern, *inputs]
        general = ["--split-size", str(self.split), "--reduces", str(self.reduces), "--no-sync", "--quiet", "--output", "out"]
        return [program, "run", self.job, *inputs, *self.options, *self.flags, *general, "--narrate", "--narrate-html", "page.html"]

    # The order in which the plan has its inputs, and which of them maps read.

    def inputs(self) -> list:
        if self.tables is None:
            return [self.files]
        left, right = self.tables
        held, streamed = self.sides()
        return [streamed] if self.only_maps else [held, streamed]

    def sides(self):
        """The table that is held, and the other one."""
        left, right = self.tables
        if self.only_maps:
            return (left, right) if len(left[0][1]) < len(right[0][1]) else (right, left)
        return (right, left) if len(right[0][1]) < len(left[0][1]) else (left, right)

    def splits(self) -> list:
        return [split for files in self.inputs() for split in splits_of(files, self.split, self.tables is not None)]

    def records(self, split: list) -> list:
        """Of all pieces: where each record begins, and its text."""
        data = dict(self.all_files())
        found = []
        for name, begin, end in split:
            for number, (at, line) in enumerate(lines_of(data[name])):
                header = self.tables is not None and number == 0
                if begin <= at < end and not header:
                    found.append((at, line.decode(), name))
        return found

    def pairs(self, records: list) -> list:
        """What the mapper emits of them."""
        if self.job == "wordcount":
            return [(word, "1") for _, line, _ in records for word in line.split()]
        if self.job == "sort":
            return [(line, "") for _, line, _ in records]
        if self.job == "grep":
            return [(found, "1") for _, line, _ in records for found in re.findall(self.pattern, line)]
        held, _ = self.sides()
        return [(line.split(",")[0], ("\0" if name == held[0][0] else "\1") + line) for _, line, name in records]

    def written(self, key: str, values: list) -> list:
        """The lines that the reducer writes for a group."""
        if self.job == "wordcount":
            return [f"{key}\t{sum(map(int, values))}"]
        if self.job == "sort":
            return [key] * len(values)
        if self.job == "grep":
            return []  # all at the end
        held_is_left = self.sides()[0] is self.tables[0]
        held = [value[1:] for value in values if value[0] == "\0"]
        streamed = [value[1:] for value in values if value[0] == "\1"]
        return [f"{one},{other}" if held_is_left else f"{other},{one}" for other in streamed for one in held]

    def whole(self) -> list:
        """All lines of the output, sorted."""
        if self.job == "grep" and self.only_maps:
            lines = [line for files in self.inputs() for _, data in files for _, line in lines_of(data)]
            return sorted(line.decode() for line in lines if re.search(self.pattern, line.decode()))
        if self.job == "join":
            left, right = ([line.decode() for _, line in lines_of(side[0][1])][1:] for side in self.tables)
            return sorted(f"{one},{two}" for one in left for two in right if one.split(",")[0] == two.split(",")[0])
        groups = collections.defaultdict(list)
        for split in self.splits():
            for key, value in self.pairs(self.records(split)):
                groups[key].append(value)
        if self.job == "grep":
            return sorted(f"{len(values)}\t{key}" for key, values in groups.items())
        return sorted(line for key, values in groups.items() for line in self.written(key, values))


# --- The one against the other ----------------------------------------------------------------------------------------


class Check:
    """A case, its story and its parts."""

    def __init__(self, case: Case, steps: list, text: str, parts: list):
        self.case, self.steps, self.text, self.parts = case, steps, text, parts
        self.splits = case.splits()
        self.homes, self.holders = {}, {}

    def all(self) -> None:
        self.check_text()
        self.check_input()
        self.check_places()
        maps = self.ended("map")
        same(sorted(maps), list(range(len(self.splits))), "maps that ended")
        self.read, self.emitted, self.output, self.hashes = {}, {}, {}, {}
        for map_, step in maps.items():
            self.check_map(map_, step)
        if not self.case.only_maps:
            reduces = self.ended("reduce")
            same(sorted(reduces), list(range(self.case.reduces)), "reduces that ended")
            for reduce, step in reduces.items():
                self.check_reduce(reduce, step)
            self.check_fetches()
        self.check_output()

    def check_text(self) -> None:
        meant = []
        for number, step in enumerate(self.steps):
            meant += [step["moment"], f"{number + 1}.", step["title"]]
            for kind, body in step["blocks"]:
                meant += [body] if kind == "words" else body if kind == "row" else [cell for cells in body for cell in cells]
        told, meant = ("".join(text.split()) for text in (self.text, " ".join(meant)))
        at = next((at for at, (one, two) in enumerate(zip(told, meant)) if one != two), min(len(told), len(meant)))
        expect(told == meant, f"the text and the page differ: {told[at - 20 : at + 40]!r} and {meant[at - 20 : at + 40]!r}")

    def ended(self, kind: str) -> dict:
        found = {}
        for step in self.steps:
            if title := re.match(kind + r"-(\d+) has ended after", step["title"]):
                expect(int(title[1]) not in found, f"{title[0]} twice")
                found[int(title[1])] = step
        return found

    def check_input(self) -> None:
        step = self.steps[1]
        count = len(self.splits)
        same(step["title"], f"The input is cut into {count} split" + ("s" if count != 1 else ""), "title")
        _, rows, more = table(step, "task")
        meant = []
        for map_, split in enumerate(self.splits):
            records = str(len(self.case.records(split)))
            for number, (name, begin, end) in enumerate(split):
                meant.append([f"map-{map_}" if number == 0 else "", name, f"{begin}..{end}", "" if number else records])
        same_list(rows, more, meant, "splits")

    def check_places(self) -> None:
        """A slot is given where one is free, and an order is sent ahead where none is."""
        for step in self.steps:
            sent = re.match(r"(map|reduce)-(\d+) is sent (ahead )?to (worker-\d+)", step["title"])
            if not sent:
                continue
            said = " ".join(words_of(step))
            free = int(re.search(r"Free: (\d+) of", said)[1])
            expect((free == 0) == bool(sent[3]), f"`{step['title']}` with {free} slots free")
            expect(("gives" in said) == (0 < free), f"`{step['title']}`: {said}")
            if sent[1] == "reduce":
                self.homes[int(sent[2])] = sent[4]

    def check_map(self, map_: int, step: dict) -> None:
        case = self.case
        records = case.records(self.splits[map_])
        expect(any(words == f"It read {count(len(records), 'record')}:" for words in words_of(step)), f"map-{map_}: how many records")
        _, rows, more = table(step, "byte")
        same_list(rows, more, [[str(at), shown(line)] for at, line, _ in records], f"records of map-{map_}")
        self.read[map_] = records
        if case.only_maps:
            self.check_part(map_, step)
            return
        pairs = case.pairs(records)
        self.emitted[map_] = pairs
        expect(step["title"].endswith(f": {count(len(pairs), 'pair')}"), f"{step['title']}: it emitted {len(pairs)}")
        told, more = row(step, "in this order:")
        same_list(told, more, [f"{shown(key)} → {shown(value)}" for key, value in pairs], f"pairs of map-{map_}")
        self.check_placed(map_, step, pairs)

    def check_part(self, map_: int, step: dict) -> None:
        """A map without reduces writes a part; one of a join looks things up in a table, told once for each worker."""
        if lines := [shown_line(line) for line in self.part_lines(map_)]:
            told, more = row(step, "is one part of the output:")
            same_list(told, more, lines, f"what map-{map_} wrote")
        else:
            expect(any(words.startswith("It wrote nothing") for words in words_of(step)), f"map-{map_} wrote nothing")
        if self.case.tables is None:
            return
        said = " ".join(words_of(step))
        if reader := re.search(r"(worker-\d+) read it once", said):
            expect(reader[1] not in self.holders, f"{reader[1]} read its table twice")
            self.holders[reader[1]] = str(map_)
            held = [(name, 0, len(data)) for name, data in self.case.sides()[0]]
            _, rows, more = table(step, "byte of the file")
            same_list(rows, more, [[str(at), shown(line)] for at, line, _ in self.case.records(held)], "rows that are held")
        else:
            holder = re.search(r"the table that (worker-\d+) has held since map-(\d+)\.", said)
            expect(holder is not None and self.holders.get(holder[1]) == holder[2], f"map-{map_} and the table: {said}")

    def check_placed(self, map_: int, step: dict, pairs: list) -> None:
        case = self.case
        head, rows, more = table(step, "partition")
        of_key = collections.defaultdict(list)
        for key, value in pairs:
            of_key[key].append(value)
        place = head.index("combined" if case.combines else "value")
        if case.combines:
            meant = collections.Counter(
                (shown(key), shown_values([shown(value) for value in values]), str(sum(map(int, values)))) for key, values in of_key.items()
            )
            told = collections.Counter((cells[1], cells[2], cells[3]) for cells in rows)
        else:
            meant = collections.Counter((shown(key), shown(value)) for key, value in pairs)
            told = collections.Counter((cells[1], cells[place]) for cells in rows)
        expect(not told - meant, f"map-{map_} never put out {list(told - meant)[:3]}")
        same(sum(told.values()), min(LIST_MAX, sum(meant.values())), f"pairs told of map-{map_}'s output")
        same(more, max(0, sum(meant.values()) - LIST_MAX), f"pairs of map-{map_}'s output not told")
        same([int(cells[0]) for cells in rows], sorted(int(cells[0]) for cells in rows), f"partitions of map-{map_}")
        for cells in rows:
            self.check_partition(cells, head)
        if not case.combines and not more:
            for partition in {cells[0] for cells in rows}:
                keys = [cells[1] for cells in rows if cells[0] == partition]
                if not any(key.endswith("…") for key in keys):
                    same(keys, sorted(keys, key=str.encode), f"map-{map_}, partition {partition}: order of keys")
        self.output[map_] = [(int(cells[0]), cells[1], cells[place]) for cells in rows] if not more else None
        filled = sorted({int(cells[0]) for cells in rows})
        if not more:
            words = next(words for words in words_of(step) if words.startswith(("The pairs of one partition", "It put out no pairs")))
            same([int(number) for number in re.findall(r"for partition (\d+)", words)], filled, f"segments of map-{map_}")

    def check_partition(self, cells: list, head: list) -> None:
        partition, key = int(cells[0]), cells[1]
        if "hash" not in head:
            expect(partition < self.case.reduces, f"{key}: partition {partition}")
            return
        told = int(cells[head.index("hash")], 16)
        if not key.endswith("…"):
            # A control character would stand here in another form; there are none in keys.
            meant = hash_of(meant_by(key).encode())
            expect(meant in (None, told), f"the hash of {key!r} is {meant}, not {told:016x}")
            same(self.hashes.setdefault(key, told), told, f"hash of {key!r}")
        same(partition, told * self.case.reduces >> 64, f"partition of {key!r}")

    def check_reduce(self, reduce: int, step: dict) -> None:
        case = self.case
        if self.is_cut():
            self.check_reduce_in_part(reduce, step)
            return
        segments = [(map_, [(key, value) for at, key, value in output if at == reduce]) for map_, output in sorted(self.output.items())]
        segments = [(map_, pairs) for map_, pairs in segments if pairs]
        if not segments:
            same(words_of(step)[0], "No map put out a pair for this partition, so its part is empty.", step["title"])
            same(self.part_lines(reduce), [], f"part {reduce}")
            return
        _, rows, more = table(step, "from")
        same([cells[:2] for cells in rows], [[f"map-{map_}", str(len(pairs))] for map_, pairs in segments], f"segments of reduce-{reduce}")
        if case.combines:
            read = [(map_, key, value) for map_, pairs in segments for key, value in pairs]
            told, more = row(step, "went in like this:")
        elif not self.is_told_apart():
            self.check_number_of_groups(reduce, step)
            return  # long keys that look alike, in several partitions
        else:
            read = self.merged(reduce)
            told, more = row(step, "That gave:")
        same_list(told, more, [f"{key} → {value} (map-{map_})" for map_, key, value in read], f"pairs of reduce-{reduce}")
        self.check_groups(reduce, step)

    def keys_of(self, reduce: int) -> list:
        """The whole keys of a partition, and their values, in the order of keys; by the partitions that were told and checked."""
        groups = collections.defaultdict(list)
        for map_ in sorted(self.emitted):
            for key, value in self.emitted[map_]:
                if self.partition_of(key) == reduce:
                    groups[key].append((map_, value))
        return sorted(groups.items(), key=lambda group: group[0].encode())

    def partition_of(self, key: str):
        """As far as it can be told from the words: long keys that look alike share one answer, or None if they do not."""
        if self.case.job != "sort":
            known = hash_of(key.encode())
            known = known if known is not None else self.hashes.get(shown(key))
            if known is not None:
                return known * self.case.reduces >> 64
        places = {place for output in self.output.values() for place, words, _ in output or [] if words == shown(key)}
        return places.pop() if len(places) == 1 else None

    def is_cut(self) -> bool:
        """Whether an output has more pairs than are shown."""
        return any(output is None for output in self.output.values())

    def is_told_apart(self) -> bool:
        return all(self.partition_of(key) is not None for pairs in self.emitted.values() for key, _ in pairs)

    def merged(self, reduce: int) -> list:
        """Pairs by key, then by map, then in the order in which they were emitted."""
        groups = self.keys_of(reduce)
        return [(map_, shown(key), shown(value)) for key, values in groups for map_, value in values]

    def check_groups(self, reduce: int, step: dict) -> None:
        self.check_number_of_groups(reduce, step)
        if not self.is_told_apart():
            return  # long keys that look alike, in several partitions
        groups = self.keys_of(reduce)
        expect(step["title"].endswith(f": {count(len(groups), 'group')}"), f"{step['title']}: there are {len(groups)}")
        _, rows, more = table(step, "key")
        meant = []
        for key, values in groups:
            values = [value for _, value in values]
            total = str(sum(map(int, values))) if self.case.combines else shown_values([shown(value) for value in values])
            written = " | ".join(shown_line(line) for line in self.case.written(key, values))
            meant.append([shown(key), total, written])
        same_list(rows, more, meant, f"groups of reduce-{reduce}")
        if self.case.job != "grep":
            lines = [line for key, values in groups for line in self.case.written(key, [value for _, value in values])]
            same(self.part_lines(reduce), lines, f"part {reduce}")

    def check_reduce_in_part(self, reduce: int, step: dict) -> None:
        """Of lists that are not told whole: their lengths, and that each group has the right total and output."""
        self.check_number_of_groups(reduce, step)
        totals = collections.defaultdict(list)
        for pairs in self.emitted.values():
            for key, value in pairs:
                totals[key].append(value)
        for key, told, written in table(step, "key")[1]:
            if not key.endswith("…"):
                values = totals[key]
                same(told, str(sum(map(int, values))) if self.case.combines else shown_values(values), f"group {key!r}")
                same(written, " | ".join(shown_line(line) for line in self.case.written(key, values)), f"written for {key!r}")

    def check_number_of_groups(self, reduce: int, step: dict) -> None:
        _, rows, more = table(step, "key")
        groups = int(re.search(r": (\d+) groups?$", step["title"])[1])
        same((len(rows), more), (min(groups, LIST_MAX), max(0, groups - LIST_MAX)), f"groups of reduce-{reduce}, told and not")

    def check_fetches(self) -> None:
        """Each segment comes to the worker of its reduce, and nothing is said to come that is not there."""
        came = set()
        for step in self.steps:
            if step["kind"] != "fetch":
                continue
            title = re.match(r"(worker-\d+) (fetches what|reads what|learns that) map-(\d+) made (nothing )?for it", step["title"])
            expect(bool(title), f"`{step['title']}`")
            # Before the last sentences, which say when; in the first step of all, behind those on what a home is.
            words, map_ = words_of(step)[-2], int(title[3])
            output = self.output[map_]
            if output is None:
                continue
            filled = {place for place, _, _ in output}
            nothing = "put out no pairs for it" in words
            same((title[2] == "learns that", bool(title[4])), (nothing, nothing), f"title of `{words}`")
            named = [int(number) for number in re.findall(r"reduce-(\d+)", words)]
            for reduce in named:
                expect((reduce in filled) != nothing, f"`{words}`, but map-{map_} put out pairs for {sorted(filled)}")
                same(self.homes[reduce], title[1], f"where reduce-{reduce} ran, by `{words}`")
                came.add((map_, reduce))
        for map_, output in self.output.items():
            for reduce in {place for place, _, _ in output or []}:
                expect((map_, reduce) in came, f"nobody fetched what map-{map_} made for reduce-{reduce}")

    def check_output(self) -> None:
        step = self.steps[-1]
        lines = [line for part in range(len(self.parts)) for line in self.part_lines(part)]
        same(step["title"], f"The output is published: {count(len(lines), 'record')}", "title")
        same(sorted(lines), self.case.whole(), "output")
        told = [(body, more_behind(step, at)) for at, (kind, body) in enumerate(step["blocks"]) if kind == "row"]
        same(len(told), len(self.parts), "parts")
        for part, (items, more) in enumerate(told):
            same_list(items, more, [shown_line(line) for line in self.part_lines(part)], f"part {part}")

    def part_lines(self, part: int) -> list:
        return self.parts[part].decode().split("\n")[:-1]


def count(number: int, one: str) -> str:
    return f"{number} {one}" + ("" if number == 1 else "s")


# --- Runs -------------------------------------------------------------------------------------------------------------


def run(case: Case, program: str, folder: pathlib.Path):
    """Runs a case; its steps, its text and its parts."""
    for name, data in case.all_files():
        (folder / name).write_bytes(data)
    command = case.command(program)
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=CASE_SECONDS_MAX, check=False)
    expect(done.returncode == 0, f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.decode()}")
    parts = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in sorted((folder / "out").glob("part-*"))]
    return steps_of((folder / "page.html").read_text()), done.stdout.decode(), parts


def rows_of(steps: list, kind: str, first: str) -> list:
    """The rows of all tables with this first column in steps of this kind."""
    bodies = [body for step in steps if step["kind"] == kind for what, body in step["blocks"] if what == "table"]
    return [body for body in bodies if body[0][0] == first and 1 < len(body)]


def lists_of(steps: list, kind: str) -> list:
    return [body for step in steps if step["kind"] == kind for what, body in step["blocks"] if what == "row" and body]


def change_first(lists: list, change) -> bool:
    if lists:
        change(lists[0])
    return bool(lists)


def raise_number(cells: list, at: int) -> None:
    cells[at] = str(int(cells[at]) + 1)


def without_fetch(steps: list) -> bool:
    """Leaves out a transfer of pairs."""
    for at, step in enumerate(steps):
        if step["kind"] == "fetch" and "put out no pairs" not in words_of(step)[-2]:
            del steps[at]
            return True
    return False


def with_empty_fetch(steps: list) -> bool:
    """Says that a transfer was for another reduce."""
    for step in steps:
        if step["kind"] == "fetch" and (found := re.search(r"reduce-(\d+)", step["blocks"][-2][1])):
            step["blocks"][-2][1] = step["blocks"][-2][1].replace(found[0], f"reduce-{int(found[1]) + 1}", 1)
            return True
    return False


def given_without_room(steps: list) -> bool:
    for step in steps:
        if step["kind"] == "placement" and " is sent to " in step["title"]:
            queue = next(block for block in step["blocks"] if "Free: " in block[1])
            queue[1] = re.sub(r"Free: \d+ of", "Free: 0 of", queue[1])
            return True
    return False


def one_more(steps: list) -> bool:
    """Changes how many items are not told."""
    for step in steps:
        for block in step["blocks"]:
            if block[0] == "words" and (found := re.match(r"… and (\d+) more\.", block[1])):
                block[1] = block[1].replace(found[1], str(int(found[1]) + 1), 1)
                return True
    return False


def another_hash(steps: list) -> bool:
    """Changes the hash of a key whose hash is computed here."""
    for body in rows_of(steps, "map", "partition"):
        for cells in body[1:] if "hash" in body[0] else []:
            if hash_of(meant_by(cells[1]).encode()) is not None:
                cells[body[0].index("hash")] = "f" * 16
                return True
    return False


LIES = {
    "a split that ends elsewhere": lambda steps: change_first(rows_of(steps, "input", "task"), lambda body: body[1].__setitem__(2, "1.." + body[1][2])),
    "a record left out": lambda steps: change_first(rows_of(steps, "map", "byte"), lambda body: body.pop()),
    "a record that begins elsewhere": lambda steps: change_first(rows_of(steps, "map", "byte"), lambda body: raise_number(body[-1], 0)),
    "a pair emitted twice": lambda steps: change_first(lists_of(steps, "map"), lambda items: items.append(items[0])),
    "another pair": lambda steps: change_first(lists_of(steps, "map"), lambda items: items.__setitem__(0, "other → 1")),
    "another partition": lambda steps: change_first(rows_of(steps, "map", "partition"), lambda body: raise_number(body[-1], 0)),
    "a pair lost by the combiner": lambda steps: change_first(rows_of(steps, "map", "partition"), lambda body: body.pop()),
    "another combined value": lambda steps: change_first(
        [body for body in rows_of(steps, "map", "partition") if "combined" in body[0]], lambda body: raise_number(body[1], 3)
    ),
    "another hash": another_hash,
    "a segment of another map": lambda steps: change_first(rows_of(steps, "reduce", "from"), lambda body: body[1].__setitem__(0, "map-99")),
    "a pair read from another map": lambda steps: change_first(
        lists_of(steps, "reduce"), lambda items: items.__setitem__(0, re.sub(r"map-\d+\)$", "map-99)", items[0]))
    ),
    "a row of a held table left out": lambda steps: change_first(rows_of(steps, "map", "byte of the file"), lambda body: body.pop()),
    "a group left out": lambda steps: change_first(rows_of(steps, "reduce", "key"), lambda body: body.pop()),
    "another total of a group": lambda steps: change_first(rows_of(steps, "reduce", "key"), lambda body: body[1].__setitem__(1, body[1][1] + "7")),
    "something else written": lambda steps: change_first(rows_of(steps, "reduce", "key"), lambda body: body[1].__setitem__(2, body[1][2] + "7")),
    "a fetch left out": without_fetch,
    "a fetch for another reduce": with_empty_fetch,
    "a slot given where none is free": given_without_room,
    "another line of the output": lambda steps: change_first(lists_of(steps, "output"), lambda items: items.__setitem__(0, items[0] + "7")),
    "another number of items not told": one_more,
}


# Those that must be caught where lists are too long to be told whole, too.
LIES_OF_LONG_LISTS = {"a group left out", "another total of a group", "something else written", "another number of items not told"}


def text_of(steps: list) -> str:
    """The text of a story, as far as it is compared."""
    said = []
    for number, step in enumerate(steps):
        said += [step["moment"], f"{number + 1}.", step["title"]]
        for kind, body in step["blocks"]:
            said += [body] if kind == "words" else body if kind == "row" else [cell for cells in body for cell in cells]
    return " ".join(said)


def self_test(arguments, folder: pathlib.Path) -> int:
    """Tells each lie about true stories; each must be caught whenever it can be told."""
    caught = collections.Counter()
    for number in range(64):
        case, place = Case(arguments.seed, number), folder / str(number)
        place.mkdir()
        steps, text, parts = run(case, arguments.program, place)
        check = Check(case, steps, text, parts)
        check.all()
        if not check.is_cut() and not check.is_told_apart():
            continue  # long keys that look alike, of which not everything can be known
        for name, lie in LIES.items():
            lied = copy.deepcopy(steps)
            if check.is_cut() and name not in LIES_OF_LONG_LISTS or not lie(lied):
                continue
            try:
                Check(case, lied, text_of(lied), parts).all()
            except (Wrong, KeyError, IndexError, ValueError, StopIteration):
                caught[name] += 1
            else:
                print(f"narration: `{name}` in case {number} of seed {arguments.seed} was not caught")
                return 1
        try:
            Check(case, steps, text + "x", parts).all()
            print("narration: a text that differs from the page was not caught")
            return 1
        except Wrong:
            pass
        if len(caught) == len(LIES) and 12 <= number:
            break
    missing = sorted(set(LIES) - set(caught))
    print(f"narration: {sum(caught.values())} lies of {len(caught)} kinds were caught; seed {arguments.seed}")
    if missing:
        print(f"narration: never told, so never tried: {', '.join(missing)}")
    return 1 if missing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/gristmill")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--case", type=int)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    arguments.program = str(pathlib.Path(arguments.program).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="narration-"))
    print(f"narration: seed {arguments.seed}", flush=True)
    if arguments.self_test:
        code = self_test(arguments, folder)
        if code == 0:
            shutil.rmtree(folder)
        return code
    until = time.monotonic() + arguments.seconds
    done = collections.Counter()
    numbers = [arguments.case] if arguments.case is not None else range(1_000_000)
    for number in numbers:
        case, place = Case(arguments.seed, number), folder / str(number)
        place.mkdir()
        try:
            Check(case, *run(case, arguments.program, place)).all()
        except (Wrong, KeyError, IndexError, ValueError, StopIteration, TypeError) as error:
            print(f"narration: case {number} of seed {arguments.seed}: {type(error).__name__}: {error}")
            print(f"narration: in {place}: {shlex.join(case.command(arguments.program))}")
            return 1
        shutil.rmtree(place)
        done[case.job] += 1
        if until < time.monotonic():
            break
    shutil.rmtree(folder)
    print(f"narration: {sum(done.values())} stories told what happened: {dict(sorted(done.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

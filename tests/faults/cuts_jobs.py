"""Random jobs of `cuts.py`, with the oracle of each."""
import json, os, pathlib, re, subprocess
from collections import Counter, defaultdict

PATTERN = "[0-4a-c]+"
UNPACK = {"none": ["", "cat"], "gzip": [".gz", "gzip", "-dc"], "zstd": [".zst", "zstd", "-dcq"], "bzip2": [".bz2", "bzip2", "-dc"]}


def draw_lines(rng, size: int, calm: bool) -> list:
    """Lines with a key, a tab, words and a number."""
    skew = rng.choice(["uniform", "uniform", "sorted"] + ["few keys", "long", "empty", "few lines", "one line"] * (not calm))
    count = {"few lines": rng.choice([20, 2000]), "long": 100}.get(skew, min(size // 20, 40_000))
    pool = [b"%d\t%s w%d %d" % (rng.randrange(10**rng.randrange(1, 8)), rng.choice([b"ab", b"b c", b"cc", b"", b"xa"]),
                                rng.randrange(3000), rng.randrange(10**6)) for _ in range(count)]
    prefix = b"p" * rng.choice([0, 4090, 5000])  # keys longer than 4 KiB are not cut
    change = {"few keys": lambda line: b"%d\t" % rng.randrange(3) + line, "empty": lambda line: b"", "one line": lambda line: pool[0],
              "long": lambda line: prefix + line + b" y" * rng.randrange(1, 4000)}.get(skew, lambda line: line)
    pool = [change(line) if skew == "long" or rng.random() < 0.7 else line for line in pool]
    lines = rng.choices(pool, k=max(1, size * len(pool) // (sum(map(len, pool)) + len(pool))))
    return sorted(lines) if skew == "sorted" else lines


class Job:
    """A drawn job: its command, and the expected rows. If it `combines`, reduces may read fewer pairs than maps emit."""
    def __init__(self, rng, directory: pathlib.Path, size: int, calm: bool):
        self.kind, self.out = rng.choice("wordcount sort sort sort join join join grep".split()), directory / "out"
        self.rng, self.directory = rng, directory
        self.reduces = 1 if self.kind == "grep" else rng.choice([1, 1, 2, 3, 4])
        self.end, self.cancel_after = rng.choices(["attached", "detached", "cancelled"], [6, 6, 1])[0], rng.random() * 6
        self.combines, field = self.kind in ("wordcount", "grep"), lambda line: line.split(b"\t")[0]
        directory.mkdir()
        lines, flags = self.tables(size) if self.kind == "join" else (draw_lines(rng, size // (3 if self.combines else 1), calm), [])
        if self.kind == "wordcount":
            self.rows = [b"%s\t%d" % pair for pair in Counter(b"\n".join(lines).split()).items()]
        elif self.kind == "grep":
            found, flags = Counter(re.findall(PATTERN.encode(), b"\n".join(lines))).items(), ["--count-matches", PATTERN]
            self.rows = [b"%d\t%s" % (count, word) for word, count in sorted(found, key=lambda it: (-it[1], it[0]))]
        elif self.kind == "sort":
            flags, key = rng.choice([([], None), ([], None), (["--reverse"], None), (["--field", "1", "--stable"], field),
                                     (["--field", "1"], lambda line: (field(line), line)), (["--field", "1", "--unique"], field)])
            self.rows, self.combines = sorted(lines, key=key, reverse="--reverse" in flags), "--unique" in flags
            self.rows = [row for at, row in enumerate(self.rows) if not (self.combines and at and field(row) == field(self.rows[at - 1]))]
        self.records_in, files = len(lines), [] if self.kind == "join" else self.write("in", lines)
        packed, whole = rng.choice(["none", "none", *UNPACK]), [] if calm else ["64MiB"] * (1 if self.kind == "join" else 3)
        split = rng.choice(["256KiB", "1MiB", *whole])
        self.plain = [self.kind, *flags, *files, "--reduces", str(self.reduces), "--split-size", split]
        blocks = rng.choice([[], ["--max-record", "64KiB"]])  # no block is longer: maps are divided between them
        self.command = self.plain + ["--compress-output", packed, *rng.choice([[], ["--no-sync"]]), *blocks] + rng.choice(
            [[], [], ["--priority", "3"], ["--deadline", "5s"], ["--weight", "4"], ["--pool", "p"]])
        self.suffix, *self.unpack = UNPACK[packed]

    def tables(self, size: int) -> tuple:
        rng, keys = self.rng, self.rng.choice([100, size // 100, size // 20])
        rows = lambda side, count: [b"%d,%s %d" % (rng.randrange(keys), side, row) for row in range(count)]
        hot = lambda side: [b"hot,%s %d" % (side, row) for row in range(rng.choice([0, 30, 200]))]
        left, right = rows(b"l" * rng.randrange(1, 40), size // 40) + hot(b"l"), rows(b"r", min(size // 40, 3 * keys)) + hot(b"r")
        kind, table = rng.choice(["inner", "inner", "left", "anti"]), defaultdict(list)
        for row in right:
            table[row.split(b",")[0]].append(b"," + row)
        alone = {"inner": [], "left": [b",,"], "anti": [b""]}[kind]
        self.rows = [row + other for row in left for found in [table.get(row.split(b",")[0])]
                     for other in (alone if not found else found if kind != "anti" else [])]
        files = ["--left", *self.write("l", left), "--right", *self.write("r", right)]
        return left + right, ["--on", "1", "--strategy", "repartition", "--type", kind, *files]

    def write(self, name: str, lines: list) -> list:
        """Spreads the lines over some files, whose last lines may lack their ends. Returns the paths."""
        cuts = [0, *sorted(self.rng.randrange(len(lines) + 1) for _ in range(self.rng.choice([0, 0, 1, 4]))), len(lines)]
        paths = [self.directory / f"{name}{number}.csv" for number in range(len(cuts) - 1)]
        for path, first, last in zip(paths, cuts, cuts[1:]):
            is_open = first < last and lines[last - 1] and self.rng.random() < 0.3
            path.write_bytes(b"".join(line + b"\n" for line in lines[first:last])[:-1 if is_open else None])
        return [str(path) for path in paths]

    def check(self, totals: dict, program: str) -> None:
        parts = [f"part-{number:05}{self.suffix}" for number in range(self.reduces)]
        assert sorted(os.listdir(self.out)) == ["_SUCCESS", *parts], f"the output directory contains {sorted(os.listdir(self.out))}"
        success, data = json.loads((self.out / "_SUCCESS").read_text())["parts"], [(self.out / part).read_bytes() for part in parts]
        assert [(part["name"], part["bytes"]) for part in success] == [(name, len(part)) for name, part in zip(parts, data)], "_SUCCESS"
        contents = [subprocess.run(self.unpack, input=part, stdout=subprocess.PIPE, check=True).stdout for part in data]
        found, grouped = b"".join(contents).split(b"\n")[:-1], self.kind in ("join", "wordcount")
        is_right = Counter(found) == Counter(self.rows) if grouped else found == self.rows
        assert is_right, f"the rows differ: {len(found)} instead of {len(self.rows)}"
        keys = [re.split(b"[,\t]", row)[0] for row in found] if grouped else []
        assert sum(one != two for one, two in zip(keys, keys[1:])) + bool(keys) == len(set(keys)), "a key is in two places"
        if self.kind == "join" and self.rng.random() < 0.5:  # the order of rows of a key is that without divisions
            output = self.directory / "plain"
            subprocess.run([program, "run", *self.plain, "--quiet", "--output", output], check=True)
            assert contents == [(output / f"part-{number:05}").read_bytes() for number in range(self.reduces)], "not as without divisions"
        expected = {"map_records_in": self.records_in, "records_out": len(self.rows), "bytes_out": sum(map(len, data))}
        expected |= {} if self.combines else {"reduce_records_in": totals["map_records_out"]}
        wrong = {name: (totals[name], value) for name, value in expected.items() if totals[name] != value}
        assert not wrong and sum(part["records"] for part in success) == len(self.rows), f"totals, found and expected: {wrong}; or records"

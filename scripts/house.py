#!/usr/bin/env python3
"""Counts what makes our Rust hard or easy to find one's way in: sizes, fields, parameters, names, circles of modules.

usage: scripts/house.py                 a table of all crates of this workspace, the largest things, the circles
       scripts/house.py --list          also names each function, type and name that the table counts
       scripts/house.py --json          everything as JSON
       scripts/house.py --self-test     counts made-up sources, of which every number is known

Rules, all by words of the source, without a compiler:
- Code is a line outside tests that holds more than blanks and comments; documentation is a comment.
- Tests are all below `tests/`, and what stands under `#[cfg(test)]`, in its own file or not.
- A file is as long as its lines outside tests, comments and blanks included. A function is as long as the lines from
  its `fn` to its last brace, the functions inside it included. Both only outside tests, as all that follows.
- A parameter list counts `self`. A type's fields are those of a struct, or of one variant of an enum.
- A type name is declared twice when two structs, enums, unions, traits or aliases of all crates have it.
- A `pub` name of a library is unused outside when its word stands in no other crate, nor in the library's own `tests/`,
  `benches/`, `examples/` and programs, nor in what macros write. Two things of one name hide each other, and a type
  that others hold without naming it counts as unused: read it as where to look, not as a verdict.
- Modules form a circle when those right below the root of a crate name each other (`crate::`, `super::`, re-exports of
  the root resolved): strongly connected components of two and more.
"""
import argparse
import collections
import json
import pathlib
import re
import signal
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION_LINES_MAX = 70
FIELDS_MAX = 15
PARAMETERS_MAX = 6

Token = collections.namedtuple("Token", "kind text line last")  # kind: word, sign, value; `last` is its last line

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<nested>/\*)
    |(?P<raw>(?:b|c)?r(?P<hashes>\#*)")
    |(?P<value>(?:b|c)?"(?:\\.|[^"\\])*"|b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\])'|\d[\w]*(?:\.\d[\w]*)?)
    |(?P<lifetime>'(?:r\#)?\w+)
    |(?P<word>(?:r\#)?[^\W\d]\w*)
    |(?P<sign>->|=>|::|.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a source, without comments. Strings, characters and numbers are values."""
    found, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        kind, end = match.lastgroup, match.end()
        if match["nested"]:
            kind, depth = "blank", 1
            while depth and (mark := re.compile(r"/\*|\*/").search(text, end)):
                depth += 1 if mark[0] == "/*" else -1
                end = mark.end()
            end = end if depth == 0 else len(text)
        elif match["raw"] is not None:
            kind, close = "value", '"' + match["hashes"]
            end = text.find(close, end)
            end = len(text) if end < 0 else end + len(close)
        piece = text[at:end]
        last = line + piece.count("\n")
        if kind not in ("blank", "lifetime"):
            found.append(Token(kind, piece.removeprefix("r#") if kind == "word" else piece, line, last))
        at, line = end, last
    return found


OPEN = {"(": ")", "[": "]", "{": "}"}


def closing(tokens: list[Token], at: int) -> int:
    """Where the bracket closes that opens at `at`."""
    depth = 0
    for place in range(at, len(tokens)):
        text = tokens[place].text if tokens[place].kind == "sign" else ""
        depth += (text in OPEN) - (text in OPEN.values())
        if depth == 0:
            return place
    return len(tokens) - 1


def commas(tokens: list[Token]) -> int:
    """How many things stand between commas, where angle brackets bracket as well."""
    depth, things, empty = 0, 0, True
    for token in tokens:
        text = token.text if token.kind == "sign" else "x"
        depth += (text in OPEN or text == "<") - (text in OPEN.values() or text == ">")
        if text == "," and depth == 0:
            empty = True
        elif empty:
            things, empty = things + 1, False
    return things


def item_end(tokens: list[Token], at: int) -> int:
    """The last token of the item whose attributes are behind: a `;` or the end of its braces."""
    while at < len(tokens):
        text = tokens[at].text if tokens[at].kind == "sign" else ""
        if text == "{":
            return closing(tokens, at)
        if text in ("(", "["):
            at = closing(tokens, at)
        elif text in (";", "}", ","):
            return at
        at += 1
    return len(tokens) - 1


def attribute(tokens: list[Token], at: int) -> str | None:
    """The text of the attribute that opens at `at`."""
    if tokens[at].text == "#" and at + 1 < len(tokens) and tokens[at + 1].text == "[":
        return "".join(token.text for token in tokens[at + 2 : closing(tokens, at + 1)])
    return None


def is_of_tests(said: str) -> bool:
    return said.startswith("cfg(") and re.search(r"\btest\b", said) is not None and "not(test" not in said


class Source:
    """One file: its tokens outside tests, the lines of both kinds, and the modules that it names."""

    def __init__(self, path: pathlib.Path, module: tuple, in_tests: bool):
        self.path, self.module, self.in_tests = path, module, in_tests
        text = path.read_text()
        everything = tokens_of(text)
        self.words = {token.text for token in everything if token.kind == "word"}
        self.test_functions, self.children, self.tokens, skipped = 0, [], [], 0
        at, until = 0, -1  # up to `until` the tokens are those of an item of tests
        while at < len(everything):
            token, said = everything[at], attribute(everything, at)
            if said is not None:
                self.test_functions += re.fullmatch(r"(\w+::)?test(\(.*\))?", said) is not None
                if at > until and is_of_tests(said):
                    behind = closing(everything, at + 1) + 1
                    while behind < len(everything) and attribute(everything, behind) is not None:
                        behind = closing(everything, behind + 1) + 1
                    until = item_end(everything, behind)
                    skipped += everything[until].last - token.line + 1
            if token.text == "mod" and token.kind == "word" and at + 2 < len(everything) and everything[at + 2].text == ";":
                self.children.append((everything[at + 1].text, at <= until))
            if at > until:
                self.tokens.append(token)
            at += 1
        lines = lambda tokens: {line for token in tokens for line in range(token.line, token.last + 1)}
        code = set() if in_tests else lines(self.tokens)
        self.code_lines = len(code)
        self.test_lines = len(lines(everything) - code)
        self.length = 0 if in_tests else text.count("\n") - skipped


class Target:
    """A library, a program or a test binary: the files that its root reaches by `mod`."""

    def __init__(self, root: pathlib.Path, in_tests: bool):
        self.sources = []
        open_files = [(root, (), in_tests)]
        while open_files:
            path, module, of_tests = open_files.pop(0)
            source = Source(path, module, of_tests)
            self.sources.append(source)
            is_root = path == root or path.name == "mod.rs"
            folder = path.parent if is_root else path.with_suffix("")
            for name, below_tests in source.children:
                files = [folder / f"{name}.rs", folder / name / "mod.rs"]
                files = [file for file in files if file.exists()]
                open_files += [(file, (*module, name), of_tests or below_tests) for file in files]
        self.sources.sort(key=lambda source: source.path)


class Crate:
    def __init__(self, folder: pathlib.Path):
        self.folder, self.name = folder, folder.name
        roots = {file for place in ("src/bin", "tests", "benches", "examples") for file in folder.glob(f"{place}/*.rs")}
        roots |= {file for place in ("src/bin", "tests", "benches", "examples") for file in folder.glob(f"{place}/*/main.rs")}
        roots |= {folder / "src/main.rs"}
        library = folder / "src/lib.rs"
        self.library = Target(library, False) if library.exists() else None
        is_test = lambda root: root.relative_to(folder).parts[0] == "tests"
        self.others = [Target(root, is_test(root)) for root in sorted(roots) if root.exists()]
        targets = ([self.library] if self.library else []) + self.others
        self.sources = list({source.path: source for target in targets for source in target.sources}.values())
        self.programs = [target for target in self.others if not target.sources[0].in_tests]


def functions(source: Source):
    """Name, lines and parameters of each function with a body or without."""
    tokens = source.tokens
    for at, token in enumerate(tokens[:-1]):
        if token.text != "fn" or token.kind != "word" or tokens[at + 1].kind != "word":
            continue
        place, depth = at + 2, 0
        while place < len(tokens) and (depth or tokens[place].text != "("):
            depth += (tokens[place].text == "<") - (tokens[place].text == ">")
            place += 1
        if place == len(tokens):
            continue
        close = closing(tokens, place)
        end = item_end(tokens, close + 1)
        yield tokens[at + 1].text, tokens[end].last - token.line + 1, commas(tokens[place + 1 : close]), token.line


def types(source: Source):
    """Name and number of fields of each type; of an enum the variant with the most. Associated types are none."""
    tokens, inside = source.tokens, []  # `inside`: ends of the impl and trait blocks that are open
    for at, token in enumerate(tokens[:-1]):
        inside = [end for end in inside if at < end]
        if token.text == "impl" and token.kind == "word" and (at == 0 or tokens[at - 1].text in (";", "}", "]", "{", "unsafe")):
            inside.append(item_end(tokens, at + 1))
        if token.kind != "word" or tokens[at + 1].kind != "word":
            continue
        name = tokens[at + 1].text
        if token.text == "trait" or (token.text == "type" and not inside):
            yield name, 0, token.line
            if token.text == "trait":
                inside.append(item_end(tokens, at + 1))
        elif token.text in ("struct", "enum") or (token.text == "union" and tokens[at + 2].text in ("{", "<")):
            end = item_end(tokens, at + 1)
            opening = next((place for place in range(at, end) if tokens[place].text == "{"), None)
            if opening is None:  # a tuple
                opening = next((place for place in range(at, end) if tokens[place].text == "("), end)
            if token.text != "enum":
                yield name, commas(fields_of(tokens, opening)), token.line
                continue
            yield name, 0, token.line
            depth = 0
            for place in range(opening, end):
                text = tokens[place].text
                if depth == 1 and text in ("{", "(") and tokens[place - 1].kind == "word":
                    yield f"{name}::{tokens[place - 1].text}", commas(fields_of(tokens, place)), tokens[place].line
                depth += (text in OPEN) - (text in OPEN.values())


def fields_of(tokens: list[Token], opening: int) -> list[Token]:
    """What stands between brackets, without attributes."""
    kept, at, end = [], opening + 1, closing(tokens, opening)
    while at < end:
        if attribute(tokens, at) is not None:
            at = closing(tokens, at + 1)
        else:
            kept.append(tokens[at])
        at += 1
    return kept


NAMING = ("fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod")


def pub_names(source: Source):
    tokens = source.tokens
    for at, token in enumerate(tokens[:-2]):
        if token.text != "pub" or token.kind != "word" or tokens[at + 1].kind != "word":
            continue
        place = at + 1
        while tokens[place].text in ("async", "unsafe", "extern", "mut") or tokens[place].kind == "value" or (
            tokens[place].text == "const" and tokens[place + 1].text in ("fn", "unsafe", "async", "extern")
        ):
            place += 1
        if tokens[place].text in NAMING and tokens[place + 1].kind == "word":
            yield tokens[place + 1].text, token.line


def paths(tokens: list[Token], at: int):
    """The paths, as lists of words, of a tree that begins at `at`: `a::{b, c::D as E}`. A rename ends in ("as", E)."""
    words = []
    while at < len(tokens):
        if tokens[at].kind == "word" and tokens[at].text == "as" and words:
            yield [*words, "as", tokens[at + 1].text]
            return
        if tokens[at].kind == "word":
            words.append(tokens[at].text)
        elif tokens[at].text == "{":
            end, depth, start = closing(tokens, at), 0, at + 1
            for place in range(at + 1, end + 1):
                text = tokens[place].text
                if place == end or (text == "," and depth == 0):
                    if start < place:
                        yield from ([*words, *rest] for rest in paths(tokens[start:place], 0))
                    start = place + 1
                depth += (text in OPEN) - (text in OPEN.values())
            return
        elif tokens[at].text == "*":
            words.append("*")
        at += 1
        if at >= len(tokens) or tokens[at].text != "::":
            if at < len(tokens) and tokens[at].text == "as" and tokens[at].kind == "word":
                continue
            break
        at += 1
    if words:
        yield words


def module_edges(target: Target) -> dict:
    """Which modules right below the root name which others, with one place of each."""
    modules = {source.module[0] for source in target.sources if source.module and not source.in_tests}
    root = target.sources[0]
    for source in target.sources:
        root = source if not source.module else root
    # Modules with their braces in the root are none of these: they have no file.
    exported = {}
    for at, token in enumerate(root.tokens):
        if token.text == "use" and token.kind == "word":
            for words in paths(root.tokens, at + 1):
                words = words[1:] if words[0] in ("crate", "self") else words
                if len(words) > 1 and words[0] in modules:
                    exported[words[-1]] = words[0]
    edges = {}
    for source in target.sources:
        if source.in_tests or not source.module:
            continue
        inline = []  # ends of the modules with braces that are open
        tokens = source.tokens
        for at, token in enumerate(tokens[:-1]):
            inline = [end for end in inline if at < end]
            if token.kind != "word":
                continue
            if token.text == "mod" and at + 2 < len(tokens) and tokens[at + 2].text == "{":
                inline.append(closing(tokens, at + 2))
            before = tokens[at - 1].text if at else ""
            if token.text not in ("crate", "super") or tokens[at + 1].text != "::" or before == "::":
                continue
            if before == "in":  # a visibility
                continue
            depth = len(source.module) + len(inline)
            for words in paths(tokens, at):
                up = 0
                while up < len(words) and words[up] == "super":
                    up += 1
                rest = words[1:] if words[0] == "crate" else words[up:]
                if (words[0] == "super" and up != depth) or not rest:
                    continue
                seen = rest[0] if rest[0] in modules else exported.get(rest[0])
                if seen is not None and seen != source.module[0]:
                    edges.setdefault((source.module[0], seen), f"{source.path}:{token.line}")
    return edges


def circles(edges) -> list[list[str]]:
    """Strongly connected components of two and more."""
    reach = collections.defaultdict(set)
    for first, second in edges:
        reach[first].add(second)
    def all_from(start):
        seen, waiting = set(), [start]
        while waiting:
            for after in reach[waiting.pop()] - seen:
                seen.add(after)
                waiting.append(after)
        return seen
    far = {node: all_from(node) for node in list(reach)}
    groups = {tuple(sorted(other for other in far[node] if node in far.get(other, ()))) for node in far if node in far[node]}
    return sorted(list(group) for group in groups)


def percentile95(numbers: list[int]) -> int:
    """The smallest number that 95 % of all do not exceed."""
    ordered = sorted(numbers)
    return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)] if ordered else 0


def longest(named: list[tuple[int, str]]) -> dict:
    lines, name = max(named, default=(0, ""))
    return {"lines": lines, "name": name}


def measure(root: pathlib.Path) -> dict:
    members = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["members"]
    crates = [Crate(root / member) for member in members]
    place = lambda source, line: f"{source.path.relative_to(root)}:{line}"
    report = {"crates": {}, "all": {}}
    names, all_files, all_functions = collections.defaultdict(list), [], []
    for crate in crates:
        plain = [source for source in crate.sources if not source.in_tests]
        files = [(source.length, str(source.path.relative_to(root))) for source in plain]
        called = [(lines, f"{name} ({place(source, line)})", inputs)
                  for source in plain for name, lines, inputs, line in functions(source)]
        declared = [(name, fields, place(source, line)) for source in plain for name, fields, line in types(source)]
        for name, _, where in declared:
            if "::" not in name:
                names[name].append(where)
        exported = collections.defaultdict(list)
        for source in crate.library.sources if crate.library else ():
            if not source.in_tests:
                for name, line in pub_names(source):
                    exported[name].append(place(source, line))
        elsewhere = {word for other in crates if other is not crate for source in other.sources for word in source.words}
        elsewhere |= {word for target in crate.others for source in target.sources for word in source.words}
        rings = [ring for target in [crate.library, *crate.programs] if target for ring in circles(module_edges(target))]
        edges = {f"{first} -> {second}": where for target in [crate.library, *crate.programs] if target
                 for (first, second), where in module_edges(target).items()
                 if any(first in ring and second in ring for ring in rings)}
        report["crates"][crate.name] = {
            "code_lines": sum(source.code_lines for source in crate.sources),
            "test_lines": sum(source.test_lines for source in crate.sources),
            "test_functions": sum(source.test_functions for source in crate.sources),
            "files": len(files),
            "longest_file": longest(files),
            "file_lines_p95": percentile95([lines for lines, _ in files]),
            "functions": len(called),
            "longest_function": longest([(lines, name) for lines, name, _ in called]),
            "function_lines_p95": percentile95([lines for lines, _, _ in called]),
            "long_functions": [f"{lines} {name}" for lines, name, _ in sorted(called, reverse=True) if lines > FUNCTION_LINES_MAX],
            "wide_types": [f"{fields} {name} ({where})" for name, fields, where in declared if fields > FIELDS_MAX],
            "many_parameters": [f"{inputs} {name}" for _, name, inputs in called if inputs > PARAMETERS_MAX],
            "pub_names": len(exported),
            "pub_unused_outside": sorted(f"{name} ({', '.join(where)})" for name, where in exported.items() if name not in elsewhere),
            "circles": rings,
            "circle_edges": {edge: str(pathlib.Path(where).relative_to(root)) for edge, where in edges.items()},
        }
        all_files += files
        all_functions += [(lines, name) for lines, name, _ in called]
    report["all"] = {
        "longest_file": longest(all_files),
        "file_lines_p95": percentile95([lines for lines, _ in all_files]),
        "longest_function": longest(all_functions),
        "function_lines_p95": percentile95([lines for lines, _ in all_functions]),
        "type_names": len(names),
        "type_names_repeated": {name: where for name, where in sorted(names.items()) if len(where) > 1},
    }
    return report


COLUMNS = [
    ("code lines", "code_lines"), ("test lines", "test_lines"), ("tests", "test_functions"), ("files", "files"),
    ("file p95", "file_lines_p95"), ("longest", "longest_file"), ("fns", "functions"), ("fn p95", "function_lines_p95"),
    ("longest", "longest_function"), (f"fns >{FUNCTION_LINES_MAX}", "long_functions"), (f"types >{FIELDS_MAX} fields", "wide_types"),
    (f"fns >{PARAMETERS_MAX} params", "many_parameters"), ("pub names", "pub_names"), ("unused outside", "pub_unused_outside"),
    ("in circles", "circles"),
]


def cell(key: str, value) -> str:
    if key == "circles":
        return str(sum(len(ring) for ring in value))
    if isinstance(value, dict):
        return str(value["lines"])
    return str(len(value) if isinstance(value, list) else value)


def show(report: dict, everything: bool) -> None:
    rows = [["crate"] + [title for title, _ in COLUMNS]]
    rows += [[name] + [cell(key, crate[key]) for _, key in COLUMNS] for name, crate in report["crates"].items()]
    whole = []
    for title, key in COLUMNS:
        if key in report["all"]:
            whole.append(cell(key, report["all"][key]))
        else:
            whole.append(str(sum(int(cell(key, crate[key])) for crate in report["crates"].values())))
    rows.append(["all"] + whole)
    # Crates side by side: one line for each count, because their names are longer than their numbers.
    columns = list(zip(*rows))
    widths = [max(len(line[at]) for line in columns) for at in range(len(rows))]
    for line in columns:
        print("  ".join([line[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(line[1:], widths[1:])]))
    print(f"\ntype names declared more than once: {len(report['all']['type_names_repeated'])} of {report['all']['type_names']}")
    for name, crate in report["crates"].items():
        print(f"\n{name}: longest file {crate['longest_file']['name']}, longest function {crate['longest_function']['name']}")
        for ring in crate["circles"]:
            print(f"  circle of {len(ring)}: {' '.join(ring)}")
        if not everything:
            continue
        for edge, where in crate["circle_edges"].items():
            print(f"    {edge}  {where}")
        for title, key in COLUMNS:
            if isinstance(crate[key], list) and key != "circles" and crate[key]:
                print(f"  {title}:")
                print("\n".join(f"    {line}" for line in crate[key]))
    if everything:
        print("\ntype names declared more than once:")
        for name, where in report["all"]["type_names_repeated"].items():
            print(f"  {len(where)} {name}: {' '.join(where)}")


SELF_TEST = {
    "Cargo.toml": '[workspace]\nmembers = ["low", "high"]\n',
    "low/src/lib.rs": """//! What it is.
pub mod east;
pub mod west;
mod north;
mod south;
pub use north::Needle;
#[cfg(test)]
mod tests;
""",
    # 11 lines of code: a comment inside a string is none, one inside a comment ends where both have ended.
    "low/src/east.rs": r'''//! East.
use crate::west::{self, Wind};

/* fn no() { /* nested */ } pub struct No; */
pub struct Twice<T: Fn(u8) -> Option<u8>> { pub first: T, pub second: Vec<(u8, u8)> }
/// Not `crate::south::Nothing`.
pub fn many<'a, F: Fn(u8, u8) -> u8>(&self, a: &'a str, b: F, c: HashMap<u8, u8>, d: [u8; 4], e: (u8, u8), f: char) {
    let text = "// } crate::south::Nothing \" {";
    let raw = r#"fn no() { " } "#;
    let signs = ['{', '\'', '"', b'{' as char, '\u{7b}'];

    west::blow(text, raw, signs, 1.0, 0..2)
}
#[cfg(not(test))]
pub type Alias = u8;
pub(crate) struct Hidden;
''',
    # West names east, through the root's re-export it names north; south names nobody but itself.
    "low/src/west.rs": """//! West.
pub struct Wind(u8, u8);
pub fn blow() { let _ = super::east::many; let _ = crate::Needle; }
impl Iterator for Wind { type Item = u8; fn next(&mut self) -> Option<u8> { None } }
pub trait Force { type Twice; const fn none(); }
#[cfg(test)]
mod tests {
    use crate::south::South;
    #[test]
    fn one() {}
    struct Wind;
}
""",
    "low/src/north.rs": "//! North.\npub struct Needle { " + " ".join(f"pub f{n}: Map<u8, u8>," for n in range(16)) + " }\nmod deep;\n",
    "low/src/north/deep.rs": "//! Deep.\nuse super::super::south;\nuse super::Needle;\nenum Twice { A { " + ", ".join(f"f{n}: u8" for n in range(17)) + " }, B(u8) }\n",
    "low/src/south.rs": "//! South.\npub struct South;\nimpl South {\n    pub const unsafe fn long() {\n" + "        work();\n" * 69 + "    }\n}\nmod own { use super::South; use crate::south; }\n",
    "low/src/tests.rs": "use crate::north::Needle;\nmod more;\n#[test]\nfn two() {}\n",
    "low/src/tests/more.rs": "proptest! {\n    #[test]\n    fn three(a in 0..1) {}\n}\n",
    "low/tests/it/main.rs": "#[tokio::test(flavor = \"current_thread\")]\nasync fn four() { low::east::many(); }\n",
    # A circle through a re-export and a rename.
    "high/src/lib.rs": "//! High: `Alias` is only in a comment.\nmod user;\nmod tool;\npub use user::{own::User as Person, x};\n",
    "high/src/user.rs": "//! User.\npub fn main() { low::west::blow(low::Needle); \"South\"; }\nuse super::{tool as other};\n",
    "high/src/tool.rs": "//! Tool.\nfn use_it(person: crate::Person) {}\n",
}


def self_test() -> None:
    """Ends with code 1 if a count is not the one that is known."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SELF_TEST.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        report = measure(pathlib.Path(folder))
    low, high = report["crates"]["low"], report["crates"]["high"]
    known = [
        ("code of low", low["code_lines"], 5 + 11 + 4 + 2 + 3 + 75),
        ("tests of low", low["test_lines"], 2 + 7 + 4 + 4 + 2),
        ("test functions", low["test_functions"], 4),
        ("files of low", low["files"], 6),
        ("longest file", low["longest_file"], {"lines": 76, "name": "low/src/south.rs"}),
        ("functions", low["functions"], 5),
        ("longest function", low["longest_function"], {"lines": 71, "name": "long (low/src/south.rs:4)"}),
        ("functions over 70", low["long_functions"], ["71 long (low/src/south.rs:4)"]),
        ("many parameters", low["many_parameters"], ["7 many (low/src/east.rs:7)"]),
        ("wide types", [each.split(" (")[0] for each in low["wide_types"]], ["17 Twice::A", "16 Needle"]),
        ("p95 of functions", low["function_lines_p95"], 71),
        ("repeated", list(report["all"]["type_names_repeated"]), ["Twice"]),
        ("type names", report["all"]["type_names"], 8 - 1),
        ("pub of low", low["pub_names"], 11),
        ("unused outside", [each.split(" ")[0] for each in low["pub_unused_outside"]], ["Alias", "Force", "South", "Twice", "Wind", "long"]),
        ("circles of low", low["circles"], [["east", "west"]]),
        ("its edges", sorted(low["circle_edges"]), ["east -> west", "west -> east"]),
        ("circles of high", high["circles"], [["tool", "user"]]),
        ("code of high", high["code_lines"], 6),
        ("p95", [percentile95(list(range(1, n + 1))) for n in (1, 20, 100)], [1, 19, 95]),
        ("three in a circle", circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")]), [["a", "b", "c"]]),
    ]
    wrong = [f"house.py: {name}: expected {right}, counted {counted}" for name, counted, right in known if counted != right]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"house.py: {len(known)} counts are as they should be", file=sys.stderr)


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader who has seen enough is no error
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    flags = parser.parse_args()
    if flags.self_test:
        self_test()
        return
    report = measure(ROOT)
    if flags.json:
        print(json.dumps(report, indent=1))
    else:
        show(report, flags.list)


if __name__ == "__main__":
    main()

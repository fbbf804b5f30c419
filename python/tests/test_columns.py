"""Batches of pairs: what goes in comes out, and what has no column is sent by itself."""
import io
import itertools
import random

import pytest

from gristmill import columns, typed_bytes


def values(draw):
    kind = draw.randrange(7)
    return [
        lambda: draw.choice(["", "a", "bb", "ü", "\udcff", "zero\0byte"]),
        lambda: draw.choice([0, -1, 2**31, -(2**63), 2**63 - 1]),
        lambda: 2**70,
        lambda: draw.random(),
        lambda: None,
        lambda: ("a", draw.randrange(9)),
        lambda: [draw.randrange(9)],
    ][kind]


def written(pairs):
    out = io.BytesIO()
    writer = columns.Writer(out, True)
    writer.pairs("mapper", pairs)
    writer.flush()
    assert writer.written == len(out.getvalue()) and writer.count == len(pairs)
    return out.getvalue()


def test_a_reducer_reads_what_a_batch_of_strings_and_numbers_holds():
    for seed in range(200):
        draw = random.Random(seed)
        make = draw.choice([lambda: "x", lambda: draw.randrange(9), draw.random])
        pairs = [(draw.choice(["", "a", "ü", "\udcff"]), make()) for _ in range(draw.randrange(1, 40))]
        found = list(columns.read(io.BufferedReader(io.BytesIO(columns.encoded(*zip(*pairs)))), False))
        assert found == pairs, seed


def test_a_string_is_the_same_key_in_a_batch_and_by_itself():
    pairs = [("a", 1), ("a", None), ("a", 2.0), ("b", 3)]
    data = b"".join(columns.encoded([key], [value]) for key, value in pairs)
    read = columns.read(io.BufferedReader(io.BytesIO(data)), False)
    groups = [(key, [value for _, value in group]) for key, group in itertools.groupby(read, key=lambda pair: pair[0])]
    assert groups == [("a", [1, None, 2.0]), ("b", [3])]


def test_columns_are_of_one_kind_and_keep_to_their_limits():
    assert columns.column(["a", 1]) is None
    assert columns.column([True, False]) is None
    assert columns.column([2**63]) is None
    assert columns.column(["zero\0byte"]) is None
    assert columns.column([(), ()]) is None
    assert columns.column([("a", 1), ("b",)]) is None
    assert columns.column(["a", "b"]) is not None


def test_a_batch_of_large_values_is_written_as_several():
    pairs = [(str(number), "x" * (1 << 20)) for number in range(40)]
    data = written(pairs)
    assert data.count(columns.MARK) > 2
    assert list(columns.read(io.BufferedReader(io.BytesIO(data)), False)) == pairs


def test_pairs_of_any_kind_are_written_in_order():
    for seed in range(100):
        draw = random.Random(seed)
        pairs = [("k", values(draw)()) for _ in range(draw.randrange(1, 30))]
        data = written(pairs)
        if data.startswith(columns.MARK):
            continue
        singles = list(typed_bytes.pairs(io.BytesIO(data), True))
        assert [(typed_bytes.decode(key)[0], value) for key, value in singles] == pairs, seed


def test_what_is_no_pair_is_named():
    for wrong in ("ab", ("a",), ["a", 1]):
        with pytest.raises(TypeError, match="the mapper gave .* where a pair"):
            columns.Writer(io.BytesIO(), True).pairs("mapper", [("a", 1), wrong])
    with pytest.raises(TypeError, match="a key of type list"):
        columns.encoded([["a"]], [1])


def test_a_value_that_its_function_changes_later_is_sent_as_it_was():
    def rows():
        row = [0]
        for number in range(3):
            row[0] = number
            yield "k", row
            yield "t", (row, number)

    found = [value for _, value in typed_bytes.pairs(io.BytesIO(written_of(rows())), False)]
    assert found == [[0], ([0], 0), [1], ([1], 1), [2], ([2], 2)]


def written_of(pairs):
    out = io.BytesIO()
    writer = columns.Writer(out, True)
    writer.pairs("mapper", pairs)
    writer.flush()
    return out.getvalue()

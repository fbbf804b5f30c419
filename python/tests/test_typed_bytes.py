"""Typed bytes encoded and decoded, and against the encoder of the program's tests (written from Hadoop's
documentation)."""
import io
import random

import pytest

from gristmill import typed_bytes

# Values with their bytes in the format.
KNOWN = [
    (b"ab", "00 00000002 6162"), (True, "02 01"), (-2, "03 fffffffe"), (1 << 40, "04 0000010000000000"),
    (1.5, "06 3ff8000000000000"), ("é", "07 00000002 c3a9"), ((1,), "08 00000001 03 00000001"), ([False], "09 02 00 ff"),
    ({"a": 1}, "0a 00000001 07 00000001 61 03 00000001"),
]


@pytest.mark.parametrize("value, expected", KNOWN)
def test_values_have_the_bytes_of_the_format(value, expected):
    assert typed_bytes.encoded(value) == bytes.fromhex(expected)
    assert typed_bytes.decode(bytes.fromhex(expected)) == (value, len(bytes.fromhex(expected)))


def test_codes_that_python_does_not_write_are_read():
    assert typed_bytes.decode(b"\x01\xff") == (-1, 2)
    assert typed_bytes.decode(b"\x05\x3f\xc0\0\0") == (1.5, 5)
    assert typed_bytes.decode(b"\x90\0\0\0\x01x") == (b"x", 6)
    with pytest.raises(ValueError, match="12 is no code"):
        typed_bytes.decode(b"\x0c")


def drawn(random_: random.Random, depth: int = 0):
    """Returns a random value."""
    kinds = 7 if depth > 2 else 10
    kind = random_.randrange(kinds)
    several = range(random_.randrange(4))
    return [
        lambda: None, lambda: random_.random() < 0.5, lambda: random_.randint(-(1 << 70), 1 << 70), lambda: random_.randint(-300, 300),
        lambda: random_.random(), lambda: "".join(random_.choice("aé\udcff\n\t") for _ in several), lambda: random_.randbytes(len(several)),
        lambda: tuple(drawn(random_, depth + 1) for _ in several), lambda: [drawn(random_, depth + 1) for _ in several],
        lambda: {number: drawn(random_, depth + 1) for number in several},
    ][kind]()


class Dripping(io.RawIOBase):
    """Returns a few bytes at a time."""

    def __init__(self, data: bytes, random_: random.Random):
        self.data, self.random = data, random_

    def read(self, size=-1):
        count = self.random.randint(1, 3)
        piece, self.data = self.data[:count], self.data[count:]
        return piece


@pytest.mark.parametrize("seed", range(20))
def test_pairs_come_back_however_bytes_come(seed):
    random_ = random.Random(seed)
    values = [(drawn(random_), drawn(random_)) for _ in range(50)]
    data = b"".join(typed_bytes.with_lengths(*map(typed_bytes.encoded, pair)) for pair in values)
    for stream in (io.BytesIO(data), Dripping(data, random_)):
        assert [(typed_bytes.decode(key)[0], value) for key, value in typed_bytes.pairs(stream, False)] == values
    with pytest.raises(ValueError, match="in the middle of a pair"):
        list(typed_bytes.pairs(io.BytesIO(data[:-1]), False))


def test_keys_without_a_form_of_their_own_are_refused():
    for key in (None, 1, "a", b"a", (1, ("a", None)), 1 << 99):
        typed_bytes.check_key(key)
    for key in (frozenset("ab"), (1, [2]), object(), {}):
        with pytest.raises(TypeError, match="keys are str"):
            typed_bytes.check_key(key)


class Hostile:
    """An object that pickles as a call of a function."""

    def __reduce__(self):
        return len, ("abc",)


@pytest.mark.parametrize("value", [Hostile(), [Hostile()], (1, {"a": Hostile()}), {1}])
def test_objects_are_unpickled_only_where_it_is_allowed(value):
    data = typed_bytes.encoded(value)
    with pytest.raises(ValueError, match="pickled=True"):
        typed_bytes.decode(data)
    with pytest.raises(ValueError, match="pickled=True"):
        list(typed_bytes.pairs(io.BytesIO(typed_bytes.with_lengths(typed_bytes.encoded("key"), data)), False))
    assert typed_bytes.decode(data, pickled=True)[1] == len(data)

"""Batches of pairs for the program: keys and values as columns, which take no call for each pair.

A batch takes the place of a pair. It starts with [`MARK`] where a pair has the length of its key, then the number of its bytes,
the number of pairs, a column of keys and one of values. A column has a letter and its content: `s` the number of bytes of
strings with a zero byte between them, `q` and `d` 64-bit integers and floats, little-endian. Pairs of other kinds are sent
one by one, as typed bytes.
"""
from __future__ import annotations

import itertools
import struct
import sys
from array import array
from typing import Any, BinaryIO, Iterable, Iterator, List, Optional, Sequence, Tuple

from . import typed_bytes

MARK = b"\xff\xff\xff\xff"
# Maximum number of pairs of a batch: few enough to stay in the processor's cache.
PAIRS_MAX = 512
# Bytes of batches that are written at once, and of values of one batch.
BYTES = 1 << 16
# Bytes above which a batch is written as two.
BATCH_BYTES_MAX = 1 << 24
_LENGTH = struct.Struct(">I")
_TEXT = bytes((typed_bytes.TEXT,))
_ENCODING = ("utf-8", "surrogateescape")


def column(values: Sequence[Any]) -> Optional[List[bytes]]:
    """Returns values as a column; `None` if they are not of one kind that has columns."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind is str:
        text = "\0".join(values)
        if text.count("\0") != len(values) - 1:
            return None
        data = text.encode(*_ENCODING)
        return [b"s", _LENGTH.pack(len(data)), data]
    if kind is int or kind is float:
        letter = "q" if kind is int else "d"
        try:
            numbers = array(letter, values)
        except OverflowError:
            return None
        if sys.byteorder == "big":
            numbers.byteswap()
        return [letter.encode(), numbers.tobytes()]
    return None


def encoded(keys: Sequence[Any], values: Sequence[Any]) -> bytes:
    """Returns pairs as a batch if they have columns, else one by one."""
    of_keys = column(keys)
    of_values = column(values) if of_keys is not None else None
    if of_keys is None or of_values is None:
        pieces = []
        for key, value in zip(keys, values):
            typed_bytes.check_key(key)
            pieces.append(typed_bytes.with_lengths(typed_bytes.encoded(key), typed_bytes.encoded(value)))
        return b"".join(pieces)
    body = b"".join([_LENGTH.pack(len(keys)), *of_keys, *of_values])
    if len(body) > BATCH_BYTES_MAX and len(keys) > 1:
        half = len(keys) // 2
        return encoded(keys[:half], values[:half]) + encoded(keys[half:], values[half:])
    return MARK + _LENGTH.pack(len(body)) + body


# Values that cannot change after they were given.
PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


def settled(value: Any, pickled: bool) -> Tuple[Any, int]:
    """Returns a value that is not plain as it is now, and its bytes: its function may change it as soon as it goes on."""
    data = typed_bytes.encoded(value, pickled)
    if type(value) is tuple and PLAIN.issuperset(map(type, value)):
        return value, len(data)
    return typed_bytes.decode(data, 0, True)[0], len(data)


class Collector:
    """Takes pairs of functions, and hands them on as keys and values: few at a time, which stay in the processor's cache."""

    def __init__(self, pickled: bool) -> None:
        self.pickled = pickled
        self._keys: List[Any] = []
        self._values: List[Any] = []
        # Bytes of the collected values that have a length.
        self._size = 0

    def pairs(self, role: str, pairs: Iterable[Tuple[Any, Any]]) -> None:
        """Takes pairs that the function of this role gave."""
        keys, values, size = self._keys, self._values, self._size
        for pair in pairs:
            if type(pair) is not tuple or len(pair) != 2:
                raise TypeError(f"the {role} gave {pair!r} where a pair (key, value) was expected")
            key, value = pair
            kind = type(value)
            if kind is not int:
                if kind is str or kind is bytes:
                    size += len(value)
                elif kind not in PLAIN:
                    value, more = settled(value, self.pickled)
                    size += more
            keys.append(key)
            values.append(value)
            if len(keys) >= PAIRS_MAX or size >= BYTES:
                self._size = size
                self.hand_on()
                keys, values, size = self._keys, self._values, 0
        self._size = size

    def hand_on(self) -> None:
        """Hands on what was collected."""
        if self._keys:
            keys, self._keys = self._keys, []
            values, self._values = self._values, []
            size, self._size = self._size, 0
            self._take(keys, values, size)

    def _take(self, keys: List[Any], values: List[Any], size: int) -> None:
        raise NotImplementedError


class Writer(Collector):
    """Writes pairs in batches."""

    def __init__(self, out: BinaryIO, pickled: bool) -> None:
        super().__init__(pickled)
        self._out = out
        self._batches: List[bytes] = []
        self._bytes = 0
        # Numbers of bytes and of pairs that have been written.
        self.written = 0
        self.count = 0

    def _take(self, keys: List[Any], values: List[Any], size: int) -> None:
        batch = encoded(keys, values)
        self._batches.append(batch)
        self._bytes += len(batch)
        self.count += len(keys)
        if self._bytes >= BYTES:
            self._write()

    def _write(self) -> None:
        self._out.write(b"".join(self._batches))
        self._out.flush()
        self.written += self._bytes
        self._batches, self._bytes = [], 0

    def flush(self) -> None:
        """Writes what was collected."""
        self.hand_on()
        if self._batches:
            self._write()


def read(stream: BinaryIO, pickled: bool) -> Iterator[Tuple[Any, Any]]:
    """Yields the pairs of a stream. A key is a string, or the typed bytes of another one."""
    return itertools.chain.from_iterable(_batches(stream, pickled))


def key_of(key: Any) -> Any:
    """Returns a key of [`read`] as the function gets it."""
    return key if type(key) is str else typed_bytes.decode(key)[0]


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ValueError(f"the data ends in the middle of a pair, of which {len(data)} of {count} bytes are there")
    return data


def _batches(stream: BinaryIO, pickled: bool) -> Iterator[Iterable[Tuple[Any, Any]]]:
    while True:
        start = stream.read(4)
        if not start:
            return
        length = _LENGTH.unpack(start + _exactly(stream, 4 - len(start)) if len(start) < 4 else start)[0]
        if start != MARK:
            key = _exactly(stream, length)
            value = _exactly(stream, _LENGTH.unpack(_exactly(stream, 4))[0])
            # A string is the same key in a batch and outside.
            text = typed_bytes.decode(key)[0] if key[:1] == _TEXT else key
            yield ((text, typed_bytes.decode(value, 0, pickled)[0]),)
            continue
        body = _exactly(stream, _LENGTH.unpack(_exactly(stream, 4))[0])
        count = _LENGTH.unpack_from(body)[0]
        keys, at = _column(body, 4, count)
        values, _ = _column(body, at, count)
        yield zip(keys, values)


def _column(data: bytes, at: int, count: int) -> Tuple[Sequence[Any], int]:
    """Returns the column that starts at `at`, and its end."""
    letter = data[at : at + 1]
    if letter == b"s":
        end = at + 5 + _LENGTH.unpack_from(data, at + 1)[0]
        return data[at + 5 : end].decode(*_ENCODING).split("\0"), end
    end = at + 1 + 8 * count
    numbers = array(letter.decode(), data[at + 1 : end])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers, end


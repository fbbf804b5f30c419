"""Typed bytes, Hadoop's binary form of values, to and from Python's own types; and pairs of them, each with its length in front.

| Python | code | back as |
|---|---|---|
| bytes | 0 | bytes |
| bool | 2 | bool |
| int of 32, of 64 bits | 3, 4 | int |
| float | 6 | float |
| str | 7 | str; bytes that are not UTF-8 as surrogates, as in file names |
| tuple | 8 | tuple |
| list | 9 | list |
| dict | 10 | dict |
| anything else | 100 | by pickle: None and longer int always, other objects only if `pickled` allows it |

Unpickling runs code that the bytes name, so `pickled` must be off for bytes from others.
Pairs are grouped by the bytes of their keys, so a key must have only one form: [`check_key`] accepts such keys.
"""
from __future__ import annotations

import pickle
import re
import struct
from typing import Any, BinaryIO, Callable, Iterator, List, Tuple

BYTES, BYTE, BOOL, INT, LONG, FLOAT, DOUBLE, TEXT, VECTOR, LIST, MAP = range(11)
PICKLED = 100
# Application-specific types have codes from 50 to 200.
OWN_MIN, OWN_MAX = 50, 200
MARKER = 255
PICKLE_PROTOCOL = 4
# Workers whose functions were sent by value send classes of the script so too.
dumps: Callable[..., bytes] = pickle.dumps
# The pickles of None and of an int, which are read without unpickling.
_NONE = pickle.dumps(None, PICKLE_PROTOCOL)
_LONG_INT = re.compile(rb"\x80\x04(?:\x95.{8})?(?:\x8a.|\x8b.{4})(.*)\.", re.DOTALL)
# Bytes that are read at once, unless a pair needs more.
READ_BYTES = 1 << 16

_INT, _LONG, _FLOAT, _DOUBLE, _LENGTH = (struct.Struct(form) for form in (">i", ">q", ">f", ">d", ">I"))
_ENCODING = ("utf-8", "surrogateescape")


class Short(ValueError):
    """The data ends within a value."""


def _counted(code: int, content: bytes) -> bytes:
    if len(content) >= 1 << 31:
        raise ValueError(f"a value of {len(content)} bytes has no place in typed bytes, which take 2 GiB")
    return bytes((code,)) + _LENGTH.pack(len(content)) + content


def encoded(value: Any, pickled: bool = True) -> bytes:
    """Returns a value as typed bytes. Raises `TypeError` for objects that are pickled, unless `pickled` allows them."""
    kind = type(value)
    if kind is str:
        return _counted(TEXT, value.encode(*_ENCODING))
    if kind is int:
        if -(1 << 31) <= value < 1 << 31:
            return b"\x03" + _INT.pack(value)
        if -(1 << 63) <= value < 1 << 63:
            return b"\x04" + _LONG.pack(value)
    elif kind is float:
        return b"\x06" + _DOUBLE.pack(value)
    elif kind is bool:
        return b"\x02\x01" if value else b"\x02\x00"
    elif kind is bytes:
        return _counted(BYTES, value)
    elif kind is tuple:
        return b"\x08" + _LENGTH.pack(len(value)) + b"".join([encoded(item, pickled) for item in value])
    elif kind is list:
        return b"\x09" + b"".join([encoded(item, pickled) for item in value]) + b"\xff"
    elif kind is dict:
        pairs = b"".join([encoded(key, pickled) + encoded(item, pickled) for key, item in value.items()])
        return b"\x0a" + _LENGTH.pack(len(value)) + pairs
    elif value is not None and not pickled:
        raise TypeError(
            f"a value of type {kind.__name__} is not sent as it is: give plain values (None, bool, int, float, str, bytes, list, "
            "tuple, dict; .item() of numpy's), or Job(..., pickled=True) if you trust every worker"
        )
    return _counted(PICKLED, dumps(value, PICKLE_PROTOCOL))


_KEYS = (str, int, float, bool, bytes, type(None))


def check_key(key: Any) -> None:
    """Refuses a key whose bytes may differ between equal values."""
    if type(key) is tuple:
        for part in key:
            check_key(part)
    elif type(key) not in _KEYS:
        raise TypeError(
            f"a key of type {type(key).__name__} is not supported: keys are str, int, float, bool, bytes, None, and tuples "
            "of them"
        )


def _length(data: bytes, at: int) -> int:
    if at + 4 > len(data):
        raise Short
    length: int = _INT.unpack_from(data, at)[0]
    if length < 0:
        raise ValueError(f"a length of {length} in typed bytes")
    return length


def _slice(data: bytes, at: int) -> Tuple[bytes, int]:
    end = at + 4 + _length(data, at)
    if end > len(data):
        raise Short
    return data[at + 4 : end], end


def _unpickled(content: bytes, pickled: bool) -> Any:
    if content == _NONE:
        return None
    number = _LONG_INT.fullmatch(content)
    if number:
        return int.from_bytes(number[1], "little", signed=True)
    if not pickled:
        raise ValueError(
            "a value is a pickled object, and reading it runs any code that a worker wrote into it: give the job plain values (None, "
            "bool, int, float, str, bytes, list, tuple, dict), or Job(..., pickled=True) if you trust every worker"
        )
    return pickle.loads(content)


def decode(data: bytes, at: int = 0, pickled: bool = False) -> Tuple[Any, int]:
    """Returns the value that starts at `at`, and its end. Raises `Short` if it ends after the data.

    `pickled` allows objects, which run the code that their bytes name.
    """
    try:
        code = data[at]
        at += 1
        if code == TEXT:
            content, at = _slice(data, at)
            return content.decode(*_ENCODING), at
        if code == INT:
            return _INT.unpack_from(data, at)[0], at + 4
        if code == LONG:
            return _LONG.unpack_from(data, at)[0], at + 8
        if code == DOUBLE:
            return _DOUBLE.unpack_from(data, at)[0], at + 8
        if code == FLOAT:
            return _FLOAT.unpack_from(data, at)[0], at + 4
        if code == BOOL:
            return data[at] != 0, at + 1
        if code == BYTE:
            return data[at] - 256 if data[at] > 127 else data[at], at + 1
    except (IndexError, struct.error):
        raise Short from None
    if code == VECTOR:
        items, at = _several(data, at + 4, _length(data, at), pickled)
        return tuple(items), at
    if code == LIST:
        items = []
        while data[at : at + 1] != b"\xff":
            item, at = decode(data, at, pickled)
            items.append(item)
        return items, at + 1
    if code == MAP:
        items, at = _several(data, at + 4, 2 * _length(data, at), pickled)
        return dict(zip(items[::2], items[1::2])), at
    if code == BYTES or OWN_MIN <= code <= OWN_MAX:
        content, at = _slice(data, at)
        return (_unpickled(content, pickled) if code == PICKLED else content), at
    raise ValueError(f"{code} is no code of typed bytes")


def _several(data: bytes, at: int, count: int, pickled: bool) -> Tuple[List[Any], int]:
    items: List[Any] = []
    for _ in range(count):
        item, at = decode(data, at, pickled)
        items.append(item)
    return items, at


def with_lengths(key: bytes, value: bytes) -> bytes:
    """Returns a pair of encoded values as commands and parts have it."""
    return _LENGTH.pack(len(key)) + key + _LENGTH.pack(len(value)) + value


def pairs(stream: BinaryIO, pickled: bool) -> Iterator[Tuple[bytes, Any]]:
    """Yields the pairs of a stream: the bytes of each key, and the value, which may be an object if `pickled` allows
    it."""
    data, at = b"", 0
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            key, end_of_key = _slice(data, at)
            content, end = _slice(data, end_of_key)
        except Short:
            rest = data[at:]
            more = read(max(READ_BYTES, len(rest)))
            if not more:
                if rest:
                    raise ValueError(f"the data ends in the middle of a pair, of which {len(rest)} bytes are there") from None
                return
            data, at = rest + more, 0
            continue
        yield key, decode(content, 0, pickled)[0]
        at = end

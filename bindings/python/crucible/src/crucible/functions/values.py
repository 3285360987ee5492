"""Reads a value that a job wrote as data. Nothing in it can run a program: it names kinds that are known here, and no others."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib
import io
import json
import struct
import sys
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from .crucible_values import CARRIED, FACTORIES, MARK, TENSOR, TENSOR_TYPES
from .modules import own_place

#: Older versions of pyarrow load pickles from the metadata of a table (CVE-2023-47248).
_ARROW_MIN = (14, 0, 1)

#: Python's hash tables find equal hashes one after the other. -1 and -2 have the same hash, and so have few other keys of real data.
_SAME_HASH_MAX = 100

#: Values of a table that need no bytes of their own, such as missing ones; pandas needs memory for each.
_BYTELESS_VALUES_MAX = 1_000_000

Marked = Mapping[str, Any]


class Unreadable(Exception):
    """The value cannot be read here; the text says why, and perhaps what to do."""


def decode(data: bytes) -> Any:
    """Reads the answer of `encode`. Raises `Unreadable`, or another exception for bytes that it did not write."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    parts: List[memoryview] = []
    at, view = 0, memoryview(rest)
    for size in head["sizes"]:
        if type(size) is not int or not 0 <= size <= len(rest) - at:
            raise Unreadable("its parts are incomplete")
        parts.append(view[at : at + size])
        at += size
    return _Reader(parts).read(head["value"])


class _Reader:
    def __init__(self, parts: List[memoryview]) -> None:
        self._parts = dict(enumerate(parts))

    def read(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.read(one) for one in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree.get(MARK)
        if kind is None:
            return {key: self.read(one) for key, one in tree.items()}
        if kind in _OF_PARTS:
            # Taken out, since one part in many places would fill the memory.
            part = self._parts.pop(tree["part"], None)
            if part is None:
                raise Unreadable("it has a part that is missing, or in two places")
            return _OF_PARTS[kind](tree, part)
        if kind in _OF_TEXT:
            return _OF_TEXT[kind](str(tree["of"]))
        if kind in _OF_VALUES:
            return _OF_VALUES[kind](self._content(tree))
        if kind in _OF_TREE:
            return _OF_TREE[kind](tree, self._content(tree))
        raise Unreadable("it contains a %s, which this version does not know: install the newest crucible-ml" % str(kind)[:40])

    def _content(self, tree: Marked) -> Any:
        of = tree["of"]
        if isinstance(of, dict) and MARK in of:
            # A range of a few bytes in the place of a list would fill the memory.
            raise Unreadable("it contains a %s of a %s" % (str(tree[MARK])[:40], str(of[MARK])[:40]))
        return self.read(of)


def _keys(keys: List[Any]) -> List[Any]:
    """Each key is compared with all that have its hash, so many such keys would take quadratic time."""
    if max(Counter(map(hash, keys)).values(), default=0) > _SAME_HASH_MAX:
        raise Unreadable("it has more than %d keys with the same hash" % _SAME_HASH_MAX)
    return keys


def _pairs(pairs: List[Any]) -> List[Any]:
    if not all(isinstance(pair, list) for pair in pairs):
        raise Unreadable("its pairs are not lists")
    _keys([pair[0] for pair in pairs])
    return pairs


def _fraction(of: List[Any]) -> fractions.Fraction:
    """Of integers only: one text of a few bytes, or a decimal number, can have billions of digits."""
    if [type(one) for one in of] != [int, int]:
        raise Unreadable("its fraction is not of two integers")
    return fractions.Fraction(*of)


_OF_TEXT: Mapping[str, Callable[[str], Any]] = {
    "int": lambda of: int(of, 16),
    "float": float,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "decimal": decimal.Decimal,
    "uuid": uuid.UUID,
    "path": Path,
}

_OF_VALUES: Mapping[str, Callable[[List[Any]], Any]] = {
    "tuple": tuple,
    "set": lambda of: set(_keys(of)),
    "frozenset": lambda of: frozenset(_keys(of)),
    "dict": lambda of: dict(_pairs(of)),
    "ordered": lambda of: OrderedDict(_pairs(of)),
    "deque": lambda of: deque(of[1:], maxlen=of[0]),
    "counter": lambda of: Counter(dict(_pairs(of))),
    "complex": lambda of: complex(*of),
    "range": lambda of: range(*of),
    "timedelta": lambda of: datetime.timedelta(*of),
    "fraction": _fraction,
}


def _datetime(tree: Marked, of: str) -> datetime.datetime:
    value = datetime.datetime.fromisoformat(of).replace(fold=1 if tree["fold"] else 0)
    if tree["zone"] is None:
        return value
    import zoneinfo

    return value.replace(tzinfo=zoneinfo.ZoneInfo(str(tree["zone"])))


def _default(tree: Marked, of: List[Any]) -> Any:
    return defaultdict(None if tree["factory"] is None else FACTORIES[tree["factory"]], _pairs(of))


def _class_of(tree: Marked) -> type:
    """A class of the caller's own program. Nothing is imported, because that would run a program that the job chooses."""
    module, name = (str(one) for one in tree["class"])
    top = module.split(".")[0]
    found: Any = sys.modules.get(module)
    if found is None:
        raise Unreadable("it contains a %s of the module %s, which is not imported here: import it first" % (name, module))
    if top != "__main__" and (top in CARRIED or own_place(top) is None):
        raise Unreadable("it contains a %s.%s, which is not a class of your own program" % (module, name))
    for one in name.split("."):
        found = vars(found).get(one) if found is not None else None
    # A name in a module may also be that of an installed class.
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        raise Unreadable("it contains a %s, a class that %s does not define here" % (name, module))
    return found


def _enum(tree: Marked, of: Any) -> Any:
    kind = _class_of(tree)
    if not issubclass(kind, enum.Enum) or of not in kind.__members__:
        raise Unreadable("its %s.%s is not defined here" % (kind.__name__, of))
    return kind.__members__[of]


def _named_tuple(tree: Marked, of: List[Any]) -> Any:
    kind = _class_of(tree)
    if not issubclass(kind, tuple) or len(getattr(kind, "_fields", ())) != len(of):
        raise Unreadable("its %s has other fields than the class here" % kind.__name__)
    return tuple.__new__(kind, of)


def _dataclass(tree: Marked, of: Dict[str, Any]) -> Any:
    """Neither ``__init__`` nor ``__post_init__`` runs: they have run on the machine."""
    kind = _class_of(tree)
    if not dataclasses.is_dataclass(kind) or {one.name for one in dataclasses.fields(kind)} != set(of):
        raise Unreadable("its %s has other fields than the class here" % kind.__name__)
    made = object.__new__(kind)
    for name, value in of.items():
        object.__setattr__(made, name, value)
    return made


_OF_TREE: Mapping[str, Callable[[Marked, Any], Any]] = {
    "datetime": _datetime,
    "default": _default,
    "enum": _enum,
    "named tuple": _named_tuple,
    "dataclass": _dataclass,
}


def _bytes(_tree: Marked, part: memoryview) -> bytes:
    return bytes(part)


def _bytearray(_tree: Marked, part: memoryview) -> bytearray:
    return bytearray(part)


def _array(tree: Marked, part: memoryview) -> Any:
    numpy = _library("numpy")
    array = numpy.lib.format.read_array(io.BytesIO(part), allow_pickle=False)
    return array[()] if tree["scalar"] else array


def _tensor(tree: Marked, part: memoryview) -> Any:
    torch = _library("torch")
    length = int.from_bytes(part[:8], "little")
    told = json.loads(bytes(part[8 : 8 + length]))[TENSOR]
    data = bytearray(part[8 + length :])
    kind, shape = getattr(torch, TENSOR_TYPES[told["dtype"]]), [int(one) for one in told["shape"]]
    flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    tensor = flat.view(kind).reshape(shape).requires_grad_(bool(tree["grad"]))
    return torch.nn.Parameter(tensor.detach(), requires_grad=bool(tree["grad"])) if tree["parameter"] else tensor


def _table(_tree: Marked, part: memoryview) -> Any:
    arrow = _library("pyarrow")
    version = tuple(int(one) for one in arrow.__version__.split(".")[:3] if one.isdigit())
    if version < _ARROW_MIN:
        raise Unreadable("pyarrow %s runs programs that a table contains: install 14.0.1 or newer" % arrow.__version__)
    ipc, data = importlib.import_module("pyarrow.ipc"), bytes(part)
    if any(message.type != "schema" and _is_compressed(message) for message in ipc.MessageReader.open_stream(data)):
        raise Unreadable("it contains a compressed table, which can become thousands of times as large")
    table = ipc.open_stream(data).read_all()
    table.validate(full=True)
    return table


def _is_compressed(message: Any) -> bool:
    """Whether a message of Arrow has compressed buffers. pyarrow has verified it, and decompresses all that it reads."""
    if message.metadata_version != _library("pyarrow.ipc").MetadataVersion.V5:
        # Older versions may name the compression elsewhere.
        return True
    data = message.metadata.to_pybytes()
    header = _in_table(data, struct.unpack_from("<I", data)[0], 2)
    batch = _in_table(data, header, 1) if message.type == "dictionary" else header
    return batch == 0 or _place_in_table(data, batch, 3) != 0


def _place_in_table(data: bytes, table: int, number: int) -> int:
    """The place of a field in a table of FlatBuffers; 0 for a missing one."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    at = 4 + 2 * number
    if at >= struct.unpack_from("<H", data, fields)[0]:
        return 0
    offset: int = struct.unpack_from("<H", data, fields + at)[0]
    return table + offset if offset else 0


def _in_table(data: bytes, table: int, number: int) -> int:
    """The place of a table that is a field of another one; 0 for a missing one."""
    at = _place_in_table(data, table, number)
    return at + struct.unpack_from("<I", data, at)[0] if at else 0


def _frame(tree: Marked, part: memoryview) -> Any:
    _library("pandas")
    table = _table(tree, part)
    values = sum(_count(chunk) for column in table.columns for chunk in column.chunks)
    if values > _BYTELESS_VALUES_MAX + 8 * len(part):
        raise Unreadable("it has more values than its bytes can hold")
    return table.to_pandas()


def _count(array: Any) -> int:
    """The values in an array of Arrow. Types that are refused can hold one value in many places."""
    array = getattr(array, "storage", array)
    types, kind = _library("pyarrow").types, array.type
    if types.is_struct(kind):
        return len(array) + sum(_count(array.field(at)) for at in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind):
        return len(array) + _count(array.values)
    if kind.num_fields > 0 or "view" in str(kind):
        raise Unreadable("it contains a column of the type %s" % kind)
    return len(array)


def _series(tree: Marked, part: memoryview) -> Any:
    return _frame(tree, part)["value"].rename(tree["name"])


_OF_PARTS: Mapping[str, Callable[[Marked, memoryview], Any]] = {
    "bytes": _bytes,
    "bytearray": _bytearray,
    "array": _array,
    "tensor": _tensor,
    "table": _table,
    "frame": _frame,
    "series": _series,
}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unreadable("it needs the package %s: pip install %s" % (name, name)) from None

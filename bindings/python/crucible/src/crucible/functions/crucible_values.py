"""Writes a value as data: JSON with marks, and binary parts. Nothing of it has to be run to be read.

It runs on the machine of a job, with nothing but Python. `values.py` is the reader.
"""

import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib
import io
import json
import math
import os
import pathlib
import sys
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

#: The key of an object that is not a dictionary of the program; its value is the kind.
MARK = "~"

#: Packages that are sent as own modules are, although they are installed.
CARRIED = ("crucible", "truffle")

#: Readers of JSON cannot nest without limit.
DEPTH_MAX = 100

#: A list that contains itself many times over becomes very long.
VALUES_MAX = 10_000_000

#: Longer integers are written in hexadecimal form, because decimal conversion takes quadratic time.
_BITS_MAX = 4_000

#: The factories of a `defaultdict` by their names.
FACTORIES: Mapping[str, Callable[[], Any]] = {
    "int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict, "set": set, "tuple": tuple,
}

#: Types of tensors, by their names in safetensors.
TENSOR_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool",
}

#: The tensor of a safetensors file with one.
TENSOR = "tensor"


class NotData(Exception):
    """The value contains an object that only a pickle can hold."""


def encode(value: Any) -> bytes:
    """Returns the value as data: a line of JSON, then the binary parts. Raises `NotData`."""
    writer = _Writer()
    tree = writer.write(value, 0)
    head = json.dumps({"value": tree, "sizes": [len(part) for part in writer.parts]}, allow_nan=False)
    return b"".join([head.encode("ascii"), b"\n", *writer.parts])


class _Writer:
    def __init__(self) -> None:
        self.parts: List[bytes] = []
        self._count = 0
        self._own: Mapping[type, Callable[[Any, int], Any]] = {
            int: _int, float: _float, bytes: self._bytes, bytearray: self._bytearray, datetime.datetime: self._datetime,
            list: self._list, dict: self._dict, OrderedDict: self._ordered, defaultdict: self._default,
        }

    def write(self, value: Any, depth: int) -> Any:
        self._count += 1
        if depth > DEPTH_MAX:
            raise NotData("it is nested more than %d deep" % DEPTH_MAX)
        if self._count > VALUES_MAX:
            raise NotData("it has more than %d values" % VALUES_MAX)
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        own = self._own.get(kind)
        if own is not None:
            return own(value, depth)
        if kind in _LISTS:
            name, parts_of = _LISTS[kind]
            return {MARK: name, "of": self._list(parts_of(value), depth)}
        if kind in _TEXTS:
            name, text_of = _TEXTS[kind]
            return {MARK: name, "of": text_of(value)}
        return self._library(value, depth) or self._object(value, depth)

    def _list(self, values: Any, depth: int) -> List[Any]:
        return [self.write(one, depth + 1) for one in values]

    def _dict(self, value: Dict[Any, Any], depth: int) -> Dict[str, Any]:
        if MARK not in value and all(type(key) is str for key in value):
            return {key: self.write(one, depth + 1) for key, one in value.items()}
        return {MARK: "dict", "of": self._pairs(value, depth)}

    def _pairs(self, value: Dict[Any, Any], depth: int) -> List[Any]:
        return [self._list(pair, depth) for pair in value.items()]

    def _ordered(self, value: Dict[Any, Any], depth: int) -> Dict[str, Any]:
        return {MARK: "ordered", "of": self._pairs(value, depth)}

    def _default(self, value: Any, depth: int) -> Dict[str, Any]:
        factory = value.default_factory
        name = next((name for name, one in FACTORIES.items() if one is factory), None)
        if factory is not None and name is None:
            raise NotData("it contains a defaultdict that makes its values by a function")
        return {MARK: "default", "factory": name, "of": self._pairs(value, depth)}

    def _bytes(self, value: bytes, _depth: int) -> Dict[str, Any]:
        return {MARK: "bytes", "part": self._part(value)}

    def _bytearray(self, value: bytearray, _depth: int) -> Dict[str, Any]:
        return {MARK: "bytearray", "part": self._part(bytes(value))}

    def _datetime(self, value: datetime.datetime, _depth: int) -> Dict[str, Any]:
        zone = value.tzinfo
        key = getattr(zone, "key", None) if type(zone).__module__ == "zoneinfo" else None
        if zone is not None and key is None and type(zone) is not datetime.timezone:
            raise NotData("it contains a time in a zone of the type %s" % _name_of(type(zone)))
        told = value if key is None else value.replace(tzinfo=None)
        return {MARK: "datetime", "of": told.replace(fold=0).isoformat(), "fold": value.fold, "zone": key}

    def _part(self, data: bytes) -> int:
        self.parts.append(data)
        return len(self.parts) - 1

    def _library(self, value: Any, depth: int) -> Optional[Dict[str, Any]]:
        """A value of NumPy, PyTorch, pandas or pyarrow. None for other objects, and where the library is not loaded."""
        kind = type(value)
        package = kind.__module__.split(".")[0]
        if package not in _LIBRARIES or package not in sys.modules:
            return None
        try:
            marks, data = _LIBRARIES[package](value)
        except NotData:
            raise
        except Exception as error:
            raise NotData("it contains a %s, which cannot be written as data: %s: %s" % (_name_of(kind), type(error).__name__, error)) from error
        return dict(marks, part=self._part(data))

    def _object(self, value: Any, depth: int) -> Dict[str, Any]:
        """An object of a class of the program itself: an enumeration, a named tuple or a dataclass."""
        kind = type(value)
        if not _is_own(kind):
            raise NotData("it contains a %s" % _name_of(kind))
        marks = {"class": [kind.__module__, kind.__qualname__]}
        if isinstance(value, enum.Enum) and kind.__members__.get(getattr(value, "_name_", None) or "") is value:
            return dict(marks, **{MARK: "enum", "of": value._name_})
        fields = getattr(kind, "_fields", None)
        if isinstance(value, tuple) and fields is not None and tuple.__len__(value) == len(fields) and not getattr(value, "__dict__", None):
            return dict(marks, **{MARK: "named tuple", "of": self._list(tuple(value), depth)})
        if dataclasses.is_dataclass(kind) and _is_plain_object(kind):
            names = [field.name for field in dataclasses.fields(kind)]
            if set(getattr(value, "__dict__", ())) <= set(names):
                return dict(marks, **{MARK: "dataclass", "of": {name: self.write(getattr(value, name), depth + 1) for name in names}})
        raise NotData("it contains a %s" % _name_of(kind))


def _int(value: int, _depth: int) -> Any:
    return value if value.bit_length() <= _BITS_MAX else {MARK: "int", "of": hex(value)}


def _float(value: float, _depth: int) -> Any:
    return value if math.isfinite(value) else {MARK: "float", "of": repr(value)}


_LISTS: Dict[type, Tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", list),
    set: ("set", list),
    frozenset: ("frozenset", list),
    deque: ("deque", lambda value: [value.maxlen, *value]),
    Counter: ("counter", lambda value: [list(pair) for pair in value.items()]),
    complex: ("complex", lambda value: [value.real, value.imag]),
    range: ("range", lambda value: [value.start, value.stop, value.step]),
    datetime.timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    fractions.Fraction: ("fraction", lambda value: [value.numerator, value.denominator]),
}


def _time(value: datetime.time) -> str:
    if value.tzinfo is not None and type(value.tzinfo) is not datetime.timezone:
        raise NotData("it contains a time in a zone of the type %s" % _name_of(type(value.tzinfo)))
    return value.isoformat()


_TEXTS: Dict[type, Tuple[str, Callable[[Any], str]]] = {
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("time", _time),
    decimal.Decimal: ("decimal", str),
    uuid.UUID: ("uuid", str),
    pathlib.PosixPath: ("path", str),
}

Written = Tuple[Dict[str, Any], bytes]


def _numpy(value: Any) -> Written:
    numpy = sys.modules["numpy"]
    if type(value) not in (numpy.ndarray, numpy.memmap) and not isinstance(value, numpy.generic):
        raise NotData("it contains a %s" % _name_of(type(value)))
    form = numpy.lib.format
    if form.descr_to_dtype(form.dtype_to_descr(value.dtype)) != value.dtype:
        raise NotData("it contains an array of %s, which is not a type of NumPy" % value.dtype)
    file = io.BytesIO()
    form.write_array(file, numpy.asarray(value), allow_pickle=False)
    return {MARK: "array", "scalar": isinstance(value, numpy.generic)}, file.getvalue()


def _torch(value: Any) -> Written:
    torch = sys.modules["torch"]
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided or value.is_quantized:
        raise NotData("it contains a %s" % _name_of(type(value)))
    name = next((name for name, one in TENSOR_TYPES.items() if getattr(torch, one, None) is value.dtype), None)
    if name is None:
        raise NotData("it contains a tensor of %s" % value.dtype)
    data = _bytes_of(torch, value.detach().cpu().contiguous().resolve_neg())
    head = json.dumps({TENSOR: {"dtype": name, "shape": list(value.shape), "data_offsets": [0, len(data)]}}).encode("ascii")
    head += b" " * (-len(head) % 8)
    marks = {MARK: "tensor", "parameter": type(value) is torch.nn.Parameter, "grad": value.requires_grad}
    return marks, b"".join([len(head).to_bytes(8, "little"), head, data])


def _bytes_of(torch: Any, tensor: Any) -> bytes:
    flat = tensor.reshape(-1).view(torch.uint8)
    try:
        data: bytes = flat.numpy().tobytes()
    except RuntimeError:  # PyTorch without NumPy
        data = bytes(flat.tolist())
    return data


def _pandas(value: Any) -> Written:
    pandas, arrow = sys.modules["pandas"], _arrow(value)
    is_series = type(value) is pandas.Series
    if not is_series and type(value) is not pandas.DataFrame:
        raise NotData("it contains a %s" % _name_of(type(value)))
    frame = value.to_frame(name="value") if is_series else value
    if not _is_data(value.name if is_series else None) or frame.attrs or value.attrs:
        raise NotData("it contains a %s with attributes" % _name_of(type(value)))
    data = _stream(arrow, arrow.Table.from_pandas(frame))
    # Arrow holds some columns in another form, such as tuples as lists.
    pandas.testing.assert_frame_equal(arrow.ipc.open_stream(data).read_all().to_pandas(), frame, check_exact=True)
    marks: Dict[str, Any] = {MARK: "series", "name": value.name} if is_series else {MARK: "frame"}
    return marks, data


def _is_data(name: Any) -> bool:
    return name is None or type(name) in (str, int)


def _pyarrow(value: Any) -> Written:
    arrow = _arrow(value)
    if type(value) is not arrow.Table:
        raise NotData("it contains a %s" % _name_of(type(value)))
    return {MARK: "table"}, _stream(arrow, value)


def _arrow(value: Any) -> Any:
    try:
        arrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.ipc")
    except ImportError:
        raise NotData("a %s becomes data with the package pyarrow, which the machine does not have" % _name_of(type(value))) from None
    return arrow


def _stream(arrow: Any, table: Any) -> bytes:
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


_LIBRARIES: Mapping[str, Callable[[Any], Written]] = {"numpy": _numpy, "torch": _torch, "pandas": _pandas, "pyarrow": _pyarrow}


def _is_own(kind: type) -> bool:
    """Whether the class is part of the program that was sent, so that its sender has it too, under this name."""
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if kind.__module__.split(".")[0] in CARRIED:
        return False
    if kind.__module__ != "__main__" and (path is None or not _is_below(path, os.path.dirname(os.path.abspath(__file__)))):
        return False
    found: Any = module
    for name in kind.__qualname__.split("."):
        found = vars(found).get(name) if found is not None else None
    return found is kind


def _is_below(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


def _is_plain_object(kind: type) -> bool:
    """Whether its objects consist of their fields alone: a class that is also a dictionary or an exception has more."""
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return True


def _name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__qualname__)

"""A value that is data comes back as it was, and nothing that is read as data runs a program."""

import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib.util
import io
import json
import math
import pickle
import random
import sys
import types
import unittest
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from unittest import mock

from crucible.functions.crucible_values import DEPTH_MAX, NotData, encode
from crucible.functions.values import Unreadable, decode
from unit_support import InNotebook

UTC = datetime.timezone.utc
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
A_DAY = datetime.datetime(2026, 10, 25, 2, 30, 1, 5)

VALUES = [
    None, True, False, 0, -1, 2**63, -(2**5000), 1.5, -0.0, 1e-310, math.inf, -math.inf,
    "", "text", "\udcff", "\0\n\u2028", b"", b"\x00\xff\n", bytearray(b"ab"), 1 + 2j, complex(math.inf, 1), range(1, 9, 3),
    [], [1, [2, "a"]], (), (1, ("a",)), set(), {1, 2}, frozenset({"a"}), {}, {"a": 1, "b": [None]}, {"~": "tuple"}, {1: 2, None: 3, (1, 2): "x"},
    OrderedDict([("b", 1), ("a", 2)]), Counter("aab"), deque([1, 2], 5), defaultdict(list, {"a": [1]}), defaultdict(None, {1: 2}),
    A_DAY, A_DAY.replace(tzinfo=UTC), A_DAY.replace(tzinfo=EAST), A_DAY.replace(fold=1), A_DAY.date(), A_DAY.time(),
    datetime.time(1, 2, tzinfo=EAST), datetime.timedelta(days=-1, microseconds=5), decimal.Decimal("1.50"), decimal.Decimal("NaN"),
    fractions.Fraction(1, 3), uuid.UUID(int=5), Path("/a/b"),
]

CLASSES = """
import dataclasses, enum, collections
from dataclasses import dataclass
from typing import NamedTuple

@dataclass
class Run:
    loss: float
    names: list
    made: int = dataclasses.field(default=0, init=False)
    def __post_init__(self): self.made += 1

@dataclass(frozen=True)
class Point:
    x: int
    __slots__ = ("x",)

@dataclass
class Table(dict):
    name: str

class Pair(NamedTuple):
    a: int
    b: object

class Kind(enum.Enum):
    good = 1

class Plain: pass
"""


def same(one, other):
    return type(one) is type(other) and repr(one) == repr(other) and (one == other or one != one or isinstance(one, (list, tuple)))


class TestValues(InNotebook):
    def test_plain_values_come_back_with_their_types(self):
        for value in [*VALUES, VALUES]:
            with self.subTest(repr(value)[:60]):
                self.assertTrue(same(value, decode(encode(value))), repr(decode(encode(value)))[:200])

    def test_a_zone_of_time_comes_back(self):
        zoneinfo = importlib.import_module("zoneinfo") if sys.version_info >= (3, 9) else None
        value = A_DAY.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1)
        self.assertEqual((value, "Europe/Berlin", 1), (decode(encode(value)), decode(encode(value)).tzinfo.key, decode(encode(value)).fold))
        with self.assertRaises(Exception):
            decode(encode(value).replace(b"Europe/Berlin", b"../../etc/passwd"))

    def test_own_classes_come_back_without_running_their_code(self):
        cell = self.cell(CLASSES)
        run, point = cell["Run"](0.5, ["a"]), cell["Point"](3)
        value = [run, point, cell["Pair"](1, (2,)), cell["Kind"].good, {cell["Kind"].good: run}]
        back = decode(encode(value))
        self.assertEqual(value, back)
        self.assertEqual([type(one) for one in value], [type(one) for one in back])
        self.assertEqual(1, back[0].made)

    def test_other_objects_are_not_data(self):
        cell = self.cell(CLASSES)
        extra = cell["Run"](1, [])
        extra.more = 1
        loop = []
        loop.append(loop)
        deep = []
        for _ in range(DEPTH_MAX + 1):
            deep = [deep]
        bomb = [1]
        for _ in range(60):
            bomb = [bomb, bomb]
        others = {
            "a Plain": cell["Plain"](), "a Run": extra, "a Table": cell["Table"]("x"), "type": cell["Run"], "nested more": loop, "nested more than": deep,
            "more than 10 values": bomb, "function": len, "a test_values.Subclass": type("Subclass", (int,), {})(1), "defaultdict": defaultdict(lambda: 1),
            "Namespace": types.SimpleNamespace(a=1), "a ValueError": ValueError("x"), "StringIO": io.StringIO(),
        }
        for words, value in others.items():
            limit = 10 if "10 values" in words else 10_000_000
            with self.subTest(words), mock.patch("crucible.functions.crucible_values.VALUES_MAX", limit), self.assertRaisesRegex(NotData, words):
                encode({"x": [value]})

    def test_a_class_of_another_program_is_not_made(self):
        """Neither one of the standard library or a package, nor one that is not imported, nor one that only has a name here."""
        self.cell(CLASSES + "from truffle.cli import Program\nimport http.server as server\n")
        for module, name in [("truffle.cli", "Program"), ("ast", "Module"), ("__main__", "Program"), ("__main__", "server.HTTPServer"), ("this", "s"),
                             ("__main__", "Plain"), ("__main__", "Kind"), ("__main__", "Run.__init__"), ("os", "system"), ("__main__", "dataclass"), ("__main__", "")]:
            for kind, of in (("dataclass", {"x": 1}), ("named tuple", [1]), ("enum", "bad")):
                tree = {"~": kind, "class": [module, name], "of": of}
                with self.subTest(tree), self.assertRaises(Unreadable):
                    decode(json.dumps({"value": tree, "sizes": []}).encode() + b"\n")
        self.assertNotIn("this", sys.modules)

    def test_a_class_with_other_fields_is_named(self):
        content = encode(self.cell(CLASSES)["Run"](1.0, []))
        self.cell("from dataclasses import dataclass\n@dataclass\nclass Run:\n    loss: float\n")
        with self.assertRaisesRegex(Unreadable, "its Run has other fields than the class here"):
            decode(content)
        vars(self.notebook).clear()
        with self.assertRaisesRegex(Unreadable, "contains a Run, a class that __main__ does not define here"):
            decode(content)

    def test_a_range_in_the_place_of_a_list_fills_no_memory(self):
        huge = {"~": "range", "of": [0, 10**12, 1]}
        for tree in ({"~": "tuple", "of": huge}, {"~": "set", "of": huge}, {"~": "default", "factory": None, "of": huge}):
            with self.subTest(tree), self.assertRaisesRegex(Unreadable, "of a range"):
                decode(json.dumps({"value": tree, "sizes": []}).encode() + b"\n")

    def test_few_bytes_fill_neither_memory_nor_time(self):
        huge, prime = {"~": "range", "of": [0, 10**12, 1]}, 2**61 - 1
        trees = [{"~": kind, "factory": None, "of": [huge]} for kind in ("dict", "ordered", "default", "counter")]
        trees += [{"~": "fraction", "of": [many]} for many in ("1e9999", {"~": "decimal", "of": "1e9999"})]
        alike = [key * prime for key in range(1_000)]
        trees += [{"~": kind, "factory": None, "of": [[key, 0] for key in alike]} for kind in ("dict", "ordered", "default", "counter")]
        trees += [{"~": kind, "of": alike} for kind in ("set", "frozenset")]
        trees += [{"~": "dict", "of": [[{"~": "tuple", "of": [key]}, 0] for key in alike]}, [{"~": "bytes", "part": 0}] * 2]
        for tree in trees:
            with self.subTest(str(tree)[:60]), self.assertRaises(Unreadable):
                decode(json.dumps({"value": tree, "sizes": [1]}).encode() + b"\nx")

    def test_bytes_of_strangers_run_nothing(self):
        """Changed bytes are read or refused; no event of the interpreter shows an import, a program, or an opened file."""
        cell = self.cell(CLASSES)
        sources = [encode(value) for value in [VALUES, cell["Run"](1.0, [cell["Kind"].good]), {"a": b"xyz"}]]
        sources += [pickle.dumps(print), b"", b"{}", b"[" * 100_000, b'{"value": {"~": "array", "scalar": true, "part": 9}, "sizes": []}\n']
        chooser, events, is_on = random.Random(5), [], []
        sys.addaudithook(lambda event, args: events.append((event, args)) if is_on and event.split(".")[0] in FORBIDDEN else None)
        is_on.append(True)
        try:
            for _ in range(3_000):
                content = bytearray(chooser.choice(sources))
                for _ in range(chooser.randrange(1, 6)):
                    at = chooser.randrange(len(content) + 1)
                    content[at : at + chooser.randrange(3)] = chooser.choice(WORDS)
                try:
                    decode(bytes(content))
                except Exception:
                    pass
        finally:
            is_on.clear()
        self.assertEqual([], events)


#: The first words of events of `sys.addaudithook` that running a program causes.
FORBIDDEN = ("exec", "compile", "import", "pickle", "os", "subprocess", "open", "socket", "shutil", "ctypes")
WORDS = [b"", b'"', b"{", b"}", b"~", b"0", b"-", b'"~": "dataclass"', b"__main__", b"os", b"system", b"tuple", b"enum", b"\\", b"\n", b"1e999"]


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, "no %s" % ", ".join(missing))


class TestValuesOfLibraries(unittest.TestCase):
    """With the libraries that are installed: CRUCIBLE_TEST_PYTHON names a Python that has them."""

    @needs("numpy")
    def test_arrays_come_back(self):
        import numpy

        arrays = [numpy.zeros((0, 3)), numpy.arange(6, dtype=">i2").reshape(2, 3), numpy.asfortranarray(numpy.ones((2, 3), "f4")), numpy.array(5),
                  numpy.array(["a", "bc"]), numpy.array([b"x"]), numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), numpy.array([True]),
                  numpy.array(["2026-01-01"], "M8[s]"), numpy.float32(1.5), numpy.int64(3), numpy.bool_(True), numpy.str_("a"), numpy.ones(2)[::-1]]
        for value in arrays:
            with self.subTest(value):
                back = decode(encode([value]))[0]
                self.assertEqual((type(value), value.dtype, value.shape, value.tolist()), (type(back), back.dtype, back.shape, back.tolist()))
        for value in (numpy.array([object()]), numpy.ma.array([1]), numpy.array([1], dtype=[("a", "O")])):
            with self.subTest(value), self.assertRaises(NotData):
                encode(value)

    @needs("numpy")
    def test_a_pickle_in_an_array_is_not_loaded(self):
        import numpy

        file = io.BytesIO()
        numpy.save(file, numpy.array([{}], dtype=object), allow_pickle=True)
        head = {"value": {"~": "array", "scalar": False, "part": 0}, "sizes": [len(file.getvalue())]}
        with self.assertRaisesRegex(ValueError, "allow_pickle=False"):
            decode(json.dumps(head).encode() + b"\n" + file.getvalue())

    @needs("torch")
    def test_tensors_come_back_and_are_safetensors(self):
        import torch

        kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
        tensors = [torch.ones(2, 3).to(kind) for kind in kinds] + [torch.tensor(5), torch.zeros(0, 2), torch.arange(6).reshape(2, 3).t()]
        model = torch.nn.Linear(2, 1)
        for value in [*tensors, model.weight, torch.ones(1, requires_grad=True)]:
            with self.subTest(value.dtype):
                back = decode(encode([value]))[0]
                self.assertEqual((type(value), value.dtype, value.requires_grad), (type(back), back.dtype, back.requires_grad))
                self.assertTrue(torch.equal(value, back))
        state = decode(encode(model.state_dict()))
        torch.nn.Linear(2, 1).load_state_dict(state)
        for value in (torch.ones(2).to_sparse(), torch.ones(1, dtype=torch.complex64), model):
            with self.assertRaises(NotData):
                encode(value)

    @needs("torch", "safetensors")
    def test_a_tensor_is_read_by_the_library_of_safetensors(self):
        import torch
        from safetensors.torch import load

        value = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        self.assertTrue(torch.equal(value, load(encode(value).split(b"\n", 1)[1])["tensor"]))

    @needs("pandas", "pyarrow")
    def test_tables_come_back(self):
        import pandas
        import pyarrow

        frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None], "c": pandas.to_datetime(["2026-01-01", "2026-01-02"]), "d": pandas.Categorical(["u", "v"])})
        frames = [frame, frame.set_index("a"), frame.set_index(["a", "b"]), pandas.DataFrame(), pandas.DataFrame([[1, 2.5]]), frame[["a"]].astype("Int64")]
        for value in frames:
            with self.subTest(value):
                pandas.testing.assert_frame_equal(value, decode(encode([value]))[0])
        for value in (frame["b"], frame["a"].rename(None), frame.set_index("a")["c"].rename(5)):
            pandas.testing.assert_series_equal(value, decode(encode(value)))
        table = pyarrow.table({"a": [1, None], "b": [[1], []]})
        self.assertTrue(table.equals(decode(encode(table))))
        for value in (pandas.DataFrame({"a": [object()]}), pandas.DataFrame({"a": [1, "x"]}), pandas.DataFrame({"a": [(1, 2)]}), pandas.Timestamp(0)):
            with self.subTest(value), self.assertRaises(NotData):
                encode(value)

    @needs("pandas", "pyarrow")
    def test_a_table_of_nothing_becomes_no_huge_frame(self):
        import pyarrow

        nulls = pyarrow.nulls(2_000_000)
        ends = pyarrow.array([10**9], pyarrow.int64())
        lists = pyarrow.FixedSizeListArray.from_arrays(nulls, 1_000)
        columns = [nulls, lists, pyarrow.StructArray.from_arrays([lists], ["a"]), pyarrow.RunEndEncodedArray.from_arrays(ends, pyarrow.array([1]))]
        for kind, column in [("series", nulls), *(("frame", column) for column in columns)]:
            part = encode(pyarrow.table({"a": column})).split(b"\n", 1)[1]
            head = json.dumps({"value": {"~": kind, "name": None, "part": 0}, "sizes": [len(part)]})
            with self.subTest(str(column.type)), self.assertRaises(Unreadable):
                decode(head.encode() + b"\n" + part)
        frame = pyarrow.table({"a": [[None], []], "b": [{"c": 1}, None], "d": [True, None], "e": [None, None]}).to_pandas()
        content = pyarrow.Table.from_pandas(frame)
        part = encode(content).split(b"\n", 1)[1]
        head = json.dumps({"value": {"~": "frame", "part": 0}, "sizes": [len(part)]})
        self.assertEqual((2, 4), decode(head.encode() + b"\n" + part).shape)

    @needs("pandas", "pyarrow")
    def test_a_compressed_table_is_not_read(self):
        import pyarrow

        def refused(table, **options):
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
                writer.write_table(table)
            part = sink.getvalue().to_pybytes()
            for kind in ("table", "frame", "series"):
                head = json.dumps({"value": {"~": kind, "name": None, "part": 0}, "sizes": [len(part)]})
                with self.subTest((kind, options)), self.assertRaisesRegex(Unreadable, "a compressed table"):
                    decode(head.encode() + b"\n" + part)
            return len(part)

        zeros = pyarrow.table({"value": [0] * 1_000_000})
        self.assertLess(refused(zeros, compression="zstd"), 10_000)
        refused(zeros, compression="lz4")
        words = pyarrow.array(["a" * 1_000_000] * 2).dictionary_encode()
        refused(pyarrow.table({"value": words}), compression="zstd")
        refused(pyarrow.table({"value": [1]}), metadata_version=pyarrow.ipc.MetadataVersion.V4)

    @needs("pandas", "pyarrow")
    def test_an_old_pyarrow_reads_no_table(self):
        import pyarrow

        content = encode(pyarrow.table({"a": [1]}))
        with mock.patch.object(pyarrow, "__version__", "14.0.0"), self.assertRaisesRegex(Unreadable, "install 14.0.1 or newer"):
            decode(content)

    @needs("pandas")
    def test_a_table_needs_pyarrow(self):
        import pandas

        with mock.patch.dict(sys.modules, {"pyarrow": None}), self.assertRaisesRegex(NotData, "with the package pyarrow"):
            encode(pandas.DataFrame({"a": [1]}))

    def test_a_missing_library_is_named(self):
        head = {"value": {"~": "array", "scalar": False, "part": 0}, "sizes": [0]}
        with mock.patch.dict(sys.modules, {"numpy": None}), self.assertRaisesRegex(Unreadable, "it needs the package numpy: pip install numpy"):
            decode(json.dumps(head).encode() + b"\n")

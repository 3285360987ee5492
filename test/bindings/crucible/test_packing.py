"""What is sent with a function, and what cannot be."""

import json
import pickle
import sys
from unittest import mock

from crucible import Job, MLPlatform, PackingError, Requirements
from crucible.functions import _is_decorator, modules, packing
from crucible.functions.values import decode
from truffle import Truffle
from unit_support import InNotebook


class TestPacking(InNotebook):
    def setUp(self):
        super().setUp()
        self._count = 0
        # What a notebook imports from its own folder is found there.
        self.project = self.folder / "project"
        self.project.mkdir()
        sys.path.insert(0, str(self.project))
        self.addCleanup(sys.path.remove, str(self.project))
        names = set(sys.modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in set(sys.modules) - names if name.startswith("own_")])

    def pack(self, function, *args, **kwargs):
        self._count += 1
        folder = self.folder / ("packed%d" % self._count)
        folder.mkdir()
        packing.pack(getattr(function, "function", function), (args, kwargs), folder, _is_decorator)
        return folder

    def result(self, function, *args, **kwargs):
        """The return value of a function that was packed, run in a process that knows nothing but the folder."""
        content, printed = self.run_packed(self.pack(function, *args, **kwargs), packing.COMMAND.replace("python3", sys.executable + " -B"))
        self.assertIsNotNone(content, printed)
        head, data = content.split(b"\n", 1)
        told = json.loads(head)
        self.assertIsNone(told["failure"], told)
        return decode(data) if told["form"] == "data" else pickle.loads(data)

    def refused(self, words, function, *args):
        with self.assertRaisesRegex(PackingError, words) as caught:
            self.pack(function, *args)
        return caught.exception

    def test_helpers_classes_constants_and_imports_of_cells_go_along(self):
        self.cell(
            "import concurrent.futures\nimport os.path as paths\nfrom math import sqrt\nfrom dataclasses import dataclass\n"
            "SCALE = {'by': 3}\nUNUSED = open\n"
        )
        self.cell("@dataclass\nclass Point:\n    x: int\n    y: int = SCALE['by']\n")
        self.cell("def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)\n")
        cell = self.cell(
            "def train(point: Point, *, steps=SCALE['by']):\n"
            "    with concurrent.futures.ThreadPoolExecutor() as pool:\n"
            "        total = sum(pool.map(abs, range(steps)))\n"
            "    return [point.x + point.y, total, even(4), sqrt(16), paths.join('a', 'b'), __name__]\n"
        )
        self.assertEqual([4, 3, True, 4.0, "a/b", "__main__"], self.result(cell["train"], cell["Point"](1)))
        text = (self.folder / "packed1" / "function_main.py").read_text()
        self.assertNotIn("UNUSED", text)

    def test_a_variable_has_the_value_that_it_has_when_the_function_is_sent(self):
        cell = self.cell("rate = 1\ndef train(): return rate\n")
        self.cell("rate = 2\n")
        self.assertEqual(2, self.result(cell["train"]))

    def test_a_class_that_is_the_value_of_a_call_is_sent(self):
        source = (
            "import collections, enum, typing\nfields = ['x', 'y']\nPoint = collections.namedtuple(\n    'Point', fields\n)\n"
            "class Row(typing.NamedTuple):\n    x: int\n    y: int = 5\n    def sum(self): return self.x + self.y\n"
            "Pair = typing.NamedTuple('Pair', [('x', int)])\nColor = enum.Enum('Color', 'RED BLUE')\nOther = collections.namedtuple('Inner', 'z')\n"
            "def train(point): return [point.x, Row(1).sum(), Pair(x=3).x, Color.BLUE.value, Other(9).z]\n"
        )
        cell = self.cell(source)
        self.assertEqual([1, 6, 3, 2, 9], self.result(cell["train"], cell["Point"](1, 2)))
        _, names = self.script(source)
        self.assertEqual([1, 6, 3, 2, 9], self.result(names["train"], names["Point"](1, 2)))

    def test_type_variables_are_sent(self):
        cell = self.cell(
            "from typing import Generic, NewType, TypeVar\nT = TypeVar('T')\nName = NewType('Name', str)\n"
            "class Box(Generic[T]):\n    def __init__(self, x: T): self.x = x\nTextBox = Box[str]\ndef train(x: T): return Name(TextBox(x).x)\n"
            "def bound(t): return t.__name__\n"
        )
        self.assertEqual("a", self.result(cell["train"], "a"))
        self.assertEqual("T", self.result(cell["bound"], cell["T"]))

    def test_the_newest_definition_of_a_class_is_sent(self):
        self.cell("class Model:\n    size = 1\n")
        cell = self.cell("class Model:\n    size = 2\ndef train(): return Model.size\n")
        self.assertEqual(2, self.result(cell["train"]))

    def test_the_decorator_of_the_job_stays_here_and_others_go_along(self):
        source = (
            "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def g(*a): return 2 * f(*a)\n    return g\n"
            "gpu = platform.job(gpu_memory='24GB')\n"
            "@gpu\n@twice\ndef one(x): return x\n"
            "@platform.job(\n    duration='1h',\n)\n@twice\ndef two(x): return one.local(x) + prepare(x)\n"
            "@platform.job\ndef prepare(x): return 100\n"
        )
        cell = self.cell(source, platform=MLPlatform("/nowhere"))
        self.assertEqual(2, self.result(cell["one"], 1))
        self.assertEqual(204, self.result(cell["two"], 1))

    def test_what_a_notebook_puts_over_a_builtin_stays_here(self):
        cell = self.cell(
            "import functools\n@functools.wraps(open)\ndef _open(*args): raise ValueError('not in notebooks')\n"
            "open = _open\ndef train():\n    with open('function_main.py') as file: return len(file.readlines()) > 1\n"
        )
        self.assertTrue(self.result(cell["train"]))

    def test_jobs_that_call_each_other_run_as_functions_there(self):
        cell = self.cell(
            "@platform.job\ndef prepare(x): return x + 1\n@platform.job()\ndef train(x): return prepare.local(x) * 10\n",
            platform=MLPlatform("/nowhere"),
        )
        self.assertEqual(20, self.result(cell["train"], 1))

    def test_a_job_that_calls_itself_does_so_there(self):
        source = "@platform.job\ndef fib(n): return n if n < 2 else fib.local(n - 1) + fib.local(n - 2)\n"
        self.assertEqual(8, self.result(self.cell(source, platform=MLPlatform("/nowhere"))["fib"], 6))

    def test_what_a_decorator_made_of_a_function_is_sent_with_its_decorator(self):
        cell = self.cell(
            "from functools import lru_cache\n@lru_cache()\ndef cached(x): return x if x < 1 else cached(x - 1)\n"
            "def train(x): return [cached(x), cached.cache_info().misses]\ndef apply(function): return function(3)\n"
        )
        self.assertEqual([0, 4], self.result(cell["train"], 3))
        self.assertEqual(0, self.result(cell["apply"], cell["cached"]))

    def test_a_decorator_that_does_not_tell_what_it_wraps_is_applied_once(self):
        cell = self.cell(
            "def more(f):\n    def g(*a): return f(*a) + 1\n    return g\ndef same(f): return f\n"
            "@more\n@same\ndef one(x): return x\n@same\ndef two(x): return one(x)\ndef train(x): return [one(x), two(x)]\n"
        )
        self.assertEqual([2, 2], cell["train"](1))
        self.assertEqual([2, 2], self.result(cell["train"], 1))

    def test_names_of_a_decorated_function_are_those_of_its_own_module(self):
        (self.project / "own_decorators.py").write_text(
            "import functools\ndef plain(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n"
        )
        cell = self.cell("from own_decorators import plain\nSIZE = 7\n@plain\ndef size(): return SIZE\ndef train(): return size()\n")
        self.assertEqual(7, self.result(cell["train"]))

    def test_a_static_method_is_sent_and_another_is_refused(self):
        text = "class A:\n    @staticmethod\n    @platform.job\n    def st(x): return x + 1\n    @platform.job\n    def meth(self, x): return x\n"
        (self.project / "own_classes.py").write_text("from crucible import MLPlatform\nplatform = MLPlatform('/nowhere')\n" + text)
        cell = self.cell("import own_classes\n" + text + "st = own_classes.A.st\ndef both(): return st.local(1)\n", platform=MLPlatform("/nowhere"))
        self.assertEqual([3, 3, 2], [self.result(cell["A"].st, 2), self.result(cell["own_classes"].A.st, 2), self.result(cell["both"])])
        for owner in (cell["A"], cell["own_classes"].A):
            with self.assertRaisesRegex(PackingError, "A.meth is a method, which cannot be sent without its object"):
                owner().meth(1)

    def test_a_job_of_a_module_is_a_function_there(self):
        (self.project / "own_job.py").write_text("from crucible import MLPlatform\n@MLPlatform('/nowhere').job\ndef train(x): return x\n")
        cell = self.cell("from own_job import train\ndef both(): return train.local(3)\n")
        self.assertEqual(3, self.result(cell["both"]))

    def test_an_argument_may_be_called_self(self):
        cell = self.cell("@platform.job\ndef train(self): return self\n", platform=MLPlatform("/nowhere"))
        self.assertEqual(3, cell["train"].local(self=3))

    def test_a_function_in_a_function_takes_what_is_around_it(self):
        cell = self.cell("def make(n):\n    def add(x):\n        return x + n\n    return add\n")
        self.assertEqual(12, self.result(cell["make"](10), 2))

    def test_an_asynchronous_function_is_awaited(self):
        cell = self.cell("async def train(x): return x + 1\n")
        self.assertEqual(3, self.result(cell["train"], 2))

    def test_own_modules_go_along_with_what_they_import(self):
        (self.project / "own_tools.py").write_text("from own_deeper.maths import half\nclass Conf: value = 8\n")
        (self.project / "own_deeper").mkdir()
        (self.project / "own_deeper" / "__init__.py").write_text("")
        (self.project / "own_deeper" / "maths.py").write_text("import json\ndef half(x): return x / 2\n")
        (self.project / "own_other.py").write_text("x = 1\n")
        cell = self.cell("import own_tools\ndef train(conf):\n    import own_other\n    return own_tools.half(conf.value) + own_other.x\n")
        self.assertEqual(5.0, self.result(cell["train"], cell["own_tools"].Conf()))

    def test_a_function_of_a_module_is_imported_there_with_its_platform(self):
        (self.project / "own_train.py").write_text(
            "from crucible import MLPlatform\nplatform = MLPlatform('/nowhere')\n"
            "def double(x): return 2 * x\n@platform.job(gpus=1)\ndef train(x): return double(x)\n"
        )
        cell = self.cell("import own_train\n")
        self.assertEqual(6, self.result(cell["own_train"].train, 3))

    def test_a_module_that_submits_while_it_is_imported_does_so_only_here(self):
        (self.project / "own_eager.py").write_text(
            "from crucible import MLPlatform\n@MLPlatform('/nowhere').job()\ndef train(): return 1\n"
            "if 'crucible_function' in __import__('sys').modules: train()\n"
        )
        cell = self.cell("import own_eager\n")
        _, printed = self.run_packed(self.pack(cell["own_eager"].train))
        self.assertIn("train is called on the machine of a job, where it would submit another job. Call train.local(...) there.", printed)

    def test_what_only_exists_here_is_refused_with_its_name(self):
        cell = self.cell(
            "import threading\nlock = threading.Lock()\ndef locked(): return lock\ndef asks(): return platform\n"
            "def lost(): return nowhere\nshort = lambda: 1\ndef calls(): return short()\n",
            platform=MLPlatform("/nowhere"),
        )
        self.refused("lock, which the function uses, cannot be sent: TypeError", cell["locked"])
        self.refused("platform, which the function uses, is a MLPlatform and exists only here", cell["asks"])
        self.refused("lost uses nowhere, which is not defined", cell["lost"])
        self.refused("A lambda cannot be sent", cell["calls"])
        cell = self.cell("def fine(x): return 1\n")
        self.refused("The arguments of fine cannot be sent: TypeError", cell["fine"], cell["lock"])

    def script(self, source, **names):
        """Runs a file as the program; returns its path and its names."""
        path = self.folder / "script.py"
        path.write_text(source)
        vars(self.notebook).update(names, __file__=str(path))
        exec(compile(source, str(path), "exec"), vars(self.notebook))
        return path, vars(self.notebook)

    def test_what_only_exists_here_is_refused_as_an_argument_and_in_containers(self):
        class Own(MLPlatform):
            pass

        platform = MLPlatform("/nowhere", env={"AWS_SECRET_ACCESS_KEY": "hunter2"})
        source = "class Box: pass\nbox = Box()\nbox.inner = [platform]\n@platform.job(secrets={'A': 'hunter2'})\ndef train(x): return x\ndef uses(): return box\n"
        cell = self.cell(source, platform=platform)
        sent = {
            "MLPlatform": [platform, {"a": [platform]}, cell["box"]],
            "Own": [Own(env={})],
            "Job": [Job(platform._program, "job-1")],
            "Function": [(cell["train"],)],
            "Settings": [cell["train"].settings],
            "Program": [platform._program],
            "Truffle|Program": [Truffle("/nowhere")],
            "Bound": [platform.submit],
        }
        for kind, values in sent.items():
            for value in values:
                with self.subTest(kind):
                    self.refused("The arguments of train cannot be sent: it contains a (%s), which exists only here" % kind, cell["train"], value)
        self.refused("box, which the function uses, cannot be sent: it contains a MLPlatform", cell["uses"])
        self.assertEqual(Requirements(gpus=2), self.result(cell["train"], Requirements(gpus=2)))

    def test_a_script_that_is_edited_while_it_runs_sends_what_runs(self):
        source = "SIZE = 1\nclass Model:\n    size = 1\ndef helper(x=1): return x\n@platform.job\ndef train(): return [helper(), Model.size]\n"
        path, names = self.script(source, platform=MLPlatform("/nowhere"))
        path.write_text("def other(): return 0\n\n" + source.replace("1", "222").replace("helper()", "'new'"))
        self.assertEqual([1, 1], self.result(names["train"]))

    def test_a_script_that_was_edited_before_its_job_was_defined_is_refused(self):
        source = "def inner(x): return [x, 'A']\nclass Model:\n    def size(self): return 1\ndef train(): return Model().size()\ndef two(): return inner(1)\n"
        path, names = self.script(source)
        path.write_text("# Lines move.\n\n" + source)
        self.assertEqual([1, "A"], self.result(names["two"]))
        path.write_text(source.replace("'A'", "'BBB'").replace("return 1\n", "return 1111\n"))
        for name in ("two", "train"):
            job = MLPlatform("/nowhere").job(names[name])
            error = self.refused(r"(inner|Model), which the function uses, differs from its file: .*script.py has changed", job)
            self.assertEqual("Start the program again.", error.hint)

    def test_a_module_that_is_edited_after_its_import_is_refused(self):
        path = self.project / "own_edited.py"
        source = "from crucible import MLPlatform\n@MLPlatform('/nowhere').job\ndef train(): return 1\n"
        path.write_text(source)
        cell = self.cell("import own_edited\n")
        path.write_text("# Only a remark.\n" + source)
        self.assertEqual(1, self.result(cell["own_edited"].train))
        path.write_text(source.replace("return 1", "return 22"))
        self.refused("own_edited.py has changed since it was loaded", cell["own_edited"].train)

    def test_an_indented_function_with_a_string_of_many_lines_is_sent_as_it_is(self):
        cell = self.cell(
            "if True:\n    class Box:\n        text = \"\"\"\nzero\n\"\"\"\n    def train(x):\n        s = \"\"\"\nline\n        deep {x}\n\"\"\"\n"
            "        f = f\"\"\"\n{x}\n    deep\"\"\"\n        # here\n# there\n        return [s, f, Box.text, (1,\n  2)]\n"
        )
        self.assertEqual(["\nline\n        deep {x}\n", "\n5\n    deep", "\nzero\n", (1, 2)], self.result(cell["train"], 5))

    def test_a_function_without_source_is_refused(self):
        names = {"__name__": "__main__"}
        exec("def train(): pass", names)
        self.refused("The source of train cannot be found", names["train"])
        with self.assertRaisesRegex(PackingError, "not a Python function with source code"):
            MLPlatform("/nowhere").job(len)

    def test_too_much_is_refused(self):
        cell = self.cell("def train(x): return 1\n")
        with mock.patch.object(packing, "BYTES_MAX", 1 << 20):
            self.refused("larger than 1 MiB. Load large data in the function", cell["train"], b"x" * (1 << 21))
        (self.project / "own_large.py").write_text("x = 1\n" + "#" * 2000)
        cell = self.cell("import own_large\ndef train(): return own_large.x\n")
        with mock.patch.object(modules, "BYTES_MAX", 1000):
            self.refused("The modules of the function are larger", cell["train"])
        # Two halves are too much together, and as much as is allowed is not.
        for name in ("own_first", "own_second"):
            (self.project / (name + ".py")).write_text("x = 1\n" + "#" * 494)
        both = self.cell("import own_first, own_second\ndef train(): return own_first.x + own_second.x\n")["train"]
        with mock.patch.object(modules, "BYTES_MAX", 999):
            self.refused("The modules of the function are larger", both)
        with mock.patch.object(modules, "BYTES_MAX", 1000):
            self.assertEqual(2, self.result(both))

    def test_two_things_of_one_name_are_refused(self):
        cell = self.cell("value = 1\ndef reads(): return value\ndef make(value):\n    def both(): return value + reads()\n    return both\n")
        self.refused("Two different things that the function uses are called value", cell["make"](2))

    def test_wrong_arguments_are_refused_before_anything_is_sent(self):
        cell = self.cell("@platform.job\ndef train(x): return 1\n", platform=MLPlatform("/nowhere"))
        with self.assertRaisesRegex(TypeError, "missing a required argument: 'x'"):
            cell["train"]()

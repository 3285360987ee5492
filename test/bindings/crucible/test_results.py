"""The return value of a function: only what the job has signed is read."""

import hashlib
import hmac
import importlib
import json
import pickle
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from crucible import CommandFailed, Job, JobFailed, ResultError
from crucible.functions import _is_decorator, packing
from crucible.functions.results import RESULT, Kept, fetch_result, read_result
from crucible.status import status_of
from test_status import shown
from truffle.cli import Program
from unit_support import ROOT, InNotebook

sys.path.insert(0, str(ROOT / "runner"))
from crucible_runner.signing import signature_of  # noqa: E402


UNSIGNED = "is not signed by the job's machine"


def signed(content, key="k", attempt=1):
    """The answer of `fetch_result` for a file that a runner has signed with this key."""
    signature = signature_of(key, attempt, [{"path": RESULT + "/value", "sha256": hashlib.sha256(content).hexdigest()}])
    return Kept(attempt, content, signature)


def old_result(value, key="old"):
    """A file as functions of version 0.1.0 wrote it."""
    rest = json.dumps({"failure": None, "python": "3.11.7", "attempt": "1"}).encode() + b"\n" + pickle.dumps(value, 4)
    return hmac.new(key.encode(), rest, hashlib.sha256).hexdigest().encode() + b"\n" + rest


class TestResults(InNotebook):
    def file_of(self, source, *args):
        """The result file of the function `train` of a cell."""
        cell = self.cell(source)
        folder = Path(tempfile.mkdtemp(dir=str(self.folder)))
        packing.pack(cell["train"], (args, {}), folder, _is_decorator)
        content, self.printed = self.run_packed(folder)
        return content

    def read(self, kept, *, key="k", state="succeeded", attempt=1, **options):
        """Reads a result file as from the store; a runner has signed it, unless it is given as `Kept`."""
        status = status_of(shown(*["spot"] * attempt, state=state))
        job = Job(Program("crucible", "/nowhere"), "job-1")
        steps = read_result(job, status, signed(kept) if isinstance(kept, bytes) else kept, key=key, **options)
        try:
            call = next(steps)
            while True:
                self.assertEqual("logs", call.words[0])
                call = steps.send({"lines": [{"m": "last words"}]})
        except StopIteration as end:
            return end.value

    def test_a_value_comes_back(self):
        self.assertEqual({"a": [1]}, self.read(self.file_of("def train(x): return {'a': [x]}\n", 1)))

    def test_a_dataclass_of_an_own_module_comes_back(self):
        (self.folder / "own_project.py").write_text(
            "from dataclasses import dataclass\n@dataclass\nclass Run:\n    loss: float\ndef train(x): return Run(x)\n"
        )
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        own = importlib.import_module("own_project")
        self.addCleanup(sys.modules.pop, "own_project")
        folder = self.folder / "packed"
        folder.mkdir()
        packing.pack(own.train, ((0.5,), {}), folder, _is_decorator)
        content, _ = self.run_packed(folder)
        self.assertEqual(own.Run(0.5), self.read(content))
        del sys.modules["own_project"]
        with self.assertRaisesRegex(ResultError, "contains a Run of the module own_project, which is not imported here: import it first"):
            self.read(content)
        sys.modules["own_project"] = own

    def test_a_value_that_another_has_signed_or_changed_is_not_read(self):
        content = self.file_of("def train(): return 1\n")
        for kept in (signed(content, "other"), replace(signed(content, attempt=2), attempt=1), Kept(1, content), Kept(1, content + b" ", signed(content).signature)):
            with self.subTest(kept), self.assertRaisesRegex(ResultError, UNSIGNED):
                self.read(kept)
        self.assertEqual(1, self.read(signed(content, "other"), key="other"))

    def test_a_failure_that_another_has_written_is_not_believed(self):
        content = self.file_of("def train(): raise ValueError('no')\n")
        with self.assertRaisesRegex(ResultError, UNSIGNED):
            self.read(signed(content, "other"), state="failed")

    def test_whatever_else_is_in_the_file_is_not_read(self):
        head, data = self.file_of("def train(): return 1\n").split(b"\n", 1)
        for content in (b"", b"abc", b"a\nb\nc", b"a\n[]\nc", b"a\n{}\nc", b"\xff" * 64 + b"\n" + head + b"\n" + data, b"{}\n{}\n"):
            with self.subTest(content), self.assertRaisesRegex(ResultError, UNSIGNED):
                self.read(content)

    def test_a_head_of_another_form_is_not_read(self):
        data = self.file_of("def train(): return 1\n").split(b"\n", 1)[1]
        heads = [
            {"failure": "exception", "python": "3"}, {"failure": [1], "python": "3"}, {"failure": {}, "python": "3"}, {"failure": None, "python": 3},
            {"failure": "other", "python": "3"}, {"failure": "result", "python": "3", "message": 1},
            {"failure": "exception", "python": "3", "type": ["a"], "message": "", "traceback": ""}, "failure", 3, None,
        ]
        newer = [{"failure": None, "python": "3", **more} for more in ({}, {"form": "yaml"}, {"form": "pickle"}, {"form": ["data"]})]
        lines = [json.dumps(one).encode() for one in heads] + [b"[" * 100_000]
        for content in [*(b"0" * 64 + b"\n" + line for line in lines), *lines, *(json.dumps(one).encode() for one in newer)]:
            with self.subTest(content[:120]), self.assertRaisesRegex(ResultError, UNSIGNED):
                self.read(content + b"\n" + data, key=None, is_trusted=True)

    def test_a_result_runs_nothing_by_default(self):
        ran = self.folder / "ran"
        bad = "class Bad:\n    def __reduce__(self): return (__import__('os').mkdir, (%r,))\n" % str(ran)
        content = self.file_of(bad + "def train(): return [Bad()]\n")
        for kept in (signed(content), Kept(1, content), signed(old_result(1)), Kept(1, old_result(1))):
            for key in ("k", "old", None):
                with self.subTest(key=key), self.assertRaises(ResultError):
                    self.read(kept, key=key)
        words = r"job-1 is not read: it is a pickle, because it contains a Bad\..*can run any program on this computer.*trust_pickle=True.*if you trust the job"
        with self.assertRaisesRegex(ResultError, words):
            self.read(content)
        self.assertFalse(ran.exists())
        self.read(content, is_trusted=True)
        self.assertTrue(ran.exists())

    def test_a_result_of_an_older_version_is_a_pickle(self):
        for key in ("old", None):
            with self.subTest(key=key), self.assertRaisesRegex(ResultError, "an older version of crucible-ml wrote it.*trust_pickle=True"):
                self.read(Kept(1, old_result([1])), key=key)
            self.assertEqual([1], self.read(Kept(1, old_result([1])), key=key, is_trusted=True))
        with self.assertRaisesRegex(ResultError, UNSIGNED):
            self.read(Kept(1, old_result([1], "forged")), key="old", is_trusted=True)

    def test_a_file_that_was_overwritten_in_the_store_is_named(self):
        def fetched(reason):
            steps = fetch_result(Job(Program("crucible", "/nowhere"), "job-1"))
            next(steps)
            steps.throw(CommandFailed("1 of 1 files", details={"failed": [{"path": RESULT, "reason": reason}]}))

        reason = "The artifact %s differs from the job's file." % RESULT
        with self.assertRaisesRegex(ResultError, "stored return value of job-1 differs from what the job recorded"):
            fetched(reason)
        with self.assertRaisesRegex(CommandFailed, "1 of 1 files"):
            fetched("The store does not answer.")
        said = (ROOT / "client" / "job" / "artifacts.ts").read_text()
        self.assertIn(reason.replace(RESULT, "${path}"), said)

    def test_a_value_of_another_session_is_data_too(self):
        self.assertEqual(1, self.read(Kept(1, self.file_of("def train(): return 1\n")), key=None))
        with self.assertRaisesRegex(ResultError, "trust_pickle=True"):
            self.read(Kept(1, self.file_of("class Odd: pass\ndef train(): return Odd()\n")), key=None)

    def test_an_exception_is_raised_with_its_traceback(self):
        content = self.file_of("def deep(x): return 1 / x\ndef train(x): return deep(x)\n", 0)
        with self.assertRaises(JobFailed) as caught:
            self.read(content, state="failed")
        error = caught.exception
        self.assertEqual("ZeroDivisionError", error.exception_type)
        self.assertRegex(str(error), r"job-1 failed with ZeroDivisionError: division by zero\n\nOn the machine, with Python 3")
        self.assertRegex(error.traceback, r"in train\n(.*\n)+.*in deep\n")
        self.assertNotIn("crucible_function.py", error.traceback)
        self.assertEqual(("last words", "failed"), (error.log, error.status.state))

    def test_an_exception_that_cannot_say_what_it_is_is_kept_all_the_same(self):
        odd = "class Odd(Exception):\n    def __str__(self): raise ValueError\n    __repr__ = __str__\n    @property\n    def __notes__(self): raise ValueError\n"
        for source, words in ((odd + "def train(): raise Odd()\n", "failed with Odd: .its __str__ raised ValueError"),
                              ("def train(): raise OSError('\\udcff')\n", r"failed with OSError: \\udcff"),
                              (odd + "class Bad:\n    def __reduce__(self): raise Odd()\ndef train(): return Bad()\n", "returned a Bad.*Odd: .its __str__")):
            with self.subTest(words), self.assertRaisesRegex(JobFailed, words) as caught:
                self.read(self.file_of(source), state="failed")
            if "returned" not in words:
                self.assertIn("in train", caught.exception.traceback)

    def test_a_value_that_cannot_be_sent_back_is_named(self):
        content = self.file_of("def train(): return (x for x in [])\n")
        with self.assertRaisesRegex(JobFailed, "it returned a generator, which cannot be sent back.*Return plain data"):
            self.read(content, state="failed")

    def test_the_failure_of_an_earlier_attempt_is_not_that_of_the_job(self):
        content = self.file_of("def train(): raise ValueError\n")
        with self.assertRaisesRegex(JobFailed, r"job-1 failed \(training\)"):
            self.read(content, state="failed", attempt=2)

    def test_a_job_that_was_cancelled_has_no_value(self):
        with self.assertRaisesRegex(JobFailed, "job-1 cancelled"):
            self.read(None, state="cancelled")
        content = self.file_of("import sys\ndef train(): sys.exit(0)\n")
        with self.assertRaisesRegex(ResultError, r"kept no return value. Did its function end the program, with sys.exit\(0\)"):
            self.read(content)

    def test_another_version_of_python_is_named(self):
        told = {"failure": None, "python": "3.1.4", "form": "pickle", "reason": "it contains a Thing"}
        with self.assertRaisesRegex(ResultError, "The job ran Python 3.1.4, and this is Python 3"):
            self.read(json.dumps(told).encode() + b"\n\x80\x04c no.such\nThing\n.", is_trusted=True)

    def test_a_machine_whose_python_cannot_read_the_function_says_so(self):
        folder = self.folder / "packed"
        folder.mkdir()
        for name in packing.OWN_MODULES:
            shutil.copyfile(str(packing.HERE / (name + ".py")), str(folder / (name + ".py")))
        (folder / packing.MAIN).write_text("def train() = 1\n")
        content, printed = self.run_packed(folder, packing.COMMAND)
        with self.assertRaisesRegex(JobFailed, "Python 3.* of the machine cannot read the function"):
            self.read(content, state="failed")
        self.assertIn("cannot read the function", printed)

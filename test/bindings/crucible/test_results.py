"""The return value of a function: only what the job has signed is read."""

import json
import shutil
import tempfile
from pathlib import Path

from crucible import CommandFailed, Job, JobFailed, ResultError
from crucible.functions import _is_decorator, packing
from crucible.functions.results import RESULT, fetch_result, read_result
from crucible.status import status_of
from test_status import shown
from truffle.cli import Program
from unit_support import ROOT, InNotebook


class TestResults(InNotebook):
    def file_of(self, source, *args, key="k"):
        """The result file of the function `train` of a cell."""
        cell = self.cell(source)
        folder = Path(tempfile.mkdtemp(dir=str(self.folder)))
        packing.pack(cell["train"], (args, {}), folder, _is_decorator)
        content, self.printed = self.run_packed(folder, key=key)
        return content

    def read(self, content, *, key="k", state="succeeded", attempt=1, **options):
        """Reads a result file as from the store."""
        status = status_of(shown(*["spot"] * attempt, state=state))
        job = Job(Program("crucible", "/nowhere"), "job-1")
        steps = read_result(job, status, None if content is None else (1, content), key=key, **options)
        try:
            call = next(steps)
            while True:
                self.assertEqual("logs", call.words[0])
                call = steps.send({"lines": [{"m": "last words"}]})
        except StopIteration as end:
            return end.value

    def test_a_value_comes_back(self):
        self.assertEqual({"a": [1]}, self.read(self.file_of("def train(x): return {'a': [x]}\n", 1)))

    def test_a_value_that_another_has_signed_or_changed_is_not_read(self):
        content = self.file_of("def train(): return 1\n", key="other")
        with self.assertRaisesRegex(ResultError, "is not signed by the job"):
            self.read(content)
        with self.assertRaisesRegex(ResultError, "is not signed by the job"):
            self.read(content[:-2] + b"x.", key="other")
        self.assertEqual(1, self.read(content, key="other"))

    def test_a_failure_that_another_has_written_is_not_believed(self):
        content = self.file_of("def train(): raise ValueError('no')\n", key="other")
        with self.assertRaisesRegex(ResultError, "is not signed by the job"):
            self.read(content, state="failed")

    def test_whatever_else_is_in_the_file_is_not_read(self):
        _, head, data = self.file_of("def train(): return 1\n").split(b"\n", 2)
        for content in (b"", b"abc", b"a\nb\nc", b"a\n[]\nc", b"a\n{}\nc", b"\xff" * 64 + b"\n" + head + b"\n" + data):
            with self.subTest(content), self.assertRaisesRegex(ResultError, "is not signed by the job"):
                self.read(content)

    def test_a_head_of_another_form_is_not_read(self):
        _, _, data = self.file_of("def train(): return 1\n").split(b"\n", 2)
        heads = (
            {"failure": "exception", "python": "3"}, {"failure": [1], "python": "3"}, {"failure": {}, "python": "3"}, {"failure": None, "python": 3},
            {"failure": "other", "python": "3"}, {"failure": "result", "python": "3", "message": 1},
            {"failure": "exception", "python": "3", "type": ["a"], "message": "", "traceback": ""}, "failure", 3, None,
        )
        for head in [*(json.dumps(one).encode() for one in heads), b"[" * 100_000]:
            for options in ({}, {"key": None, "is_trusted": True}):
                with self.subTest(head[:60]), self.assertRaisesRegex(ResultError, "is not signed by the job"):
                    self.read(b"s\n" + head + b"\n" + data, **options)

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

    def test_a_value_of_another_session_is_read_only_if_trusted(self):
        content = self.file_of("def train(): return 1\n")
        with self.assertRaisesRegex(ResultError, "submitted by another session"):
            self.read(content, key=None)
        self.assertEqual(1, self.read(content, key=None, is_trusted=True))

    def test_the_key_is_not_in_the_environment_of_the_function(self):
        content = self.file_of("import os\ndef train(): return os.environ.get('FUNCTION_RESULT_KEY')\n")
        self.assertIsNone(self.read(content))

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
        content = self.file_of("def train(): return 1\n")
        signature, head, _ = content.split(b"\n", 2)
        other = json.dumps({**json.loads(head), "python": "3.1.4"}).encode()
        with self.assertRaisesRegex(ResultError, "The job ran Python 3.1.4, and this is Python 3"):
            self.read(b"\n".join([signature, other, b"\x80\x04c no.such\nThing\n."]), key=None, is_trusted=True)

    def test_a_machine_whose_python_cannot_read_the_function_says_so(self):
        folder = self.folder / "packed"
        folder.mkdir()
        source = Path(packing.HERE, "crucible_function.py")
        shutil.copyfile(str(source), str(folder / source.name))
        (folder / packing.MAIN).write_text("def train() = 1\n")
        content, printed = self.run_packed(folder, packing.COMMAND)
        with self.assertRaisesRegex(JobFailed, "Python 3.* of the machine cannot read the function"):
            self.read(content, state="failed")
        self.assertIn("cannot read the function", printed)

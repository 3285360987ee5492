"""Wrong arguments are refused at once, before anything runs, in the words of the caller."""

import asyncio

from crucible import MLPlatform, Requirements, UsageError
from crucible.calls import Run
from crucible.job import Job
from crucible.submission import Submission
from unit_support import InFolder

#: Prints its words, one a line, instead of running anything.
ECHO = 'printf "%s\\n" "$@" > words; echo "{\\"schema\\":\\"crucible/1\\",\\"artifacts\\":[],\\"jobs\\":[]}"'


class TestArguments(InFolder):
    def setUp(self):
        super().setUp()
        self.words = self.folder / "words"
        self.platform = MLPlatform(self.program(ECHO.replace("> words", "> %s" % self.words)))

    def refused(self, pattern, call, *args, **kwargs):
        with self.assertRaisesRegex(UsageError, pattern):
            call(*args, **kwargs)
        self.assertFalse(self.words.exists(), "the command line was started")

    def test_each_argument_of_submit_has_its_type(self):
        submit = self.platform.submit
        for pattern, given in (
            (r"requirements=.*Write requirements=Requirements\(gpus=1\)", {"requirements": {"gpus": 1}}),
            (r"preferences='cost'.*mapping.*optimize_for", {"preferences": "cost"}),
            (r"preferences=\['cost'\]", {"preferences": ["cost"]}),
            (r"allowed_backends=3 .*a text or a list of texts", {"preferences": {"allowed_backends": 3}}),
            (r"allowed_backends=\[3\]", {"preferences": {"allowed_backends": [3]}}),
            (r"env= \(list\)", {"env": ["A=1"]}),
            (r"args=3", {"args": 3}),
            (r"files=3", {"files": 3}),
            (r"secrets= \(int\)", {"secrets": 3}),
            (r"secrets= \(dict\)", {"secrets": {"A": 3}}),
            (r"workdir=3", {"workdir": 3}),
            (r"analyze='no' \(str\) is not True or False", {"analyze": "no"}),
            (r"name=3", {"name": 3}),
        ):
            with self.subTest(given=given):
                self.refused(pattern, submit, "print(1)", **given)
        for given in ({"code": 3}, {"code": b"x"}, {"script": 3}, {"job_file": 3}, {"run": 3}, {"from_job": 3}):
            with self.subTest(given=given):
                self.refused("%s=.*is not a (text|path)" % next(iter(given)), submit, **given)

    def test_what_is_wanted_is_said_in_words(self):
        wanted = "is not a mapping of texts to texts or a list of texts or mappings of texts to texts."
        self.refused(wanted, Requirements, inputs=3)
        self.refused("is not a mapping of texts to texts or paths or a list of texts or paths.", self.platform.submit, "x", files=3)

    def test_a_file_that_was_meant_is_named(self):
        (self.folder / "train.py").write_text("")
        (self.folder / "other").mkdir()
        submit = self.platform.submit
        self.refused("code='train.py' is the name of a file.* Pass script='train.py'", submit, "train.py")
        self.refused("Pass job_file='job.yaml'", submit, "job.yaml")
        self.refused("Did you mean train.py", submit, script=str(self.folder / "trian.py"))
        self.refused("no folder nodir", submit, script=str(self.folder / "train.py"), workdir="nodir")
        self.refused("is not below workdir=", submit, script=str(self.folder / "train.py"), workdir=str(self.folder / "other"))

    def test_too_many_or_unknown_arguments_are_said_as_python_says_them(self):
        for pattern, args, given in ((r"submit\(\) takes", ("x", "y"), {}), (r"submit\(\) got an unexpected .*'foo'", ("x",), {"foo": 1})):
            with self.assertRaisesRegex(TypeError, pattern):
                self.platform.submit(*args, **given)

    def test_asyncio_checks_them_too(self):
        with self.assertRaisesRegex(UsageError, "args=3"):
            asyncio.run(self.platform.submit.aio("x", args=3))

    def test_a_value_of_a_secret_is_not_in_the_message(self):
        with self.assertRaises(UsageError) as raised:
            self.platform.submit("x", secrets={"A": ["hunter2"]})
        self.assertNotIn("hunter2", str(raised.exception))

    def test_no_repr_shows_the_value_of_a_secret(self):
        def train():
            pass

        secrets = {"HF": "hunter2"}
        function = self.platform.job(secrets=secrets)(train)
        submission = Submission(run="true", secrets=secrets)
        with submission.words() as (words, values):
            shown = [function, function.settings, submission, Run(words, values), words]
        self.assertEqual(secrets, values)
        self.assertNotIn("hunter2", repr(shown))

    def test_other_methods_and_decorators_check_theirs(self):
        platform, job = self.platform, self.platform.find
        self.refused("state=3", platform.jobs, state=3)
        self.refused("requirements=3", platform.job, requirements=3)
        self.refused("files='abc.txt'", platform.job, files="abc.txt")
        self.refused("gpus=1.5", platform.job, gpus=1.5)
        self.refused("month=3", platform.budget, 3)
        self.refused("job=3", job, 3)
        self.refused("3 is neither the id or name of a job nor a function", platform.job, 3)

    def test_the_platform_checks_its_own(self):
        for given in ({"executable": 3}, {"executable": " "}, {"home": 3}, {"env": {"A": 3}}, {"address": 3}):
            with self.subTest(given=given):
                self.refused("%s=" % next(iter(given)), MLPlatform, **given)

    def test_requirements_check_every_field(self):
        for given in ({"inputs": {"a": object()}}, {"gpu_memory": 24}, {"interruptible": "yes"}, {"accelerators": [3]}, {"deadline": 3}):
            with self.subTest(given=given):
                self.refused("%s=" % next(iter(given)), Requirements, **given)
        self.assertEqual({"optimize": "cost", "max_price": 2}, Requirements(optimize="cost", max_price=2).fields())

    def test_texts_that_no_command_can_take_are_refused(self):
        self.refused("NUL", self.platform.job, "a\0b")
        self.refused("surrogate", self.platform.submit, "\ud800")
        self.refused("NUL", self.platform.submit, run="true", env={"A": "\0"})

    def test_no_name_becomes_an_option(self):
        for name in ("--help", "-h", "", "  "):
            self.refused("job='.*' is not a name", self.platform.job, name)
        self.refused("checkpoint='--all'", self.found().verify_checkpoints, "--all")

    def test_a_path_that_looks_like_an_option_is_a_path(self):
        with self.assertRaises(Exception):
            self.platform.analyze("--help")
        self.assertIn("./--help", self.words.read_text().split("\n"))

    def found(self):
        return Job(self.platform._program, "job-1")

    def test_one_text_is_not_taken_as_its_characters(self):
        self.refused(r"files='abc.txt'.*Write files=\['abc.txt'\]", self.platform.submit, "x", files="abc.txt")
        self.refused(r"args='--lr 3'.*Write args=\['--lr', '3'\]", self.platform.submit, "x", args="--lr 3")
        self.refused(r"only='a b.txt'.*Write only=\['a b.txt'\]", self.found().artifacts, only="a b.txt")
        self.found().artifacts(only=["a b.txt"])
        self.assertIn("--only=a b.txt", self.words.read_text().split("\n"))

    def test_a_time_limit_is_a_number_from_0(self):
        job = self.found()
        for method in (job.wait, job.result, job.show):
            for limit in ("x", -1, float("nan"), float("inf")):
                with self.subTest(method=method, limit=limit):
                    self.refused("timeout_s=", method, timeout_s=limit)

    def test_an_error_about_a_job_file_is_shown_once(self):
        error = '{"schema":"crucible/1","error":{"kind":"usage","message":"wrong","problems":[{"path":"budget","message":"is no amount"}]}}'
        platform = MLPlatform(self.program("echo '%s'; exit 2" % error))
        with self.assertRaisesRegex(UsageError, "budget: is no amount") as raised:
            platform.submit("x")
        self.assertTrue(raised.exception.__suppress_context__)

"""What a job requires, as a job file has it."""

import json
import numbers
import re
import types
import unittest
from datetime import datetime, timedelta, timezone
from fractions import Fraction

from crucible import Requirements, UsageError
from crucible.requirements import FLAGS, JOB_FILE, flags, job_file, requirements_of
from unit_support import ROOT

#: Fields that say what runs; `MLPlatform.submit` has an argument for each.
OF_SUBMIT = {("name",), ("run",), ("script",), ("workdir",), ("env",), ("secrets",)}


def paths(schema, above=()):
    for name, field in schema.get("properties", {}).items():
        if "properties" in field:
            yield from paths(field, (*above, name))
        else:
            yield (*above, name)


class Whole:
    """A whole number that is no int, as those of NumPy."""

    def __int__(self):
        return 3


numbers.Integral.register(Whole)


class TestRequirements(unittest.TestCase):
    def written(self, **fields):
        return job_file(Requirements(**fields).fields())

    def test_every_field_of_the_job_file_is_reached(self):
        schema = json.loads((ROOT / "docs/job.schema.json").read_text())
        self.assertEqual(set(paths(schema)), set(JOB_FILE.values()) | OF_SUBMIT)
        self.assertLessEqual(set(JOB_FILE), set(Requirements.__dataclass_fields__))

    def test_every_flag_is_one_of_the_command_line(self):
        page = (ROOT / "docs/reference/cli-run-jobs.md").read_text()
        known = set(re.findall(r"^  --([\w-]+)", page, re.M))
        self.assertEqual(set(), {name.replace("_", "-") for name in FLAGS.values()} - known)

    def test_the_names_of_the_source_document_are_amounts_of_the_job_file(self):
        written = self.written(
            gpu_memory_gb=16,
            duration_hours_estimated=3,
            checkpoint_frequency_minutes=30,
            interruptible=True,
            max_cost_usd=10.00,
        )
        self.assertEqual(
            {
                "resources": {"gpu_memory": "16GB"},
                "duration": "3h",
                "checkpoint": {"every": "30m"},
                "interruptible": True,
                "budget": "$10",
            },
            written,
        )

    def test_numbers_have_no_exponent(self):
        self.assertEqual("$0.00001", self.written(max_cost_usd=0.00001)["budget"])
        self.assertEqual("0.5h", self.written(duration_hours_estimated=0.5)["duration"])

    def test_numbers_and_collections_of_other_libraries_are_written(self):
        written = self.written(
            **{"gpus": Whole(), "max_price": Fraction(1, 2), "gpu_memory_gb": Fraction(33, 2), "max_cost_usd": Whole()},
            **{"backends": {"local": 1}.keys(), "inputs": [types.MappingProxyType({"path": "a", "source": "file:///a"})]},
        )
        self.assertEqual({"gpus": 3, "gpu_memory": "16.5GB"}, json.loads(json.dumps(written["resources"])))
        self.assertEqual(("0.5", "$3", ["local"]), (written["max_price"], written["budget"], written["backends"]))
        self.assertEqual([{"path": "a", "source": "file:///a"}], json.loads(json.dumps(written["inputs"])))

    def test_times_and_durations_of_python_are_written(self):
        at = datetime(2027, 1, 31, 19, tzinfo=timezone(timedelta(hours=1)))
        written = self.written(deadline=at, duration=timedelta(minutes=90), checkpoint_quiet=timedelta(seconds=1.5))
        self.assertEqual("2027-01-31T18:00:00Z", written["deadline"])
        self.assertEqual("5400s", written["duration"])
        self.assertEqual({"quiet": "1.5s"}, written["checkpoint"])
        with self.assertRaisesRegex(UsageError, "no time zone"):
            self.written(deadline=datetime(2027, 1, 31))

    def test_two_names_of_one_thing_are_an_error(self):
        for fields in ({"gpu_memory": "24GB", "gpu_memory_gb": 16}, {"budget": "$3", "max_cost_usd": 3}):
            with self.assertRaisesRegex(UsageError, "have the same meaning"):
                self.written(**fields)

    def test_names_of_backends_in_other_tools_are_read(self):
        self.assertEqual(["ec2:spot", "ec2:on-demand", "modal"], self.written(backends=("ec2_spot", "ec2_ondemand", "modal"))["backends"])

    def test_preferences_set_what_is_optimized_and_allowed(self):
        both = Requirements().with_preferences({"optimize_for": "speed", "allowed_backends": None})
        self.assertEqual(("speed", None), (both.optimize, both.backends))
        self.assertEqual(["local"], Requirements().with_preferences({"allowed_backends": ["local"]}).backends)
        with self.assertRaisesRegex(UsageError, "contradicts optimize='time'"):
            Requirements(optimize="time").with_preferences({"optimize_for": "cost"})

    def test_an_unknown_name_leads_to_the_nearest(self):
        with self.assertRaisesRegex(UsageError, "Did you mean optimize_for"):
            Requirements().with_preferences({"optimise_for": "cost"})
        with self.assertRaisesRegex(UsageError, "Did you mean gpu_memory"):
            requirements_of(None, {"gpu_memry": "24GB"})
        with self.assertRaisesRegex(UsageError, "no requirement 'gpu'. Did you mean gpus"):
            Requirements(gpu=1)
        with self.assertRaisesRegex(UsageError, "Known: allowed_backends"):
            Requirements().with_preferences({"xyz": 1})

    def test_only_a_job_file_has_some_fields(self):
        self.assertEqual(
            {"no_interruptible": True, "input": ["a=file:///a"]},
            flags(Requirements(interruptible=False, inputs={"a": "file:///a"}).fields()),
        )
        with self.assertRaisesRegex(UsageError, "Write checkpoint.size into the job file"):
            flags(Requirements(checkpoint_size="12GB").fields())

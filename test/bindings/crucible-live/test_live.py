"""The Python package against a deployment: workers, Temporal, a small cloud. Jobs are submitted at once and looked at one by one."""

import asyncio
import unittest
from pathlib import Path

from crucible import JobFailed, MLPlatform, NotFoundError, Requirements, UsageError
from live_support import TRAIN, write_scripts

LOCAL = Requirements(backends=["local"], interruptible=True)

platform = MLPlatform()


@platform.job(backends="local:on-demand", secrets={"TOKEN": "abcdefgh"}, env={"RATE": 3})
def train(numbers, by=2):
    import os

    with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "numbers.txt"), "w") as file:
        file.write(str(numbers))
    return {"sum": sum(numbers) * by, "rate": os.environ["RATE"], "token": len(os.environ["TOKEN"])}


@platform.job(backends=["local"])
def fails(value):
    raise ValueError("no %s" % value)


setUpModule = write_scripts


class TestJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gate = str(Path("gate").absolute())
        cls.moved = platform.submit(TRAIN, requirements=LOCAL, name="moved", env={"GATE": cls.gate})
        cls.held = platform.submit(run="sleep 600", requirements=LOCAL, name="held")
        cls.result = train([1, 2, 3])
        cls.failure = fails("luck")
        cls.plain = platform.submit(
            script="train.py", args=["--lr", "3e-4"], requirements=LOCAL, secrets={"TOKEN": "abcdefgh"}, name="plain", workdir="."
        )

    def test_a_move_is_seen_while_it_happens(self):
        async def moves():
            found, asked = [], False
            async for status in self.moved.monitor():
                found.append(status)
                if not asked and status.state == "running" and status.checkpoints.newest is not None:
                    asked = True
                    await self.moved.migrate.aio(to="local:on-demand")
                if status.backend_changed:
                    Path(self.gate).touch()
            return found

        found = asyncio.run(moves())
        changes = [(one.previous_backend, one.backend) for one in found if one.backend_changed]
        self.assertEqual([("local:spot", "local:on-demand")], changes)
        self.assertEqual(("succeeded", 100.0, 2), (found[-1].state, found[-1].progress, found[-1].attempt))
        self.assertEqual(found[-1].cost_micro_usd, sum(one.cost_micro_usd for one in found[-1].attempts))
        again = [(one.previous_backend, one.backend) for one in self.moved.monitor() if one.backend_changed]
        self.assertEqual(changes, again)

    def test_a_script_runs_with_its_arguments_and_secrets(self):
        self.assertEqual("succeeded", self.plain.wait(timeout_s=120).state)
        text = str(self.plain.logs())
        self.assertIn("token of 8 letters for ['--lr', '3e-4']", text)
        self.assertEqual("plain", platform.job("plain").name)

    def test_a_log_is_followed_to_its_end(self):
        lines = [line.text for line in self.plain.logs(follow=True) if line.stream == "out"]
        self.assertEqual(["step %d/40" % step for step in range(1, 41)], [line[: line.index(" loss")] for line in lines if line.startswith("step")])

    def test_artifacts_are_listed_and_downloaded(self):
        self.plain.wait(timeout_s=120)
        (found,) = self.plain.artifacts(download="results")
        self.assertEqual("counted to 40", Path(found.local_path).read_text())
        self.assertEqual(["result.txt"], [one.path for one in self.plain.artifacts(only=("result.txt",))])
        with self.assertRaisesRegex(NotFoundError, "has no artifact other"):
            self.plain.artifacts(only=("other",))

    def test_checkpoints_are_listed_verified_and_downloaded(self):
        self.plain.wait(timeout_s=120)
        newest = self.plain.checkpoints()[0]
        self.assertEqual((40, "complete"), (newest.step, newest.state))
        self.assertEqual([True], [one.is_good for one in self.plain.verify_checkpoints(newest.id)])
        self.assertEqual("40", Path("saved", self.plain.download_checkpoint("saved").resume_path).read_text())

    def test_decisions_and_events_are_told(self):
        self.plain.wait(timeout_s=120)
        why = self.plain.why()
        self.assertEqual("plan", why.decisions[0].kind)
        self.assertIn("local spot", str(why))
        self.assertEqual("submitted", self.plain.events()[0].kind)
        self.assertIn("$", str(self.plain.what_if("price.spot=+900%")))

    def test_a_function_returns_its_value(self):
        self.assertEqual({"sum": 12, "rate": "3", "token": 8}, self.result.result(timeout_s=120))
        self.assertIn("numbers.txt", [one.path for one in self.result.artifacts()])

    def test_a_function_is_run_again_from_its_job(self):
        again = platform.submit(from_job=self.result.id, fresh=True, secrets={"TOKEN": "abc"})
        self.assertEqual({"sum": 12, "rate": "3", "token": 3}, again.result(timeout_s=120))

    def test_a_function_that_fails_raises_with_its_traceback(self):
        with self.assertRaises(JobFailed) as caught:
            asyncio.run(self.failure.result.aio(timeout_s=120))
        self.assertEqual(("ValueError", "failed"), (caught.exception.exception_type, caught.exception.status.state))
        self.assertIn('raise ValueError("no %s" % value)', str(caught.exception))

    def test_a_cancelled_job_has_no_result(self):
        next(status for status in self.held.monitor() if status.state == "running")
        self.assertIn("Cancelling", self.held.cancel(now=True))
        with self.assertRaisesRegex(JobFailed, "cancelled"):
            self.held.result(timeout_s=120)

    def test_a_job_is_continued_from_its_checkpoint(self):
        self.plain.wait(timeout_s=120)
        again = platform.submit(from_job=self.plain.id, requirements=Requirements(max_failures=0), name="again", secrets={"TOKEN": "x"})
        self.assertEqual(40, again.wait(timeout_s=120).attempts[0].restored_from.step)

    def test_jobs_are_listed_with_their_state(self):
        jobs = platform.jobs(name="held")
        self.assertEqual([self.held.id], [job.id for job in jobs])
        self.assertIn(self.held.id, jobs._repr_html_())


class TestPlatform(unittest.TestCase):
    def test_a_plan_ranks_and_excludes(self):
        plan = platform.recommend(requirements=Requirements(gpu_memory_gb=16, interruptible=True, duration="3h", max_cost_usd=10))
        self.assertTrue(plan[0].backend.startswith("ec2:"))
        self.assertLessEqual(plan[0].cost.low, plan[0].cost.median)
        self.assertEqual(sorted(one.cost_micro_usd for one in plan)[0], plan[0].cost_micro_usd)
        nowhere = platform.recommend(requirements=Requirements(gpus=64))
        self.assertEqual(0, len(nowhere))
        self.assertIn("gpus", [one.code for one in nowhere.rejections])

    def test_wrong_requirements_are_named_as_they_were_given(self):
        with self.assertRaisesRegex(UsageError, r'^checkpoint_every: "3 parsecs" is not a duration'):
            platform.recommend(requirements=Requirements(checkpoint_every="3 parsecs"))
        with self.assertRaisesRegex(UsageError, "NOT_SET"):
            platform.submit("print(1)", secrets=["NOT_SET"])

    def test_a_job_file_is_planned_with_changes(self):
        Path("job.yaml").write_text("script: train.py\nbackends: [local]\n")
        plan = platform.plan(job_file="job.yaml", preferences={"allowed_backends": ["local:on-demand"]})
        self.assertEqual(["local:on-demand"], [one.backend for one in plan])

    def test_a_program_is_analyzed(self):
        analysis = platform.analyze(code="import torch\nmodel = torch.nn.Linear(1, 1)\ntorch.save(model.state_dict(), 'm.pt')\n")
        self.assertEqual(["pytorch"], analysis["framework"].value)

    def test_the_deployment_is_healthy(self):
        health = platform.doctor()
        self.assertTrue(health.is_healthy, str(health))
        self.assertEqual(0, platform.budget().total.promised_micro_usd)


if __name__ == "__main__":
    unittest.main()

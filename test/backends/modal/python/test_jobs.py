"""Jobs of the gateway over Modal in memory: repeated requests, cancellations at every moment, and launchers that Modal takes away."""

import asyncio
import unittest

from memory_runtime import MemoryRuntime, request_of

from crucible_gateway.documents import Job
from crucible_gateway.jobs import Jobs, KeyReused, TooLate
from crucible_gateway.launcher import launch
from crucible_gateway.runtime import RuntimeFailure


class JobsTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.runtime = MemoryRuntime()
        self.jobs = Jobs(self.runtime)

    async def settle(self):
        await asyncio.gather(*self.runtime.calls.values())

    async def read(self, key="a-1") -> Job:
        job = await self.jobs.read(key)
        assert job is not None
        return job

    async def test_a_repeated_request_makes_one_sandbox(self):
        answers = await asyncio.gather(*(self.jobs.submit("a-1", request_of(command=[str(i)])) for i in range(20)))
        await self.settle()
        self.assertEqual(len(self.runtime.created), 1)
        self.assertEqual(sum(is_new for _, is_new in answers), 1)
        self.assertEqual((await self.read()).phase, "running")

    async def test_a_key_of_another_request_is_refused(self):
        await self.jobs.submit("a-1", request_of())
        with self.assertRaises(KeyReused):
            await self.jobs.submit("a-1", request_of(memory_mib=1024))

    async def test_a_late_request_starts_nothing_unless_the_key_is_known(self):
        self.runtime.now = 2_000_001
        with self.assertRaises(TooLate):
            await self.jobs.submit("a-1", request_of())
        self.assertIsNone(await self.jobs.read("a-1"))
        await self.jobs.submit("a-1", request_of(send_by_ms=3_000_000))
        job, is_new = await self.jobs.submit("a-1", request_of())
        self.assertEqual((job.key, is_new), ("a-1", False))

    async def test_a_job_goes_through_its_phases(self):
        self.runtime.is_launching.clear()
        job, _ = await self.jobs.submit("a-1", request_of(tags={"job": "a"}))
        self.assertEqual(job.phase, "launching")
        self.runtime.now += 5000
        self.runtime.is_launching.set()
        await self.settle()
        job = await self.read()
        self.assertEqual((job.phase, job.running_at_ms, job.tags), ("running", 1_005_000, {"job": "a"}))
        self.runtime.exit_codes["sb-1"] = 124
        self.runtime.now += 1000
        await self.read()
        self.runtime.now += 1000
        job = await self.read()
        self.assertEqual((job.phase, job.exit_code, job.ended_at_ms), ("ended", 124, 1_006_000))

    async def test_a_failed_launch_keeps_the_words_of_modal(self):
        self.runtime.failures = [("ResourceExhaustedError", "Insufficient capacity to create sandbox.")]
        await self.jobs.submit("a-1", request_of())
        await self.settle()
        job = await self.read()
        self.assertEqual(job.phase, "launch_failed")
        self.assertEqual(job.error.type, "ResourceExhaustedError")

    async def test_the_creation_rate_of_the_workspace_is_waited_for(self):
        self.runtime.failures = [("ResourceExhaustedError", "Sandbox creation rate limit exceeded")] * 3
        await self.jobs.submit("a-1", request_of())
        await self.settle()
        self.assertEqual(((await self.read()).phase, self.runtime.slept), ("running", [1, 2, 4]))

    async def test_a_cancelled_key_never_starts(self):
        job = await self.jobs.cancel("a-1")
        self.assertEqual(job.phase, "cancelled")
        job, _ = await self.jobs.submit("a-1", request_of())
        await self.settle()
        self.assertEqual((job.phase, self.runtime.created), ("cancelled", []))

    async def test_a_cancellation_while_modal_schedules_ends_the_sandbox(self):
        self.runtime.is_launching.clear()
        await self.jobs.submit("a-1", request_of())
        await asyncio.sleep(0.01)
        await self.jobs.cancel("a-1")
        self.assertEqual(self.runtime.exit_codes, {"sb-1": 137})
        self.runtime.is_launching.set()
        await self.settle()
        self.assertEqual((await self.read()).phase, "cancelled")

    async def test_a_cancellation_that_the_list_of_modal_misses_is_made_up_for_by_the_launcher(self):
        self.runtime.is_launching.clear()
        await self.jobs.submit("a-1", request_of())
        await asyncio.sleep(0.01)
        listed, self.runtime.tags = self.runtime.tags, {}
        await self.jobs.cancel("a-1")
        self.assertEqual(self.runtime.exit_codes, {"sb-1": None})
        self.runtime.tags = listed
        self.runtime.is_launching.set()
        await self.settle()
        self.assertEqual(self.runtime.exit_codes, {"sb-1": 137})

    async def test_cancellations_and_launches_at_once_leave_nothing_running(self):
        for i in range(50):
            key = "r-%d" % i
            await asyncio.gather(self.jobs.submit(key, request_of()), self.jobs.cancel(key))
            await self.settle()
            await self.jobs.cancel(key)
            self.assertEqual((await self.read(key)).phase, "cancelled")
        self.assertNotIn(None, self.runtime.exit_codes.values())

    async def test_a_launcher_that_modal_took_away_is_followed_by_one_that_adopts(self):
        self.runtime.is_launching.clear()
        await self.jobs.submit("a-1", request_of())
        await asyncio.sleep(0.01)
        self.runtime.calls["fc-1"].cancel()
        self.assertEqual(await launch(self.runtime, "a-1", request_of()), "adopted sb-1")
        self.assertEqual(((await self.read()).phase, len(self.runtime.created)), ("running", 1))

    async def test_a_sandbox_whose_launcher_died_is_found_by_its_tag(self):
        self.runtime.is_launching.clear()
        await self.jobs.submit("a-1", request_of())
        await asyncio.sleep(0.01)
        self.runtime.calls["fc-1"].cancel()
        await asyncio.gather(*self.runtime.calls.values(), return_exceptions=True)
        job = await self.read()
        self.assertEqual((job.phase, job.sandbox_id), ("running", "sb-1"))

    async def test_a_launcher_that_died_before_it_created_anything_is_reported_as_lost(self):
        self.runtime.facts.entries["a-1/claim"] = "launcher"
        await self.jobs.submit("a-1", request_of())
        self.runtime.facts.entries["a-1/call"] = "fc-1"
        self.runtime.calls["fc-1"] = asyncio.ensure_future(launch(self.runtime, "a-1", request_of()))
        await self.settle()
        self.assertEqual((await self.read()).phase, "launch_lost")

    async def test_a_launcher_that_modal_refuses_is_a_failed_launch_with_its_words(self):
        for type_name, message in (("ResourceExhaustedError", "workspace billing cycle spend limit reached"), ("ConflictError", "the app is stopped")):
            self.runtime.spawn_failures = [(type_name, message)]
            job, _ = await self.jobs.submit(type_name.lower(), request_of())
            assert job.error is not None
            self.assertEqual((job.phase, job.error.type, job.error.message), ("launch_failed", type_name, message))
            again, _ = await self.jobs.submit(type_name.lower(), request_of())
            self.assertEqual(again, job)
        self.assertEqual((self.runtime.spawned, await self.jobs.running("dep")), (0, []))

    async def test_a_launcher_that_was_not_started_is_started_by_a_repeated_request(self):
        for type_name in ("ServiceError", "ResourceExhaustedError"):
            key = type_name.lower()
            self.runtime.spawn_failures = [(type_name, "try later")]
            with self.assertRaises(RuntimeFailure):
                await self.jobs.submit(key, request_of())
            self.assertEqual((await self.read(key)).phase, "launching")
            await self.jobs.submit(key, request_of())
            await self.settle()
            self.assertEqual((await self.read(key)).phase, "running")

    async def test_a_launcher_that_was_never_started_is_reported_as_lost(self):
        self.runtime.spawn_failures = [("ServiceError", "try later")]
        with self.assertRaises(RuntimeFailure):
            await self.jobs.submit("a-1", request_of())
        self.runtime.now += 119_000
        self.assertEqual((await self.read()).phase, "launching")
        self.runtime.now += 2_000
        self.assertEqual((await self.read()).phase, "launch_lost")
        self.assertEqual(await self.jobs.running("dep"), [])

    async def test_a_conflict_while_modal_schedules_does_not_leave_its_sandbox_behind(self):
        self.runtime.tags["sb-9"], self.runtime.exit_codes["sb-9"] = {"key": "a-1", "owner": "dep"}, None
        self.runtime.failures = [("ConflictError", "aborted")]
        self.assertEqual(await launch(self.runtime, "a-1", request_of()), "adopted sb-9")

    async def test_a_name_that_modal_has_already_is_adopted(self):
        self.runtime.tags["sb-9"], self.runtime.exit_codes["sb-9"] = {"key": "a-1", "owner": "dep"}, None
        self.runtime.failures = [("AlreadyExistsError", "a sandbox named a-1 exists")]
        await self.jobs.submit("a-1", request_of())
        await self.settle()
        self.assertEqual((await self.read()).sandbox_id, "sb-9")

    async def test_an_expired_registry_entry_does_not_hide_a_running_sandbox(self):
        await self.jobs.submit("a-1", request_of(tags={"type": "cpu"}))
        await self.settle()
        before = await self.read()
        self.runtime.facts.entries.clear()
        self.assertEqual(await self.read(), before)

    async def test_the_list_asks_modal_and_is_limited_to_the_owner(self):
        for key, owner in (("a-1", "dep"), ("b-1", "dep"), ("c-1", "other")):
            await self.jobs.submit(key, request_of(owner=owner))
        await self.settle()
        self.runtime.facts.entries.clear()
        self.assertEqual([each.key for each in await self.jobs.running("dep")], ["a-1", "b-1"])

    async def test_the_list_has_launches_that_modal_does_not_list_yet(self):
        self.runtime.is_launching.clear()
        await self.jobs.submit("a-1", request_of())
        await asyncio.sleep(0.01)
        self.runtime.tags = {}
        self.assertEqual([(each.key, each.sandbox_id) for each in await self.jobs.running("dep")], [("a-1", None)])
        self.assertEqual(await self.jobs.running("other"), [])
        self.runtime.is_launching.set()
        await self.settle()
        self.runtime.exit_codes["sb-1"] = 0
        self.assertEqual(await self.jobs.running("dep"), [])

    async def test_the_registry_keeps_no_command_and_no_environment(self):
        await self.jobs.submit("a-1", request_of(command=["sh", "-c", "canary"], env={"KEY": "canary"}))
        await self.settle()
        self.assertNotIn("canary", repr(self.runtime.facts.entries))


if __name__ == "__main__":
    unittest.main()

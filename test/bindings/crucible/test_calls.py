"""Both forms of every operation, and what a command line may answer."""

import asyncio
import json
import os
import unittest
from unittest import mock

from crucible import CommandFailed, CrucibleWarning, ExecutableNotFound, Job, MLPlatform, NotFoundError, SchemaMismatch, UnavailableError, UsageError
from test_status import shown
from unit_support import InFolder


def line(**document):
    return json.dumps({"schema": "crucible/1", **document})


class TestForms(InFolder):
    def platform(self, script, **options):
        return MLPlatform(self.program(script), **options)

    def job(self, *documents, then=""):
        """A job whose `show` prints these documents one after the other."""
        paths = []
        for number, document in enumerate(documents):
            path = self.folder / ("%d.json" % number)
            path.write_text(line(**document) + "\n")
            paths.append(str(path))
        return self.platform('case "$*" in *--watch*) cat %s; %s ;; *) cat %s ;; esac' % (" ".join(paths), then, paths[0])).job("job-1")

    def test_waiting_and_asyncio_say_the_same(self):
        job = self.job(shown("spot"))
        self.assertEqual(job.status(), asyncio.run(job.status.aio()))

    def test_a_job_is_monitored_with_for_and_with_async_for(self):
        job = self.job(shown("spot"), shown("spot", "on-demand"), shown("spot", "on-demand", state="succeeded"))

        async def monitor():
            return [status async for status in job.monitor()]

        waited = list(job.monitor())
        self.assertEqual([None, "local:spot", None], [one.previous_backend for one in waited])
        self.assertEqual(waited, asyncio.run(monitor()))
        self.assertEqual("succeeded", job.last.state)

    def test_leaving_the_loop_ends_the_command(self):
        job = self.job(shown("spot"), then="echo $$ > %s/pid; exec sleep 600" % self.folder)

        async def first():
            monitor = job.monitor().__aiter__()
            await monitor.__anext__()
            await monitor.aclose()

        def running():
            pid = int((self.folder / "pid").read_text())
            try:
                os.kill(pid, 0)
                return True
            except ProcessLookupError:
                return False

        for status in job.monitor():
            while not (self.folder / "pid").exists():
                pass
            break
        del status
        self.assertFalse(running())
        asyncio.run(first())
        self.assertFalse(running())

    def test_waiting_has_a_time_limit_in_both_forms(self):
        job = self.job(shown("spot"), then="exec sleep 600")
        with self.assertRaisesRegex(TimeoutError, "still runs after 0.2 s"):
            job.wait(timeout_s=0.2)
        job.last = None
        with self.assertRaisesRegex(TimeoutError, "still runs after 0.2 s"):
            asyncio.run(job.wait.aio(timeout_s=0.2))
        self.assertEqual("running", job.last.state)

    def test_an_error_of_several_lines_in_a_stream_is_raised(self):
        error = json.dumps({"schema": "crucible/1", "error": {"kind": "unavailable", "message": "Gone.", "hint": "Wait."}}, indent=2)
        (self.folder / "error.json").write_text(error)
        job = self.job(shown("spot"), then="cat %s/error.json; exit 7" % self.folder)
        with self.assertRaisesRegex(UnavailableError, "Gone. Wait."):
            list(job.monitor())
        with self.assertRaisesRegex(UnavailableError, "Gone. Wait."):
            asyncio.run(job.wait.aio())

    def test_what_a_waiting_command_says_is_passed_on_at_once(self):
        said = "Nothing new is known while the store does not answer; waiting for it."
        job = self.job(shown("spot"), then="echo '%s' >&2; exec sleep 600" % said)

        def followed():
            with self.assertRaises(TimeoutError):
                job.wait(timeout_s=1)

        async def awaited():
            with self.assertRaises(TimeoutError):
                await job.wait.aio(timeout_s=1)

        for wait in (followed, lambda: asyncio.run(awaited())):
            with self.assertLogs("crucible", "WARNING") as logs:
                wait()
            self.assertEqual([said], [one.getMessage() for one in logs.records])

    def test_waiting_says_that_the_workflow_is_silent_and_when_it_responds_again(self):
        documents = [shown("spot"), {**shown("spot"), "isLive": False}, shown("spot", "on-demand"), shown("spot", state="succeeded")]
        for wait in (lambda job: job.wait(), lambda job: asyncio.run(job.wait.aio())):
            with self.assertLogs("crucible", "WARNING") as logs:
                self.assertEqual("succeeded", wait(self.job(*documents)).state)
            self.assertEqual(
                [
                    "job-1: The workflow is not responding; this is the last recorded state.",
                    "job-1: The workflow responds again.",
                ],
                [one.getMessage() for one in logs.records],
            )

    def test_a_document_of_many_lines_is_parsed_a_few_times(self):
        lines = [{"attempt": 1, "n": n, "t": 1, "s": "out", "m": "line %d" % n} for n in range(500)]
        path = self.folder / "logs.json"
        path.write_text(json.dumps({"schema": "crucible/1", "lines": lines}, indent=2) + "\n")
        parse = json.JSONDecoder.raw_decode
        with mock.patch.object(json.JSONDecoder, "raw_decode", autospec=True, side_effect=parse) as parsed:
            logs = self.platform("case $1 in logs) cat %s ;; *) echo '%s' ;; esac" % (path, line(**shown("spot")))).job("job-1").logs()
            self.assertEqual(500, len(list(logs)))
        self.assertLess(parsed.call_count, 10)

    def test_a_stream_that_breaks_off_is_an_error(self):
        with self.assertLogs("crucible"):
            job = self.job(shown("spot"), then="echo '{\"schema\":'; echo killed >&2; exit 137")
            with self.assertRaisesRegex(SchemaMismatch, "killed"):
                list(job.monitor())
            job = self.job(shown("spot"), then="echo no memory >&2; exit 137")
            with self.assertRaisesRegex(CommandFailed, "ended with exit code 137 and without an answer: no memory"):
                list(job.monitor())
            with self.assertRaisesRegex(CommandFailed, "no memory"):
                asyncio.run(job.wait.aio())

    def test_another_version_is_one_clear_error(self):
        with self.assertRaisesRegex(SchemaMismatch, "prints documents of crucible/2, and this package reads crucible/1"):
            self.platform("echo '{\"schema\":\"crucible/2\"}'").jobs()

    def test_a_document_without_the_expected_fields_is_of_another_version(self):
        platform = self.platform("echo '{\"schema\":\"crucible/1\"}'")
        with self.assertRaisesRegex(SchemaMismatch, "`crucible list` .*KeyError: 'jobs'. Install the same version of both"):
            platform.jobs()
        for ask in (platform.recommend, lambda: platform.submit("x"), lambda: platform.job("job-1"), platform.orphans):
            with self.assertRaises(SchemaMismatch):
                ask()
        with self.assertRaisesRegex(SchemaMismatch, "`crucible list`"):
            asyncio.run(platform.jobs.aio())
        with self.assertRaisesRegex(SchemaMismatch, "`crucible show`"):
            job = Job(platform._program, "job-1")
            job.wait()
        with self.assertRaisesRegex(SchemaMismatch, "`crucible show`"):
            list(job.monitor())
        with self.assertRaisesRegex(SchemaMismatch, "`crucible list`"):
            self.platform("echo '{\"schema\":\"crucible/1\",\"jobs\":3}'").jobs()

    def test_settings_reach_the_command_line(self):
        script = 'printf \'{"schema":"crucible/1","month":"%s","total":{"spentMicroUsd":1},"owners":[]}\' "$CRUCIBLE_HOME $TEMPORAL_ADDRESS $X"'
        platform = self.platform(script, home="/h", address="a:1", env={"X": "y"})
        of_process = {"CRUCIBLE_HOME": "/other", "TEMPORAL_ADDRESS": "b:2", "X": "z"}
        with mock.patch.dict(os.environ, of_process):
            self.assertEqual("/h a:1 y", platform.budget().month)
            self.assertEqual("/h a:1 y", asyncio.run(platform.budget.aio()).month)

    def test_what_a_list_does_not_know_is_none_and_warned_of(self):
        job = {"id": "job-1", "name": "train", "owner": "o", "state": None, "reason": None, "submittedAtMs": 0, "cost": {"spentMicroUsd": None}}
        said = line(jobs=[job], incomplete="The store does not answer.")
        platform = self.platform("cat <<'END'\n%s\nEND\nexit 7" % said)
        with self.assertWarnsRegex(CrucibleWarning, "The store does not answer.") as caught:
            (listed,) = platform.jobs()
        self.assertEqual(__file__, caught.filename)
        self.assertEqual((None, None, None), (listed.last.state, listed.last.reason, listed.last.cost))
        self.assertIn("job-1 unknown", str(listed.last))

    def test_what_a_submission_says_reaches_the_job(self):
        said = line(id="job-1", warnings=["No folder."], isServed=False, inferred=[{"setting": "interruptible"}])
        platform = self.platform("cat <<'END'\n%s\nEND" % said)
        with self.assertWarnsRegex(CrucibleWarning, "No folder.") as caught:
            job = platform.submit("print(1)")
        self.assertEqual(__file__, caught.filename)
        self.assertRegex(job.warnings[1], "No worker is running")
        self.assertEqual(({"setting": "interruptible"},), job.inferred)

    def test_a_rehearsal_is_asked_for_and_read(self):
        said = line(name="$*", survives=False, summary="It does not.", checks=[], changes=[{"text": "Save."}], tookMs=5)
        platform = self.platform("cat <<END\n%s\nEND\nexit 8" % said)
        rehearsal = platform.rehearse(code="print(1)", time_limit="20s", interruptions=1)
        self.assertRegex(rehearsal.name, "^rehearse --json .*job.json --for=20s --interruptions=1$")
        self.assertEqual((False, "It does not.\n- Save."), (rehearsal.survives, str(rehearsal)))

    def test_no_executable_is_named(self):
        with self.assertRaisesRegex(ExecutableNotFound, "cannot be started: No such file"):
            MLPlatform("/nowhere/crucible").jobs()
        with self.assertRaisesRegex(ExecutableNotFound, "Is Node 20.19 or newer installed"):
            self.platform("exec /nowhere/node main.js").jobs()
        with self.assertRaisesRegex(UsageError, "executable= node 'x cannot be read: no closing quotation"):
            MLPlatform("node 'x").jobs()

    def test_errors_keep_their_class_in_both_forms(self):
        error = line(error={"kind": "not-found", "message": "There is no job x.", "hint": None})
        platform = self.platform("echo '%s'; exit 5" % error)
        with self.assertRaises(NotFoundError):
            platform.job("x")
        with self.assertRaises(LookupError):
            asyncio.run(platform.find.aio("x"))


if __name__ == "__main__":
    unittest.main()

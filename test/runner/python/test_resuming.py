import os
from types import SimpleNamespace
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.checkpoint.evidence import COMPLETE, QUIET
from crucible_runner.checkpoint.history import RestoreBook
from crucible_runner.checkpoint.restore import Candidate, StoredCheckpoints, Restored
from crucible_runner.documents import RESTORES, parse
from crucible_runner.endings import Ending
from crucible_runner.keys import CheckpointId, Keys
from crucible_runner.resuming import Resuming
from crucible_runner.store.base import StoreError
from crucible_runner.store.file_store import FileStore

FAILED = Ending("failed", "workload", "The command ended with exit code 1.", exit_code=1)
NEWEST = CheckpointId(20, 1)


class RestoreBookTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.store, self.keys = FileStore(self.folder), Keys("job-a", 2)
        self.book = RestoreBook(self.store, self.keys, "job-a-2", FakeClock(), lambda _: None)

    def outcomes(self):
        document = parse(RESTORES, self.store.get(self.keys.restores))
        return [(each["checkpoint"]["step"], each["outcome"], each["message"]) for each in document["restores"]]

    def restore(self, step):
        self.book.begin(Candidate(CheckpointId(step, 1), {"revision": 1, "state": COMPLETE}), "the newest")

    def test_only_the_first_outcome_of_each_restore_counts(self):
        self.restore(20)
        self.assertEqual(self.outcomes(), [(20, "trying", None)])
        self.assertFalse(self.book.has_gone_on)
        self.book.end("failed", "exit code 1")
        self.book.end("went-on")
        self.restore(10)
        self.book.end("went-on")
        self.assertTrue(self.book.has_gone_on)
        self.assertEqual(self.outcomes(), [(20, "failed", "exit code 1"), (10, "went-on", None)])

    def test_an_outcome_that_the_store_did_not_take_is_written_with_a_later_beat(self):
        self.restore(20)
        with mock.patch.object(self.store, "put", side_effect=StoreError("away")):
            self.book.end("failed", "exit code 1")
        self.assertEqual(self.outcomes(), [(20, "trying", None)])
        self.book.retry()
        self.assertEqual(self.outcomes(), [(20, "failed", "exit code 1")])
        with mock.patch.object(self.store, "put") as put:
            self.book.retry()
        put.assert_not_called()


class ResumingTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.remarks, self.found, self.tried = [], [], []
        self.progress = SimpleNamespace(first_step_at_ms=None)
        self.checkpointing = SimpleNamespace(
            directory=self.folder,
            restored=None,
            restores=mock.Mock(has_gone_on=False),
            uploads=mock.Mock(),
            prepare=lambda: None,
            note_restored=lambda restored: setattr(self.checkpointing, "restored", restored),
        )
        context = mock.Mock(progress=self.progress, remark=self.remarks.append)
        order = {"jobId": "job-a", "attempt": 2, "checkpoint": {"quietMs": 1}}
        attempt = mock.Mock(context=context, checkpointing=self.checkpointing, order=order)
        self.resuming = Resuming(attempt)

    def restore(self, restored):
        found = StoredCheckpoints(restored, [])
        with mock.patch("crucible_runner.resuming.Restorer") as restorer:
            restorer.return_value.restore.return_value = found
            self.assertIs(self.resuming.restore(), found)
            self.tried = set(restorer.return_value.restore.call_args[0][6])
        return found

    def test_a_command_that_fails_before_its_first_new_step_gets_the_checkpoint_before(self):
        self.restore(Restored(NEWEST, "."))
        self.assertEqual(self.tried, set())
        self.assertTrue(self.resuming.steps_back(FAILED, 1_000))
        self.checkpointing.restores.end.assert_called_once_with("failed", FAILED.message)
        self.checkpointing.uploads.give_up.assert_called_once_with()
        self.restore(None)
        self.assertEqual(self.tried, {NEWEST})

    def test_other_ends_are_not_blamed_on_the_checkpoint(self):
        self.assertFalse(self.resuming.steps_back(FAILED, 1_000))
        self.restore(Restored(NEWEST, "."))
        for ending in (
            Ending("succeeded", "completed", ""),
            Ending("stopped", "workload", ""),
            Ending("failed", "disk-full", ""),
        ):
            self.assertFalse(self.resuming.steps_back(ending, 1_000))
        self.assertFalse(self.resuming.steps_back(FAILED, 10 * 60_000 + 1))
        self.checkpointing.restores.has_gone_on = True
        self.assertFalse(self.resuming.steps_back(FAILED, 1_000))
        self.checkpointing.restores.has_gone_on = False
        self.progress.first_step_at_ms = 5
        self.assertFalse(self.resuming.steps_back(FAILED, 1_000))
        self.progress.first_step_at_ms = None
        self.assertTrue(self.resuming.steps_back(FAILED, 10 * 60_000))

    def test_it_starts_over_only_where_no_failed_checkpoint_was_whole(self):
        study = [{"path": "study.db"}]
        for state, entries, may_run in ((QUIET, (), True), (COMPLETE, (), False), (QUIET, study, False)):
            self.setUp()
            self.restore(Restored(NEWEST, ".", state=state, entries=entries))
            self.resuming.steps_back(FAILED, 1_000)
            self.assertTrue(self.resuming.may_run(StoredCheckpoints(Restored(CheckpointId(10, 1), "."), [])))
            self.assertEqual(self.resuming.may_run(self.restore(None)), may_run)
            self.assertEqual("no checkpoint is left to resume from" in self.remarks, not may_run)

    def test_files_of_the_command_go_before_the_next_restore_and_those_of_the_bundle_stay(self):
        self.write("of-the-bundle.txt", "x")
        self.restore(None)
        self.write("of-the-command.pt", "x")
        self.restore(None)
        self.assertEqual(os.listdir(self.folder), ["of-the-bundle.txt"])

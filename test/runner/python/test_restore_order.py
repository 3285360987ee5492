import os
from pathlib import Path

from support import FakeClock, FolderTest

from crucible_runner.documents import dump
from crucible_runner.keys import CheckpointId, Keys, parse_checkpoint_id
from crucible_runner.checkpoint.manifest import manifest_bytes
from crucible_runner.checkpoint.restore import Candidate, Restorer, rank
from crucible_runner.store.retry import Patience
from crucible_runner.store.opening import open_store


class RestoringTest(FolderTest):
    """Manifests in a store, one of them restored."""

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, "store"))
        Path(self.folder, "store").mkdir(parents=True, exist_ok=True)
        Path(self.folder, "store", "deployment.json").write_text('{"id": "dep-0000000000"}')
        self.store = open_store(Path(self.folder, "store").as_uri(), None, None)
        self.keys = Keys("job-a", 2)
        self.remarks = []

    def save(self, step, attempt, body=None, revision=1, changes=()):
        checkpoint = CheckpointId(step, attempt)
        manifest = {
            **{"version": 1, "jobId": "job-a", "attempt": attempt, "step": step, "isStepKnown": True},
            **{"createdAtMs": 1, "savedAtMs": revision, "totalBytes": 0, "files": [], "resumePath": "."},
            **{"revision": revision, "state": "complete", "evidence": {"kind": "next", "text": "the next checkpoint started"}},
        }
        if attempt == 0:
            manifest["copiedFrom"] = {"jobId": "job-old", "checkpoint": "000000000400-3"}
        manifest.update(changes)
        self.store.put(self.keys.manifest(checkpoint, revision), body or manifest_bytes(manifest))

    def restored(self):
        return self.found().restored.checkpoint.name

    def found(self):
        patience = Patience(lambda: False, lambda: False)
        restorer = Restorer(self.store, self.keys, "job-a", patience)
        directory, part = os.path.join(self.folder, "checkpoints"), os.path.join(self.folder, "part")
        os.makedirs(directory, exist_ok=True)
        return restorer.restore(2, directory, part, FakeClock(), self.remarks.append)


class RestoreOrderTest(RestoringTest):
    def test_a_settled_one_that_is_small_serves_when_the_complete_one_is_damaged(self):
        self.save(1, 1, changes={"totalBytes": 100})
        self.save(2, 1, changes={"totalBytes": 10, "state": "settled"})
        self.assertEqual(self.restored(), "000000000001-1")
        lost = {"path": "a", "sizeBytes": 100, "parts": ["0" * 64], "digest": "0" * 64, "mode": 420}
        self.save(1, 1, changes={"totalBytes": 100, "files": [lost]})
        self.assertEqual(self.restored(), "000000000002-1")

    def test_a_database_alone_does_not_come_before_the_first_checkpoint_next_to_it(self):
        def candidate(step, state, kind, *paths):
            files = [{"path": path, "sizeBytes": 10} for path in paths]
            evidence = {"kind": kind, "text": ""}
            facts = {"step": step, "attempt": 1, "savedAtMs": step, "totalBytes": 10, "files": files}
            return Candidate(CheckpointId(step, 1), {**facts, "state": state, "evidence": evidence})

        first = candidate(2, "quiet", "format", "mlflow.db", "model.pkl")
        database = candidate(1, "complete", "format", "mlflow.db")
        self.assertEqual(rank([first, database], set(), 300), [first, database])
        model = candidate(1, "complete", "format", "mlflow.db", "weights.pkl")
        self.assertEqual(rank([first, model], set(), 300), [model])

    def test_a_database_on_which_a_program_failed_is_tried_again(self):
        for path, found in (("study.db", ["000000000001-1"]), ("model.pkl", [])):
            manifest = {"state": "settled", "savedAtMs": 1, "totalBytes": 10, "files": [{"path": path, "sizeBytes": 10}]}
            only = Candidate(CheckpointId(1, 1), {**manifest, "evidence": {"kind": "quiet", "text": ""}})
            self.assertEqual([each.checkpoint.name for each in rank([only], {only.checkpoint}, 300)], found)

    def test_a_checkpoint_of_another_job_is_restored_while_the_job_has_none_of_its_own(self):
        self.save(400, 0)
        self.assertEqual(self.restored(), "000000000400-0")

    def test_what_the_job_saved_itself_is_newer_whatever_the_steps(self):
        self.save(400, 0)
        self.save(10, 1)
        self.assertEqual(self.restored(), "000000000010-1")

    def test_the_copy_is_taken_where_the_job_s_own_is_damaged(self):
        self.save(400, 0)
        self.save(10, 1, dump({"version": 1}))
        self.assertEqual(self.restored(), "000000000400-0")

    def test_the_newest_revision_of_every_save_tells_of_the_past(self):
        self.save(10, 1)
        self.save(10, 1, revision=2)
        for step in (20, 30, 40):
            self.save(step, 2)
        past = self.found().past
        self.assertEqual([each["step"] for each in past.complete], [40, 30, 20])
        saves = {(each["step"], each["revision"]) for each in past.saves}
        self.assertEqual((saves, len(past.saves)), ({(10, 2), (20, 1), (30, 1), (40, 1)}, 4))

    def test_names_have_no_number_in_two_writings(self):
        self.assertEqual(parse_checkpoint_id("000000000400-0"), CheckpointId(400, 0))
        for name in ("000000000400-00", "000000000400-01", "400-0"):
            self.assertIsNone(parse_checkpoint_id(name))

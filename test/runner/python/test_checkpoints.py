import json
import os
import threading
from unittest import mock

from support import GOLDEN, FakeClock, FolderTest

from crucible_runner.checkpoint.sending import Candidate, Settings
from crucible_runner.checkpoint.uploads import Checkpoints, _Final
from crucible_runner.documents import MANIFEST, dump, parse
from crucible_runner.store.file_store import FileStore
from crucible_runner.keys import CheckpointId, Keys, stored_at
from crucible_runner.checkpoint.evidence import Evidence
from crucible_runner.checkpoint.scanner import Scanner, Rules
from crucible_runner.checkpoint.manifest import Taken, manifest_bytes, read_manifest
from crucible_runner.checkpoint.pace import Past
from crucible_runner.paths import Paths
from crucible_runner.progress import Progress
from crucible_runner.checkpoint.restore import StoredCheckpoints, Restored, Restorer
from crucible_runner.store.retry import Patience
from crucible_runner.store.base import StoreError
from crucible_runner.store.transfer import Changed, Corrupt

QUIET_MS = 2_000


class UploadingTest(FolderTest):
    """The parts of the upload, driven by hand: no thread, no clock but ours."""

    def setUp(self):
        super().setUp()
        self.clock = FakeClock()
        self.paths = Paths(self.at("machine"))
        os.makedirs(self.paths.root)
        self.paths.make()
        os.mkdir(self.at("store"))
        self.store = FileStore(self.at("store"))
        self.keys = Keys("job-a", 2)
        self.remarks = []
        self.progress = Progress(self.paths.progress, self.clock)

    def begin(self, restored=None, own_steps=(), every_ms=0, pids=lambda: [], begun_steps=(), past=Past()):
        self.scanner = Scanner(self.paths, self.paths.checkpoints, Rules(QUIET_MS), self.clock, self.progress)
        settings = Settings("job-a", 2, self.paths.checkpoints, self.paths.staging, every_ms)
        self.checkpoints = Checkpoints(settings, self.scanner, self.store, self.keys)
        found = StoredCheckpoints(Restored(restored, ".") if restored else None, list(own_steps), begun_steps, past)
        never = threading.Event()
        # The threads are not started: the tests take their place.
        start, threading.Thread.start = threading.Thread.start, lambda _: never.set()
        try:
            self.checkpoints.begin(found, self.clock, self.remarks.append, pids)
        finally:
            threading.Thread.start = start

    def save(self, name, text="content"):
        self.stamp(self.write("machine/checkpoints/" + name, text))

    def stamp(self, path):
        """The file system's clock is that of the test."""
        os.utime(path, ns=(self.clock.wall_ms() * 1_000_000,) * 2)

    def tick(self, ms=1_000):
        """A look, and whatever upload it leads to. Returns the step uploaded, if any."""
        self.clock.advance(ms)
        self.scanner.scan()
        self.checkpoints._promote()
        candidate = self.checkpoints._find()
        if candidate is None:
            return None
        self.checkpoints._upload(candidate)
        return candidate.checkpoint.step

    def manifest(self, step):
        return parse(MANIFEST, self.store.get(self.keys.manifest(CheckpointId(step, 2))))

    def refuse(self, key, size):
        raise StoreError("No space left on device")

    def finish(self, is_in_good_order, left_ms=lambda: None):
        self.checkpoints._thread = threading.Thread(target=self.checkpoints._run)
        self.checkpoints._thread.start()
        self.checkpoints.finish(is_in_good_order, left_ms)
        self.checkpoints._thread.join()


def _unsealed(body):
    manifest = parse(MANIFEST, body)
    del manifest["sha256"]
    return manifest


class CheckpointsTest(UploadingTest):
    def test_is_uploaded_when_nothing_has_changed_for_long_enough(self):
        self.begin()
        self.save("step-5.pt")
        self.assertIsNone(self.tick())
        self.assertIsNone(self.tick())
        self.save("step-5.pt", "more content")
        self.assertIsNone(self.tick())
        self.assertIsNone(self.tick())
        self.assertEqual(self.tick(), 5)
        self.assertIsNone(self.tick())
        self.assertEqual(self.manifest(5)["files"][0]["sizeBytes"], len("more content"))

    def test_steps_that_were_made_after_the_last_look_prove_nothing(self):
        self.begin()
        self.progress.see([b"step 10"])
        self.save("10/model", "weights")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 10])
        self.save("10/done", "")
        self.progress.see([b"step 13"])
        self.checkpoints._promote()
        self.assertEqual(self.checkpoints.newest_state, "quiet")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 10])
        self.assertEqual([len(self.checkpoints.uploads[-1].files), self.checkpoints.newest_state], [2, "quiet"])
        self.progress.see([b"step 16"])
        self.tick()
        self.assertEqual(self.checkpoints.newest_state, "settled")

    def test_quick_saves_of_a_program_that_prints_only_its_epochs_are_told_apart(self):
        self.begin()
        for epoch in (1, 2, 3):
            self.progress.see([b"Epoch %d/50" % epoch])
            self.clock.advance(3_000)
            self.save("weights.%02d-%.2f.h5" % (epoch, 4 / epoch))
            self.clock.advance(300)
            self.progress.see([b"Epoch %d/50" % (epoch + 1)])
            self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, epoch])
        self.assertEqual([each.evidence.text for each in self.checkpoints.uploads[:2]], ["the next checkpoint started"] * 2)

    def test_files_that_were_written_after_the_last_look_prove_nothing_about_a_stored_checkpoint(self):
        self.begin()
        states = "/mp_rank_00_model_states.pt"
        self.save("global_step20" + states, "weights" * 9)
        self.save("latest", "global_step20")
        self.assertEqual([self.tick(), self.tick()], [None, 20])
        self.save("global_step30" + states, "weights" * 9)
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 30])
        self.clock.advance(1_000)
        self.save("latest", "global_step30")
        self.checkpoints._promote()
        self.assertEqual([self.checkpoints.newest_state, self.tick()], ["quiet", 30])
        self.assertEqual(self.checkpoints.newest_state, "complete")

    def test_a_name_that_the_store_cannot_hold_is_stored_under_another(self):
        self.begin()
        self.save("step-5.pt")
        upload = self.store.upload

        def refuse(key, size):
            if key.endswith("/step-5.pt"):
                raise ValueError("400 KeyTooLongError")
            return upload(key, size)

        with mock.patch.object(self.store, "upload", refuse):
            self.tick()
            self.tick()
            self.assertRaisesRegex(Changed, "KeyTooLongError", self.tick)
            self.assertEqual(self.tick(), 5)
        (entry,) = self.manifest(5)["files"]
        self.assertEqual(entry["path"], "step-5.pt")
        self.assertRegex(entry["storedAt"], r"\.long/[0-9a-f]{64}$")
        self.assertEqual(self.store.get(self.keys.stored_file(entry["storedAt"])), b"content")

    def test_one_look_is_never_enough(self):
        self.begin()
        self.save("step-5.pt")
        self.assertIsNone(self.tick(60_000))
        self.clock.advance(60_000)
        self.assertIsNone(self.checkpoints._find())
        self.assertEqual(self.tick(), 5)

    def test_steps_are_the_names_then_the_progress_then_a_running_number(self):
        self.begin(restored=CheckpointId(40, 1))
        self.save("model.pt", "a")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 41])
        self.assertFalse(self.manifest(41)["isStepKnown"])
        self.progress.see([b"step 90"])
        self.save("model.pt", "bb")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 90])
        self.assertTrue(self.manifest(90)["isStepKnown"])
        # A count that began anew must not make what is newer look older.
        self.progress.see([b"step 3"])
        self.save("model.pt", "ccc")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 91])
        os.unlink(self.at("machine", "checkpoints", "model.pt"))
        self.save("step-70.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 70])
        self.assertEqual(self.checkpoints.newest, CheckpointId(91, 2))

    def test_epochs_count_only_where_nothing_better_is_known(self):
        self.begin()
        self.save("epoch-3.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 3])
        self.progress.see([b"step 400"])
        self.save("epoch-4.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 400])

    def test_the_step_is_that_of_when_it_was_seen_first(self):
        self.begin()
        self.progress.see([b"step 10"])
        self.save("model.pt")
        self.tick()
        self.progress.see([b"step 20"])
        self.assertEqual([self.tick(), self.tick()], [None, 10])

    def test_a_save_has_the_step_that_was_told_before_it_began(self):
        for name, told_ms, expected in (
            ("long before", -9_000, 10),
            ("at that moment", 0, 10),
            ("so soon after it that it may have been printed before", 49, None),
            ("after it", 50, 5),
        ):
            with self.subTest(name):
                self.setUp()
                self.begin()
                self.progress.see([b"step 5"])
                self.clock.advance(10_000)
                began_ms = self.clock.wall_ms()
                self.clock.advance(told_ms)
                self.progress.see([b"step 10"])
                self.clock.advance(began_ms - self.clock.wall_ms())
                self.save("model.pt")
                self.clock.advance(500)
                self.assertEqual(self.scanner.scan()[0].step, expected)
                # The save continues; it had begun before.
                self.progress.see([b"step 11"])
                self.save("optimizer.pt")
                self.assertEqual(self.scanner.scan()[0].step, expected)
                uploaded = next(step for step in (self.tick() for _ in range(4)) if step is not None)
                self.assertEqual((uploaded, self.manifest(uploaded)["isStepKnown"]), (expected or 1, expected is not None))

    def test_what_the_helper_told_between_two_looks_at_it_is_not_known(self):
        def tell(step):
            path = self.write("machine/control/new.json", json.dumps({"step": step}))
            self.stamp(path)
            os.rename(path, self.paths.progress)

        self.begin()
        tell(5)
        self.progress.step()
        self.clock.advance(1_000)
        self.save("model.pt")
        self.clock.advance(1_000)
        tell(9)
        # Between the two the file may have said 6, 7 or 8.
        self.assertIsNone(self.scanner.scan()[0].step)
        self.clock.advance(1_000)
        self.progress.step()
        self.clock.advance(1_000)
        self.save("model.pt", "another")
        self.clock.advance(1_000)
        self.assertEqual(self.scanner.scan()[0].step, 9)

    def test_a_file_held_open_through_a_pause_is_one_save(self):
        for is_held, numbers in (True, [1, 1]), (False, [1, 2]):
            self.setUp()
            self.begin(pids=lambda: [os.getpid()])
            self.save("state.bin", "x" * 100)
            path = self.at("machine", "checkpoints", "state.bin")
            seen = [self.scanner.scan()[0].generation.number]
            with open(path, "r+b") if is_held else open(os.devnull):
                self.clock.advance(QUIET_MS // 2)
                self.scanner.scan()
            self.clock.advance(QUIET_MS)
            os.utime(path, ns=(self.clock.wall_ms() * 1_000_000,) * 2)
            seen.append(self.scanner.scan()[0].generation.number)
            self.assertEqual(seen, numbers)

    def test_the_interval_of_earlier_attempts_holds_until_this_one_has_its_own(self):
        saved = {"step": 10, "isStepKnown": True, "savedAtMs": 0}
        before = [dict(saved, attempt=1), dict(saved, attempt=2, step=20, savedAtMs=9)]
        self.begin(past=Past((), before))
        self.assertIsNone(self.scanner.interval_ms())
        for step in (20, 21, 24):
            self.progress.see([b"step %d" % step])
            self.clock.advance(100 * step)
        self.assertEqual(self.scanner.interval_ms(), 10 * (2_000 + 2_100) // 4)
        before.append(dict(saved, attempt=2, step=30, savedAtMs=5_009))
        self.begin(past=Past((), before))
        self.assertEqual(self.scanner.interval_ms(), 5_000)
        for version in range(2):
            self.clock.advance(7_000)
            self.save("step-%d.pt" % version)
            self.scanner.scan()
        self.assertEqual(self.scanner.interval_ms(), 7_000)

    def test_has_trained_since_its_first_step(self):
        self.begin()
        begun_ms = self.clock.mono_ms()
        self.assertEqual(self.scanner.trained_since_ms(), begun_ms)
        self.progress.begin(0)
        self.clock.advance(5_000)
        self.progress.see([b"step 1"])
        self.clock.advance(5_000)
        self.assertEqual(self.scanner.trained_since_ms(), begun_ms + 5_000)

    def test_an_end_before_the_beginning_uploads_nothing(self):
        self.begin()
        self.save("step-1.pt")
        fresh = Checkpoints(self.checkpoints._settings, self.scanner, self.store, self.keys)
        fresh.finish(True, lambda: None)
        fresh.give_up()
        self.assertIsNone(fresh.newest)

    def test_a_step_that_is_there_already_is_not_uploaded_again(self):
        self.begin(own_steps=[5])
        self.save("step-5.pt")
        self.assertEqual([self.tick() for _ in range(4)], [None] * 4)
        self.save("step-6.pt")
        self.assertEqual([self.tick() for _ in range(3)], [None, None, 6])

    def test_a_pace_is_kept(self):
        self.begin(every_ms=60_000)
        steps = []
        for step in range(1, 100):
            self.save("step-%d.pt" % step)
            steps += [self.tick(), self.tick(), self.tick()]
        uploaded = [step for step in steps if step is not None]
        self.assertEqual(len(uploaded), 5)

    def test_an_older_one_is_taken_while_newer_ones_come_too_fast(self):
        self.begin()
        uploaded = []
        for step in range(1, 20):
            self.save("step-%d.pt" % step)
            uploaded.append(self.tick())
        self.assertEqual(uploaded[:5], [None, None, 1, 2, 3])

    def test_a_file_that_is_replaced_all_the_time_is_held_and_taken(self):
        self.begin()
        uploaded = {}
        for count in range(1, 12):
            self.progress.see([b"step %d" % count])
            self.stamp(self.write("machine/checkpoints/new.tmp", "content %d" % count))
            os.rename(
                self.at("machine", "checkpoints", "new.tmp"), self.at("machine", "checkpoints", "model.pt")
            )
            step = self.tick()
            if step is not None:
                uploaded[step] = self.store.get(
                    self.keys.stored_file(stored_at(CheckpointId(step, 2), "model.pt"))
                ).decode()
        self.assertGreaterEqual(len(uploaded), 3)
        for step, content in uploaded.items():
            self.assertEqual(content, "content %d" % step)

    def test_what_only_grows_goes_along_with_a_file_that_is_held(self):
        self.begin()
        manifests = []
        self.save("train.log", "line 0\n")
        for count in range(1, 9):
            self.stamp(self.write("machine/checkpoints/new.tmp", "content %d" % count))
            os.rename(
                self.at("machine", "checkpoints", "new.tmp"), self.at("machine", "checkpoints", "model.pt")
            )
            self.write("machine/checkpoints/train.log", "line %d\n" % count, "a")
            step = self.tick()
            if step is not None:
                manifests.append(self.manifest(step))
        self.assertGreaterEqual(len(manifests), 2)
        for manifest in manifests:
            self.assertEqual([file["path"] for file in manifest["files"]], ["model.pt", "train.log"])

    def test_the_first_file_of_several_is_never_held_for_a_checkpoint_of_its_own(self):
        self.begin()
        uploaded = []
        for count in range(1, 8):
            for name in ("model.pt", "optimizer.pt"):
                self.stamp(self.write("machine/checkpoints/new.tmp", "content %d" % count))
                os.rename(
                    self.at("machine", "checkpoints", "new.tmp"), self.at("machine", "checkpoints", name)
                )
                uploaded.append(self.tick(500))
        self.assertEqual(uploaded, [None] * len(uploaded))
        self.assertEqual([step for step in (self.tick(), self.tick(), self.tick()) if step], [1])
        self.assertEqual(len(self.manifest(1)["files"]), 2)

    def test_what_is_open_for_writing_waits_and_is_spoken_of(self):
        self.begin(pids=lambda: [os.getpid()])
        with open(self.write("machine/checkpoints/step-5.pt", "half"), "a") as file:
            for _ in range(70):
                self.assertIsNone(self.tick())
            self.assertEqual(self.checkpoints.hindrance, "step-5.pt is held open for writing by pid %d" % os.getpid())
            with open(self.write("machine/checkpoints/train.log", "a line"), "a"):
                file.close()
                self.assertEqual(self.tick(), 5)

    def test_a_declaration_counts_alone_and_at_once(self):
        self.begin()
        self.save("step-5.pt")
        self.save("other/a.bin")
        self.stamp(self.write("machine/control/saved/30.json", json.dumps({"path": "other", "step": 30})))
        self.assertEqual(self.tick(), 30)
        self.assertEqual([file["path"] for file in self.manifest(30)["files"]], ["other/a.bin"])
        self.assertEqual(self.manifest(30)["resumePath"], "other")
        self.assertEqual([self.tick() for _ in range(5)], [None] * 5)

    def test_a_declared_checkpoint_that_is_being_written_anew_waits_for_its_next_declaration(self):
        self.begin()
        self.save("model.pt", "one")
        path = self.write("machine/control/saved/1.json", json.dumps({"path": "model.pt", "step": 1}))
        later = os.stat(path).st_mtime_ns + 1_000_000_000
        self.save("model.pt", "two")
        os.utime(self.at("machine", "checkpoints", "model.pt"), ns=(later, later))
        self.assertIsNone(self.tick())
        path = self.write("machine/control/saved/2.json", json.dumps({"path": "model.pt", "step": 2}))
        os.utime(path, ns=(later, later))
        self.assertEqual(self.tick(), 2)
        self.assertEqual(os.listdir(self.paths.saved), ["2.json"])

    def test_records_go_along_but_are_never_waited_for(self):
        self.begin()
        self.save("step-5.pt")
        for count in range(5):
            self.save("train.log", "line\n" * (count + 1))
            if self.tick() == 5:
                break
        self.assertEqual(count, 2)
        self.assertEqual([file["path"] for file in self.manifest(5)["files"]], ["step-5.pt", "train.log"])

    def test_what_changes_while_it_is_uploaded_is_dropped_and_then_copied(self):
        self.begin()
        self.save("model.pt", "a" * 100)
        upload = self.store.upload
        path = self.at("machine", "checkpoints", "model.pt")

        def writing_meanwhile(key, size):
            with open(path, "r+") as file:
                file.write("b" * 100)
            os.utime(path, ns=(1, self.clock.mono_ms() * 1_000_000))
            return upload(key, size)

        self.store.upload = writing_meanwhile
        self.tick(), self.tick()
        self.assertRaises(Changed, self.tick)
        self.assertEqual(self.store.folders(self.keys.checkpoints), [])
        # From now on the file is copied before it goes up, so that writing into it does no harm.
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 1])
        key = self.keys.stored_file(stored_at(CheckpointId(1, 2), "model.pt"))
        self.assertEqual(self.store.get(key), b"b" * 100)

    def test_an_upload_that_fails_leaves_no_manifest_and_is_made_again(self):
        self.begin()
        self.save("step-5.pt")
        upload = self.store.upload
        self.store.upload = self.refuse
        self.tick(), self.tick()
        with mock.patch("crucible_runner.store.transfer._PATIENCE_SECONDS", 0):
            self.assertRaises(StoreError, self.tick)
        self.assertIsNone(self.store.get(self.keys.manifest(CheckpointId(5, 2))))
        self.store.upload = upload
        self.assertEqual(self.tick(), 5)

    def put_manifest_when_asked(self, step, change):
        """Where the manifest of the step is put, `change` makes of it what was put there just before."""
        put_if_absent, key = self.store.put_if_absent, self.keys.manifest(CheckpointId(step, 2))

        def second(asked, body):
            if asked == key:
                put_if_absent(key, change(body))
            return put_if_absent(asked, body)

        self.store.put_if_absent = second

    def test_a_manifest_that_is_there_and_tells_of_the_same_files_is_its_own(self):
        self.begin()
        self.put_manifest_when_asked(5, lambda body: manifest_bytes(dict(_unsealed(body), createdAtMs=7, uploadMs=9)))
        self.save("step-5.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 5])
        self.assertEqual(self.checkpoints.newest, CheckpointId(5, 2))
        self.assertEqual(self.manifest(5)["createdAtMs"], 7)

    def test_where_another_manifest_was_first_the_checkpoint_does_not_count(self):
        for change in (
            lambda body: manifest_bytes(dict(_unsealed(body), files=[], totalBytes=0)),
            lambda body: body[:-20],
            lambda body: body.replace(b'"totalBytes":7', b'"totalBytes":8'),
        ):
            self.setUp()
            self.begin(restored=CheckpointId(3, 1))
            self.put_manifest_when_asked(5, change)
            self.save("step-5.pt")
            self.finish(True)
            self.assertEqual(self.checkpoints.newest, CheckpointId(3, 1))
            self.assertIn("a checkpoint was dropped: another manifest was put at", self.remarks[0])
            self.assertEqual(len(self.remarks), 1)

    def test_what_has_only_a_running_number_takes_the_next_where_another_was_first(self):
        self.begin()
        self.put_manifest_when_asked(1, lambda body: manifest_bytes(dict(_unsealed(body), files=[])))
        self.save("model.pt")
        self.tick(), self.tick()
        self.assertRaises(Taken, self.tick)
        self.assertEqual(self.tick(), 2)
        self.assertEqual(self.checkpoints.newest, CheckpointId(2, 2))

    def test_a_manifest_that_came_late_keeps_its_files(self):
        """The request of a runner that has died may reach the store after the next one has looked what is there."""
        self.begin(begun_steps=[5])
        self.store.put(self.keys.manifest(CheckpointId(5, 2)), b"{}")
        file = self.keys.stored_file(stored_at(CheckpointId(5, 2), "step-5.pt"))
        self.store.put(file, b"as the late manifest tells")
        self.save("step-5.pt")
        self.tick(), self.tick()
        self.assertRaises(Taken, self.tick)
        self.assertEqual(self.store.get(file), b"as the late manifest tells")
        self.assertEqual([self.tick() for _ in range(4)], [None] * 4)
        self.save("step-6.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 6])

    def test_goes_up_into_a_store_that_cannot_be_read(self):
        for begun_steps, reads in ((), 0), ([5], 1):
            self.setUp()
            self.begin(begun_steps=begun_steps)
            get, self.store.get = self.store.get, mock.Mock(side_effect=StoreError("503"))
            self.save("step-5.pt")
            self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 5])
            self.assertEqual(self.store.get.call_count, reads)
            self.store.get = get
            self.assertEqual(self.manifest(5)["step"], 5)

    def test_at_the_end_it_must_have_been_quiet_or_saved_in_good_order(self):
        for is_in_good_order in (True, False):
            self.begin()
            self.save("step-%d.pt" % is_in_good_order)
            self.clock.advance(1_000)
            self.finish(is_in_good_order)
            self.assertEqual(self.checkpoints.newest is not None, is_in_good_order)

    def test_what_was_torn_at_the_end_does_not_become_quiet_however_long_another_upload_takes(self):
        self.begin()
        self.save("step-1.pt", "torn")
        self.scanner.scan()
        self.scanner.end()
        self.clock.advance(60_000)
        self.scanner.scan()
        self.checkpoints._final = _Final(False, lambda: None)
        self.assertIsNone(self.checkpoints._find())

    def test_at_the_end_an_older_one_is_better_than_a_torn_one(self):
        self.begin(every_ms=3_600_000)
        self.save("step-1.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 1])
        self.save("step-2.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, None])
        self.save("step-3.pt", "torn")
        self.finish(False)
        self.assertEqual(self.checkpoints.newest, CheckpointId(2, 2))

    def test_an_end_during_a_look_does_not_make_its_older_save_the_last(self):
        self.begin(every_ms=3_600_000)
        self.save("step-1.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 1])
        self.save("step-2.pt")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, None])
        standing = self.scanner.standing

        def end_meanwhile(seen, ended_well):
            self.save("step-3.pt")
            self.scanner.scan()
            self.checkpoints._final = _Final(True, lambda: None)
            return standing(seen, ended_well)

        with mock.patch.object(self.scanner, "standing", end_meanwhile):
            self.assertIsNone(self.checkpoints._find())
        self.assertEqual(self.checkpoints._find().checkpoint, CheckpointId(3, 2))

    def test_at_the_end_an_older_upload_gives_way_when_there_is_time_for_only_one(self):
        """Of 100 bytes in 10 parts, 5 are up after 5 s; the newer checkpoint has 100 bytes, too."""
        for left_ms, is_given_up in (
            (4_000, False),
            (9_000, False),
            (11_000, True),
            (14_000, True),
            (15_500, False),
        ):
            self.begin()
            self.save("step-1.pt", "x" * 100)
            self.tick(), self.tick(), self.tick(0)
            self.scanner.scan()
            current = Candidate(self.scanner.seen[0], CheckpointId(1, 2), True, Evidence("quiet", "quiet", "quiet"))
            self.save("step-2.pt", "y" * 100)
            self.scanner.scan()
            self.checkpoints._current = current
            self.checkpoints._final = _Final(True, lambda: left_ms)
            file = mock.Mock(size=100, sent_bytes=50)
            began_ms = self.clock.mono_ms() - 5_000
            self.assertEqual(
                self.checkpoints._is_not_worth_it({"step-1.pt": file}, began_ms), is_given_up, left_ms
            )
            os.unlink(self.at("machine", "checkpoints", "step-1.pt"))
            os.unlink(self.at("machine", "checkpoints", "step-2.pt"))

    def test_at_the_end_what_may_not_be_read_does_not_keep_the_machine(self):
        self.begin()
        self.save("step-1.pt")
        with mock.patch(
            "crucible_runner.checkpoint.staging.os.link", side_effect=PermissionError(13, "denied")
        ), mock.patch(
            "crucible_runner.checkpoint.staging.copy_file", side_effect=PermissionError(13, "denied")
        ), mock.patch(
            "crucible_runner.store.retry._FIRST_PAUSE_SECONDS", 0.001
        ):
            self.finish(True)
        self.assertIsNone(self.checkpoints.newest)
        self.assertIn("denied", self.remarks[-1])

    def test_what_was_written_on_a_full_disk_is_not_trusted_unless_the_program_says_so(self):
        self.begin()
        with mock.patch("crucible_runner.checkpoint.scanner.is_full", return_value=True):
            self.save("step-1.pt", "ha")
            self.tick()
        # There is room again, and the file is as it was.
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, None])
        self.assertEqual(self.checkpoints.hindrance, "the disk was full when it was written")
        self.save("step-2.pt", "half")
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, 2])
        with mock.patch("crucible_runner.checkpoint.scanner.is_full", return_value=True):
            self.save("step-3.pt", "wh")
            self.tick()
            self.save("step-3.pt", "whole")
            self.stamp(self.write("machine/control/saved/3.json", json.dumps({"path": "step-3.pt", "step": 3})))
            self.assertEqual(self.tick(), 3)
            self.save("step-4.pt", "ha")
            os.unlink(self.at("machine", "control", "saved", "3.json"))
            self.finish(True)
        self.assertEqual(self.checkpoints.newest, CheckpointId(3, 2))

    def test_looking_at_many_files_takes_but_a_part_of_the_time(self):
        self.begin()
        pauses = []

        class Ending:
            def wait(self, seconds):
                pauses.append(seconds)
                return len(pauses) > 3

        self.scanner._is_ended = Ending()
        times = iter([0, 0.5, 10, 10.01, 20, 23])
        with mock.patch("crucible_runner.checkpoint.scanner.time.monotonic", lambda: next(times)):
            self.scanner._run()
        self.assertEqual([round(pause, 6) for pause in pauses], [0.5, 4.5, 0.5, 27.0])

    def test_a_name_that_no_manifest_can_hold_makes_no_checkpoint(self):
        self.begin()
        self.write(os.fsdecode(b"machine/checkpoints/bad\xff.pt"), "x")
        self.assertEqual([self.tick(), self.tick(QUIET_MS)], [None, None])
        self.assertEqual(self.store.folders(self.keys.checkpoints), [])

    def test_at_the_end_with_no_time_nothing_is_uploaded(self):
        self.begin()
        self.save("step-1.pt")
        self.finish(True, left_ms=lambda: 0)
        self.assertIsNone(self.checkpoints.newest)


class RestoreTest(UploadingTest):
    def restore(self, attempt=3):
        directory = self.at("restored-by-%d" % attempt)
        os.mkdir(directory)
        patience = Patience(lambda: False, lambda: False)
        restorer = Restorer(self.store, self.keys, "job-a", patience)
        return restorer.restore(attempt, directory, self.paths.restoring, self.clock, self.remarks.append)

    def upload(self, step, text):
        self.save("step-%d.pt" % step, text)
        self.assertEqual([self.tick(), self.tick(), self.tick()], [None, None, step])
        self.tick(10 * QUIET_MS)

    def test_knows_which_of_its_own_are_there(self):
        self.begin()
        self.upload(1, "one")
        self.upload(2, "two")
        self.store.put(self.keys.stored_file(stored_at(CheckpointId(3, 2), "step-3.pt")), b"three")
        found = self.restore(attempt=2)
        self.assertEqual(found.restored.checkpoint, CheckpointId(2, 2))
        self.assertEqual(sorted(found.own_steps), [1, 2])
        self.assertEqual(found.begun_steps, [3])
        others = self.restore(attempt=3)
        self.assertEqual((others.own_steps, others.begun_steps), ([], []))

    def test_replaces_what_the_bundle_has_in_its_place(self):
        self.begin()
        self.upload(1, "one")
        os.makedirs(self.at("restored-by-9", "step-1.pt"))
        os.rename(self.at("restored-by-9"), self.at("with-a-folder"))
        directory = self.at("with-a-folder")
        restorer = Restorer(self.store, self.keys, "job-a", Patience(lambda: False, lambda: False))
        restorer.restore(3, directory, self.paths.restoring, self.clock, self.remarks.append)
        self.assertEqual(self.read("with-a-folder/step-1.pt"), "one")

    def test_a_manifest_of_another_job_is_not_good(self):
        self.begin()
        self.upload(1, "one")
        self.upload(2, "two")
        for revision in 1, 2:
            key = self.keys.manifest(CheckpointId(2, 2), revision)
            self.store.put(key, manifest_bytes(dict(_unsealed(self.store.get(key)), jobId="job-b")))
        self.assertEqual(self.restore().restored.checkpoint, CheckpointId(1, 2))
        self.assertIn("another checkpoint", self.remarks[-2])

    def test_a_manifest_with_a_wrong_bit_is_not_good(self):
        self.begin()
        self.upload(1, "one")
        self.upload(2, "two")
        for revision in 2, 1:
            key = self.keys.manifest(CheckpointId(2, 2), revision)
            self.store.put(key, self.store.get(key).replace(b'"resumePath":"step-2.pt"', b'"resumePath":"step-3.pt"'))
            restored = self.restore(attempt=5 - revision).restored
            # One revision that can be read is enough.
            self.assertEqual(restored.checkpoint, CheckpointId(revision, 2))
        self.assertIn("damaged", self.remarks[-2])

    def test_the_digest_of_the_golden_manifest_is_found_right(self):
        with open(os.path.join(GOLDEN, "manifest-full.json"), "rb") as file:
            body = file.read()
        checkpoint = CheckpointId(120, 2)
        self.assertEqual(read_manifest(body, "job-7k2m9q4x1c", checkpoint)["resumePath"], "checkpoint-120")
        with self.assertRaisesRegex(Corrupt, "damaged"):
            read_manifest(body.replace(b"640", b"641"), "job-7k2m9q4x1c", checkpoint)

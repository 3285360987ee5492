"""A restored checkpoint is the tree that the program left, and odd members do not stop it."""

import os
import socket
import stat
import unittest

from test_older import RestoringTest

from crucible_runner.checkpoint.overdue import left_out_words
from crucible_runner.keys import CheckpointId, place_of


class ExactTest(RestoringTest):
    def there(self, name):
        return self.at("machine", "checkpoints", name)

    def test_empty_folders_and_links_to_them_are_restored(self):
        self.begin()
        self.save("state/step.json", "{}")
        os.makedirs(self.there("state/tb/deep"))
        os.makedirs(self.there("rejected"))
        os.symlink("tb", self.there("state/current"))
        self.settle()
        self.finish(True)
        self.restore()
        self.assertEqual(os.listdir(self.at("next", "state", "tb", "deep")), [])
        self.assertEqual(os.listdir(self.at("next", "rejected")), [])
        self.assertEqual(os.readlink(self.at("next", "state", "current")), "tb")
        self.assertTrue(os.path.isdir(self.at("next", "state", "current")))

    def test_modes_and_times_of_files_and_folders_are_restored_exactly(self):
        self.begin()
        for name in ("step-1/run.sh", "step-1/closed/read-only", "step-1/w"):
            self.save(name)
        os.chmod(self.there("step-1/run.sh"), 0o750)
        os.chmod(self.there("step-1/closed/read-only"), 0o444)
        os.chmod(self.there("step-1/closed"), 0o555)
        self.addCleanup(os.chmod, self.there("step-1/closed"), 0o755)
        self.addCleanup(os.chmod, self.at("next", "step-1", "closed"), 0o755)
        for index, name in enumerate(("step-1/run.sh", "step-1/closed/read-only", "step-1/w", "step-1/closed", "step-1")):
            os.utime(self.there(name), ns=(1_700_000_000_123_456_789 + index,) * 2)
        self.settle()
        self.finish(True)
        self.restore()
        for name in ("step-1", "step-1/closed", "step-1/run.sh", "step-1/closed/read-only", "step-1/w"):
            before, after = os.lstat(self.there(name)), os.lstat(self.at("next", *name.split("/")))
            self.assertEqual((after.st_mode, after.st_mtime_ns), (before.st_mode, before.st_mtime_ns), name)

    def test_the_folder_that_was_written_last_has_the_last_entry_time_whatever_the_modes(self):
        self.begin()
        folders = ("step-3", "step-1", "step-2")
        for index, name in enumerate(folders):
            self.save(name + "/weights")
            os.chmod(self.there(name), (0o700, 0o755, 0o500)[index])
            for path in (name + "/weights", name):
                os.utime(self.there(path), ns=((1_700_000_000 + 60 * index) * 1_000_000_000,) * 2)
        self.settle()
        self.finish(True)
        self.restore()
        entered = [os.stat(self.at("next", name)).st_ctime_ns for name in folders]
        self.assertEqual(sorted(set(entered)), entered)

    def test_no_program_becomes_another_user_through_a_checkpoint(self):
        self.begin()
        self.save("step-1.bin")
        os.chmod(self.there("step-1.bin"), 0o4755)
        self.settle()
        self.finish(True)
        self.restore()
        self.assertEqual(stat.S_IMODE(os.stat(self.at("next", "step-1.bin")).st_mode), 0o755)

    def test_hard_links_stay_one_file_and_are_uploaded_once(self):
        self.begin()
        self.save("checkpoint-10/model.pt", "weights")
        os.makedirs(self.there("best"))
        os.link(self.there("checkpoint-10/model.pt"), self.there("best/model.pt"))
        self.settle()
        self.save("checkpoint-20/model.pt", "WEIGHTS")
        self.settle()
        self.finish(True)
        files = {each["path"]: each for each in self.newest_manifest(20)["files"]}
        self.assertEqual(files["checkpoint-10/model.pt"]["linkedTo"], "best/model.pt")
        self.assertEqual(files["checkpoint-10/model.pt"]["storedAt"], "000000000010-2/files/best/model.pt")
        self.assertEqual(files["best/model.pt"]["storedAt"], "000000000010-2/files/best/model.pt")
        self.restore()
        self.assertTrue(os.path.samefile(self.at("next", "best", "model.pt"), self.at("next", "checkpoint-10", "model.pt")))

    def test_a_file_with_a_new_name_is_not_uploaded_again(self):
        self.begin()
        self.save("new/model.pt", "weights")
        self.settle()
        os.rename(self.there("new"), self.there("best"))
        self.save("other.pt", "weights")
        self.settle()
        self.finish(True)
        newest = self.newest_manifest(self.checkpoints.newest.step)["files"]
        self.assertEqual(newest[0]["storedAt"], "000000000001-2/files/new/model.pt")

    def test_a_path_that_is_too_long_for_a_key_is_stored_in_another_place(self):
        self.begin()
        path = "/".join(["d" * 200] * 5 + ["model.pt"])
        self.save(path, "weights")
        self.settle()
        [entry] = self.newest_manifest(1)["files"]
        self.assertRegex(entry["storedAt"], r"^000000000001-2/files/\.long/[0-9a-f]{64}$")
        self.finish(True)
        self.assertEqual(self.restore()[1], [path])

    def test_a_path_with_a_line_break_is_stored_in_another_place(self):
        self.begin()
        self.save("new\nline.pt", "weights")
        self.settle()
        [entry] = self.newest_manifest(1)["files"]
        self.assertRegex(entry["storedAt"], r"^000000000001-2/files/\.long/[0-9a-f]{64}$")
        self.finish(True)
        self.assertEqual(self.restore()[1], ["new\nline.pt"])

    def test_a_short_path_is_stored_under_its_own_name(self):
        self.assertEqual(place_of(CheckpointId(1, 2), "a/b", 3), "000000000001-2/files.3/a/b")

    def test_an_odd_name_beside_a_checkpoint_is_left_out_and_named(self):
        self.begin()
        self.save(os.fsdecode(b"samples/caf\xe9.png"))
        self.save("step-5.json", "{}")
        self.assertEqual(self.settle(), [5])
        self.assertEqual(self.restore()[1], ["step-5.json"])
        self.assertEqual(
            left_out_words(self.scanner.left_out),
            "Left out of the checkpoints: samples/caf\\xe9.png (its name is not UTF-8: rename it). The rest is saved.",
        )

    def test_an_odd_name_in_a_checkpoint_lets_only_a_proof_count(self):
        self.begin()
        self.save(os.fsdecode(b"step-5/caf\xe9.pt"))
        self.save("step-5/model.pt")
        self.assertEqual(self.settle(), [])
        self.assertEqual(self.checkpoints.hindrance, "step-5/caf\\xe9.pt cannot be saved (its name is not UTF-8: rename it)")
        self.finish(True)
        self.assertEqual(self.store.folders(self.keys.checkpoints), [])

    def test_sockets_and_pipes_have_no_content_to_keep(self):
        self.begin()
        self.save("step-5.json", "{}")
        os.mkfifo(self.there("pipe"))
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(os.path.relpath(self.there("socket")))
        self.assertEqual(self.settle(), [5])
        self.assertEqual(self.scanner.left_out, {})

    def test_links_that_lead_out_of_the_directory_are_left_out_and_named(self):
        self.begin()
        self.save("step-5/model.json", "{}")
        os.symlink("/", self.there("step-5/data"))
        os.symlink("model.json", self.there("step-5/best"))
        self.assertEqual(self.settle(), [5])
        self.assertEqual(self.scanner.left_out, {"step-5/data": "it leads out of the checkpoint directory"})

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_what_the_runner_may_not_read_is_left_out_and_named(self):
        self.begin()
        self.save("step-5.json", "{}")
        self.save("closed.txt")
        os.chmod(self.there("closed.txt"), 0)
        self.assertEqual(self.settle(), [5])
        self.assertEqual(self.scanner.left_out, {"closed.txt": "it cannot be read: Permission denied"})

"""SQLite databases in a checkpoint directory, above all those with a write-ahead log."""

import os
import shutil
import sqlite3
import struct
import threading
from contextlib import closing
from unittest import mock

from support import patient
from test_older import RestoringTest

from crucible_runner.checkpoint.databases import copy_database, has_wal
from crucible_runner.checkpoint.staging import copy_file
from crucible_runner.store.transfer import Changed


class DatabasesTest(RestoringTest):
    def open(self, name="study.db", mode="WAL"):
        os.makedirs(os.path.dirname(self.there(name)), exist_ok=True)
        base = sqlite3.connect(self.there(name))
        self.addCleanup(base.close)
        base.execute("PRAGMA journal_mode=%s" % mode)
        # The log grows as long as the program runs.
        base.execute("PRAGMA wal_autocheckpoint=0")
        base.execute("CREATE TABLE trials (step INTEGER)")
        base.commit()
        return base

    def there(self, name):
        return self.at("machine", "checkpoints", name)

    def trial(self, base, step):
        with base:
            base.execute("INSERT INTO trials VALUES (?)", (step,))
        for suffix in ("", "-wal"):
            if os.path.exists(self.there("study.db" + suffix)):
                self.stamp(self.there("study.db" + suffix))

    def restored_trials(self, into="next"):
        self.restore(into)
        with closing(sqlite3.connect(self.at(into, "study.db"))) as base:
            return [row[0] for row in base.execute("SELECT step FROM trials")]

    def test_a_state_that_is_only_in_a_log_is_stored_while_it_is_written(self):
        self.begin()
        base = self.open()
        for step in range(1, 13):
            self.trial(base, step)
            self.progress.see([b"trial %d" % step])
            self.settle(ticks=1)
        self.assertEqual(self.restored_trials()[:10], list(range(1, 11)))
        self.assertFalse(os.path.exists(self.at("next", "study.db-wal")))

    def test_every_copy_is_a_checkpoint_of_its_own_and_complete_at_once(self):
        self.begin()
        base = self.open()
        steps = []
        for step in range(1, 9):
            self.trial(base, step)
            steps += self.settle(ticks=1)
        self.assertGreater(len(steps), 2)
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(self.newest_manifest(steps[-1])["state"], "complete")
        self.assertEqual(self.newest_manifest(steps[-1])["revision"], 1)

    def test_a_copy_between_two_commits_is_complete_and_one_within_a_commit_is_not_made(self):
        self.begin(pids=lambda: [os.getpid()])
        base = self.open(mode="DELETE")
        self.trial(base, 1)
        self.assertEqual(self.settle(ticks=8), [1])
        self.assertEqual(self.newest_manifest(1)["state"], "complete")
        self.trial(base, 2)
        self.assertEqual(self.settle(ticks=8), [2])
        base.execute("BEGIN EXCLUSIVE")
        base.execute("INSERT INTO trials VALUES (3)")
        self.stamp(self.there("study.db"))
        with mock.patch("crucible_runner.checkpoint.databases._BUSY_SECONDS", 0.01):
            self.assertRaises(Changed, self.settle, ticks=8)
        base.rollback()
        self.assertEqual(self.restored_trials(), [1, 2])

    def test_one_with_a_pipe_in_the_place_of_a_journal_is_not_opened(self):
        self.begin()
        self.open(mode="DELETE").close()
        os.mkfifo(self.there("study.db-journal"))
        found = []
        thread = threading.Thread(target=lambda: found.append(copy_database(self.there("study.db"), self.at("copy"))), daemon=True)
        thread.start()
        thread.join(patient(5))
        self.assertEqual(found, [False])

    def test_one_that_is_nearly_all_holes_is_copied_with_its_holes(self):
        self.begin()
        self.open(mode="DELETE").close()
        size = 3 << 30
        with open(self.there("study.db"), "r+b") as file:
            page = struct.unpack(">16xH", file.read(18))[0]
            file.seek(28)
            file.write(struct.pack(">I", size // page))
            file.truncate(size)
        if os.stat(self.there("study.db")).st_blocks * 512 > size // 2:
            self.skipTest("this file system keeps no holes")
        self.assertFalse(copy_database(self.there("study.db"), self.at("copy")))
        copy_file(self.there("study.db"), self.at("copy"))
        status = os.stat(self.at("copy"))
        self.assertEqual(status.st_size, size)
        self.assertLess(status.st_blocks * 512, 16 << 20)
        with open(self.there("study.db"), "rb") as old, open(self.at("copy"), "rb") as new:
            self.assertEqual(old.read(1 << 20), new.read(1 << 20))

    def test_what_was_committed_just_before_the_end_is_stored(self):
        self.begin()
        base = self.open(mode="DELETE")
        self.trial(base, 1)
        self.assertEqual(self.settle(ticks=8), [1])
        self.trial(base, 2)
        self.finish(False)
        self.assertEqual(self.restored_trials(), [1, 2])

    def test_what_was_not_committed_at_the_end_is_not_stored(self):
        self.begin()
        base = self.open(mode="DELETE")
        self.trial(base, 1)
        self.settle(ticks=8)
        # As a killed program leaves it: pages of the transaction are in the file, and the journal has what they were.
        base.execute("PRAGMA cache_size=1")
        base.execute("CREATE TABLE more (data BLOB)")
        base.executemany("INSERT INTO more VALUES (?)", [(b"x" * 4096,)] * 50)
        for suffix in ("", "-journal"):
            shutil.copyfile(self.there("study.db" + suffix), self.at("killed.db" + suffix))
        base.rollback()
        base.close()
        for suffix in ("", "-journal"):
            shutil.move(self.at("killed.db" + suffix), self.there("study.db" + suffix))
        self.finish(False)
        self.assertEqual(self.restored_trials(), [1])

    def test_copies_wait_for_ten_times_as_long_as_a_copy_takes(self):
        self.begin()
        base = self.open()
        self.trial(base, 1)
        self.assertEqual(self.settle(ticks=1), [1])
        self.checkpoints.upload_ms = 5_000
        self.trial(base, 2)
        self.assertEqual(self.settle(ticks=49), [])
        self.assertEqual(self.settle(ticks=1), [2])

    def test_a_database_beside_a_checkpoint_is_stored_again_with_it(self):
        self.begin()
        base = self.open()
        self.save("step-5.pt", "weights")
        self.assertEqual(self.settle(), [5])
        for step in range(1, 6):
            self.trial(base, step)
            self.settle(ticks=4)
        self.finish(True)
        manifest = self.newest_manifest(5)
        self.assertGreater(manifest["revision"], 2)
        self.assertEqual([each["path"] for each in manifest["files"]], ["step-5.pt", "study.db"])
        self.assertEqual(self.restored_trials(), [1, 2, 3, 4, 5])

    def test_a_database_without_changes_is_not_stored_again(self):
        self.begin()
        base = self.open()
        self.trial(base, 1)
        self.save("step-5.pt", "weights")
        self.settle(ticks=30)
        revision = self.newest_manifest(5)["revision"]
        self.settle(ticks=30)
        self.assertEqual(self.newest_manifest(5)["revision"], revision)

    def test_what_a_killed_program_has_left_in_its_log_is_stored_at_the_end(self):
        self.begin(every_ms=3_600_000)
        base = self.open()
        self.trial(base, 1)
        self.settle(ticks=1)
        self.trial(base, 2)
        # A killed program neither empties its log nor removes it.
        for suffix in ("", "-wal"):
            shutil.copy(self.there("study.db" + suffix), self.at("kept" + suffix))
        base.close()
        for suffix in ("", "-wal"):
            os.replace(self.at("kept" + suffix), self.there("study.db" + suffix))
        self.finish(False)
        self.assertEqual(self.restored_trials(), [1, 2])

    def test_a_copy_of_a_closed_database_leaves_no_files_beside_it(self):
        base = self.open()
        self.trial(base, 1)
        base.close()
        self.assertEqual(os.listdir(self.there("")), ["study.db"])
        self.assertTrue(copy_database(self.there("study.db"), self.at("copy.db")))
        self.assertEqual(os.listdir(self.there("")), ["study.db"])

    def test_a_locked_database_is_tried_again_and_never_torn(self):
        base = self.open(mode="DELETE")
        base.execute("BEGIN EXCLUSIVE")
        with mock.patch("crucible_runner.checkpoint.databases._BUSY_SECONDS", 0.01):
            with self.assertRaisesRegex(Changed, "cannot be copied now: database is locked"):
                copy_database(self.there("study.db"), self.at("copy.db"))
        self.assertFalse(os.path.exists(self.at("copy.db")))

    def test_other_files_have_no_log(self):
        path = self.write("machine/checkpoints/other.db", "not a database")
        self.assertFalse(has_wal(path))
        self.assertFalse(copy_database(path, self.at("copy.db")))
        self.assertFalse(has_wal(self.at("absent")))

import hashlib
import json
import os
import threading

from support import GOLDEN, FolderTest

from crucible_runner.documents import PART_BYTES
from crucible_runner.store.file_store import FileStore
from crucible_runner.store.retry import GaveUp
from crucible_runner.store.base import StoreError
from crucible_runner.store.transfer import (
    Changed,
    Corrupt,
    FileDown,
    FileUp,
    download_whole,
    run_parallel,
    transfer_files,
    upload_whole,
)


def never():
    return False


class TransferTest(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.at("store"))
        self.store = FileStore(self.at("store"))

    def sparse(self, name, size, fill):
        path = self.at(name)
        with open(path, "wb") as file:
            for offset in range(0, size, PART_BYTES):
                file.write(bytes([fill]) * min(PART_BYTES, size - offset))
        return path

    def up(self, path, key="k/file"):
        file = FileUp(self.store, key, path, os.path.getsize(path))
        transfer_files([file], never)
        return {
            "path": "file",
            "sizeBytes": file.size,
            "parts": file.parts(),
            "digest": file.digest(),
            "mode": 0o750,
        }

    def down(self, entry, name="back", key="k/file"):
        transfer_files([FileDown(self.store, key, self.at(name, "file"), entry)], never)
        with open(self.at(name, "file"), "rb") as file:
            return file.read()

    def test_digests_are_those_of_the_vectors_and_all_comes_back(self):
        with open(os.path.join(GOLDEN, "vectors", "digests.json")) as file:
            vectors = json.load(file)
        for index, vector in enumerate(vectors):
            path = self.sparse("file-%d" % index, vector["sizeBytes"], vector["fill"])
            entry = self.up(path)
            self.assertEqual((entry["parts"], entry["digest"]), (vector["parts"], vector["digest"]))
            body = self.down(entry, "back-%d" % index)
            self.assertEqual(len(body), vector["sizeBytes"])
            self.assertEqual(os.stat(self.at("back-%d" % index, "file")).st_mode & 0o777, 0o750)
            self.assertEqual(
                upload_whole(self.store, "k/whole", path, never), hashlib.sha256(body).hexdigest()
            )
            digest = download_whole(self.store, "k/whole", self.at("whole"), never)
            self.assertEqual(digest, hashlib.sha256(body).hexdigest())

    def test_one_wrong_bit_is_found(self):
        entry = self.up(self.sparse("file", PART_BYTES + 10, 1))
        with open(self.at("store", "k", "file"), "r+b") as file:
            file.seek(PART_BYTES + 3)
            file.write(b"\0")
        with self.assertRaisesRegex(Corrupt, "part 2 of file has a wrong digest"):
            self.down(entry)

    def test_a_size_a_missing_file_and_digests_that_do_not_fit_are_found(self):
        entry = self.up(self.sparse("file", 10, 1))
        self.assertRaisesRegex(Corrupt, "size", self.down, dict(entry, sizeBytes=11))
        self.assertRaisesRegex(Corrupt, "missing", self.down, entry, "b", "k/none")
        self.assertRaisesRegex(Corrupt, "do not match", self.down, dict(entry, digest="0" * 64))

    def test_a_file_that_became_shorter_is_not_put(self):
        path = self.sparse("file", 100, 1)
        file = FileUp(self.store, "k/file", path, 200)
        self.assertRaises(Changed, transfer_files, [file], never)
        self.assertIsNone(self.store.get("k/file"))
        self.assertEqual(os.listdir(self.at("store", ".tmp")), [])

    def test_is_given_up_between_two_parts_and_leaves_nothing(self):
        path = self.sparse("file", 12 * PART_BYTES, 1)
        asked = []

        def after_some():
            asked.append(1)
            return len(asked) > 3

        self.assertRaises(
            GaveUp, transfer_files, [FileUp(self.store, "k/file", path, 12 * PART_BYTES)], after_some
        )
        self.assertIsNone(self.store.get("k/file"))
        self.assertEqual(os.listdir(self.at("store", ".tmp")), [])

    def test_the_first_error_ends_all_work(self):
        done = []
        lock = threading.Lock()

        def work(number):
            with lock:
                done.append(number)
            if number == 3:
                raise StoreError("away")

        with self.assertRaisesRegex(StoreError, "away"):
            run_parallel(((lambda number=number: work(number)) for number in range(1000)), never, 4)
        self.assertLess(len(done), 900)

    def test_an_absent_object_is_none(self):
        self.assertIsNone(download_whole(self.store, "k/none", self.at("whole"), never))

import hashlib
import os
from unittest import mock

from support import FolderTest

from crucible_runner.documents import PART_BYTES
from crucible_runner.store.file_store import FileStore
from crucible_runner.store.holes import Reader
from crucible_runner.store.base import BLOCK_BYTES, Part
from crucible_runner.store.transfer import Changed, FileUp, transfer_files, upload_whole

SIZE = 8 * PART_BYTES + 12_345


class HolesTest(FolderTest):
    """A sparse file and a dense one with the same bytes."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.at("store"))
        self.store = FileStore(self.at("store"))
        self.read_bytes = 0
        islands = {0: b"begin", 2 * PART_BYTES - 3: b"across two parts", SIZE - 3: b"end"}
        self.sparse = self.at("sparse")
        with open(self.sparse, "wb") as file:
            file.truncate(SIZE)
            for offset, data in islands.items():
                file.seek(offset)
                file.write(data)
        if os.stat(self.sparse).st_blocks * 512 >= SIZE:
            self.skipTest("this file system keeps no holes")
        self.body = bytearray(SIZE)
        for offset, data in islands.items():
            self.body[offset : offset + len(data)] = data
        self.dense = self.write("dense", bytes(self.body), "wb")

    def counting(self):
        pread = os.pread

        def counted(descriptor, length, offset):
            data = pread(descriptor, length, offset)
            self.read_bytes += len(data)
            return data

        return mock.patch("os.pread", counted)

    def upload(self, path):
        """Returns the digest and how much was read."""
        self.read_bytes = 0
        with self.counting():
            digest = upload_whole(self.store, "k/file", path, lambda: False)
        return digest, self.read_bytes

    def test_holes_cost_no_reading_and_the_digest_is_that_of_the_dense_file(self):
        wanted = hashlib.sha256(self.body).hexdigest()
        digest, sparse_bytes = self.upload(self.sparse)
        self.assertEqual(digest, wanted)
        self.assertEqual(self.store.get("k/file"), bytes(self.body))
        digest, dense_bytes = self.upload(self.dense)
        self.assertEqual(digest, wanted)
        # Hashed whole, hashed in parts, and sent.
        self.assertEqual(dense_bytes, 3 * SIZE)
        self.assertLess(sparse_bytes, 3 * 6 * BLOCK_BYTES)

    def test_digests_of_parts_are_those_of_the_dense_file(self):
        digests = []
        for path in (self.sparse, self.dense):
            file = FileUp(self.store, "k/file", path, SIZE)
            transfer_files([file], lambda: False)
            digests.append((file.parts(), file.digest()))
        self.assertEqual(digests[0], digests[1])

    def test_the_store_in_a_folder_keeps_the_holes(self):
        self.upload(self.sparse)
        self.assertLess(os.stat(self.at("store", "k", "file")).st_blocks * 512, SIZE // 4)

    def test_a_file_system_that_knows_no_holes_is_read_whole(self):
        wanted = hashlib.sha256(self.body).hexdigest()
        with mock.patch("os.lseek", side_effect=OSError(22, "Invalid argument")):
            digest, read_bytes = self.upload(self.sparse)
        self.assertEqual((digest, read_bytes), (wanted, 3 * SIZE))

    def test_many_small_holes_are_read_with_what_is_around_them(self):
        path = self.at("fragmented")
        with open(path, "wb") as file:
            file.truncate(64 * 16_384)
            for index in range(64):
                file.seek(index * 16_384)
                file.write(b"x")
        with self.counting(), open(path, "rb") as file:
            body = b"".join(Reader(file.fileno()).blocks(0, 64 * 16_384))
        with open(path, "rb") as file:
            self.assertEqual(body, file.read())

    def test_a_sparse_file_that_became_shorter_is_not_put(self):
        file = FileUp(self.store, "k/short", self.sparse, SIZE + PART_BYTES)
        self.assertRaises(Changed, transfer_files, [file], lambda: False)
        self.assertIsNone(self.store.get("k/short"))

    def test_zeros_replace_what_a_part_had_the_first_time(self):
        upload = self.store.upload("k/again", BLOCK_BYTES)
        for byte in (b"x", b"\0"):
            upload.put_part(0, Part(BLOCK_BYTES, b"", lambda byte=byte: [byte * BLOCK_BYTES]))
        upload.commit()
        upload.abort()
        self.assertEqual(self.store.get("k/again"), bytes(BLOCK_BYTES))

import hashlib
import os
import shutil
import tempfile
import threading
from unittest import mock

from server import HANG, LOST, MIB, ServerTest, answer

from crucible_runner.store.s3 import parts as s3_transfer

from crucible_runner.store import transfer
from crucible_runner.documents import PART_BYTES
from crucible_runner.store.s3.parts import S3Upload
from crucible_runner.store.s3.sigv4 import Credentials
from crucible_runner.store.base import Stale, StoreError, part_of
from crucible_runner.store.transfer import Changed, FileDown, FileUp, download_whole, transfer_files, upload_whole

PART = 5 * MIB


def never():
    return False


class MultipartTest(ServerTest):
    """Uploads in the smallest parts that the server takes."""

    def setUp(self):
        super().setUp()
        self.body = os.urandom(2 * PART + 1000)
        self.upload = S3Upload(self.store._client, self.prefix + "big", len(self.body), PART)

    def put(self, *numbers):
        for number in numbers or (3, 1, 2):
            begin = (number - 1) * PART
            self.upload.put_part(begin, part_of(self.body[begin : begin + PART]))

    def unfinished(self):
        listing = self.store._client.ask(s3_transfer.Ask("GET", "", (("uploads", ""), ("prefix", self.prefix))))
        return listing.body.count(b"<UploadId>")

    def test_parts_in_any_order_become_one_object(self):
        self.put()
        self.assertIsNone(self.store.get("big"))
        self.upload.commit()
        self.upload.abort()
        self.assertEqual(self.read("big"), self.body)
        self.assertEqual(self.unfinished(), 0)

    def test_the_server_keeps_the_checksums_of_the_parts(self):
        self.put()
        self.upload.commit()
        query = s3_transfer.Ask("HEAD", self.prefix + "big", headers={"x-amz-checksum-mode": "ENABLED"})
        told = self.store._client.ask(query).headers["x-amz-checksum-sha256"]
        self.assertRegex(told, "^[A-Za-z0-9+/]+=*-3$")

    def test_a_key_that_the_store_can_never_hold_is_not_begun_again(self):
        for code in ("KeyTooLongError", "InvalidURI", "NotImplemented"):
            with self.subTest(code):
                self.faults(("^POST .*uploads", answer(400, code), 100))
                self.assertRaisesRegex(ValueError, code, self.put)
                self.assertEqual(len(self.seen("POST")), 2)

    def test_a_server_that_knows_no_checksums_gets_none(self):
        self.faults(("^POST .*uploads", answer(501, "NotImplemented"), 1))
        self.put()
        self.assertFalse(self.upload._has_checksums)
        self.upload.commit()
        self.assertEqual(self.read("big"), self.body)

    def test_an_upload_that_is_given_up_leaves_nothing(self):
        self.put(1)
        self.assertEqual(self.unfinished(), 1)
        self.upload.abort()
        self.upload.abort()
        self.assertEqual(self.unfinished(), 0)
        self.assertIsNone(self.store.get("big"))

    def test_what_happens_to_a_part_is_made_good(self):
        for fault in (
            LOST,
            {"kind": "cut-request", "afterBytes": MIB},
            {"kind": "cut-request", "afterBytes": 0},
            answer(503, "SlowDown"),
            answer(400, "XAmzContentSHA256Mismatch"),
        ):
            with self.subTest(fault):
                self.faults(("^PUT .*partNumber=2", fault, 1))
                self.put()
                self.assertEqual(len(self.seen("PUT")), 4)
        self.upload.commit()
        self.assertEqual(self.read("big"), self.body)

    def test_an_upload_that_was_put_together_though_nobody_heard_is_done(self):
        self.put()
        self.faults(("^POST .*uploadId", LOST, 1))
        self.upload.commit()
        self.assertEqual(self.read("big"), self.body)

    def test_an_error_with_status_200_is_an_error(self):
        self.put()
        self.faults(("^POST .*uploadId", {"kind": "error-in-200", "code": "InternalError"}, 1))
        self.upload.commit()  # the server had put it together nevertheless
        self.assertEqual(self.read("big"), self.body)
        self.upload = S3Upload(self.store._client, self.prefix + "other", len(self.body), PART)
        self.put()
        fault = answer(200, "InternalError")
        self.faults(("^POST .*uploadId", fault, 100))
        with self.assertRaisesRegex(StoreError, "completing the upload of .* failed: InternalError"):
            self.upload.commit()
        self.assertIsNone(self.store.get("other"))
        self.faults()
        self.upload.commit()
        self.assertEqual(self.read("other"), self.body)

    def test_an_upload_that_somebody_ended_begins_again(self):
        self.put(1)
        self.upload._client.ask(
            s3_transfer.Ask("DELETE", self.prefix + "big", (("uploadId", self.upload._id),))
        )
        self.assertRaises(Stale, self.put, 2)
        self.assertRaises(Stale, self.upload.commit)

    def test_the_object_of_somebody_else_is_not_taken_for_one_s_own(self):
        self.put()
        self.store.put("big", b"of somebody else")
        self.upload._client.ask(
            s3_transfer.Ask("DELETE", self.prefix + "big", (("uploadId", self.upload._id),))
        )
        self.assertRaises(Stale, self.upload.commit)

    def test_credentials_that_end_in_the_midst_are_renewed(self):
        self.put(1)
        self.faults(("^PUT .*partNumber=2", answer(400, "ExpiredToken"), 1))
        own = self.store._client._keyring.get()
        good = {"keyId": own.key_id, "secret": own.secret, "sessionToken": None, "expiresAtMs": None}
        self.grants._taken = Credentials(own.key_id, own.secret, "ended", "a grant")
        find = self.grants.find
        self.grants.find = lambda is_pressing: is_pressing and self.grants.take(good) or find(is_pressing)
        with mock.patch.object(self.grants, "find", self.grants.find):
            self.put(2, 3)
        self.upload.commit()
        self.assertEqual(self.read("big"), self.body)


class DownloadTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.body = os.urandom(3 * MIB)
        self.store.put("big", self.body)

    def test_what_is_cut_goes_on_where_it_was(self):
        self.faults(("^GET", {"kind": "cut-answer", "afterBytes": MIB}, 2))
        self.assertEqual(self.read("big"), self.body)
        self.assertEqual(len(self.seen("GET")), 3)

    def test_a_connection_that_is_always_cut_at_once_is_given_up(self):
        self.faults(("^GET", {"kind": "cut-answer", "afterBytes": 0}, 100))
        self.assertRaisesRegex(StoreError, "ended after 0 of", self.read, "big")

    def test_an_object_that_is_replaced_meanwhile_is_not_mixed(self):
        download = self.store.download("big")
        blocks = download.blocks(0, MIB)
        first = next(blocks)
        self.assertEqual(first, self.body[: len(first)])
        blocks.close()
        self.store.put("big", os.urandom(3 * MIB))
        self.assertRaises(Stale, lambda: list(download.blocks(MIB, MIB)))
        self.store.delete("big")
        self.assertRaises(Stale, lambda: list(download.blocks(MIB, MIB)))
        self.assertIsNone(self.store.download("big"))

    def test_an_empty_object(self):
        self.store.put("empty", b"")
        self.assertEqual(self.store.download("empty").size, 0)
        self.assertEqual(self.read("empty"), b"")


class FileTest(ServerTest):
    """Whole files, as checkpoints have them."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="crucible-unit-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def make(self, size):
        path = os.path.join(self.folder, "file")
        with open(path, "wb") as file:
            file.write(os.urandom(MIB) * (size // MIB) + os.urandom(size % MIB))
        return path

    def entry(self, file):
        return {
            "path": "file",
            "sizeBytes": file.size,
            "parts": file.parts(),
            "digest": file.digest(),
            "mode": 0o750,
        }

    def test_files_come_back_as_they_were_though_everything_goes_wrong(self):
        path = self.make(3 * PART_BYTES + 77)
        self.faults(
            ("^PUT .*partNumber=2", {"kind": "cut-request", "afterBytes": 3 * MIB}, 6),
            ("^PUT .*partNumber=3", answer(503, "SlowDown"), 6),
            ("^POST .*uploadId", LOST, 1),
            ("^GET", {"kind": "cut-answer", "afterBytes": 7 * MIB}, 3),
        )
        file = FileUp(self.store, "ck/file", path, os.path.getsize(path))
        transfer_files([file], never)
        back = os.path.join(self.folder, "back", "file")
        transfer_files([FileDown(self.store, "ck/file", back, self.entry(file))], never)
        with open(path, "rb") as old, open(back, "rb") as new:
            self.assertTrue(old.read() == new.read())

    def test_small_empty_and_whole_files(self):
        for size in (0, 1, PART_BYTES, PART_BYTES + 1):
            path = self.make(size)
            with open(path, "rb") as file:
                wanted = hashlib.sha256(file.read()).hexdigest()
            self.assertEqual(upload_whole(self.store, "whole", path, never), wanted)
            back = os.path.join(self.folder, "back")
            self.assertEqual(download_whole(self.store, "whole", back, never), wanted)
        self.assertIsNone(download_whole(self.store, "none", back, never))

    def test_a_file_that_is_written_while_it_is_sent_is_never_whole_in_the_store(self):
        path = self.make(2 * PART_BYTES)
        file = FileUp(self.store, "ck/file", path, 2 * PART_BYTES)
        digested = file._digested

        def write_between(offset, length):
            part = digested(offset, length)
            with open(path, "r+b") as target:
                target.seek(offset)
                target.write(os.urandom(16))
            return part

        with mock.patch.object(file, "_digested", write_between), mock.patch.object(transfer, "_PATIENCE_SECONDS", 0):
            with mock.patch("crucible_runner.store.s3.client._pause"):
                self.assertRaisesRegex(StoreError, "Mismatch|BadDigest", transfer_files, [file], never)
        self.assertIsNone(self.store.get("ck/file"))

    def test_a_file_that_became_shorter_is_not_put(self):
        path = self.make(100)
        file = FileUp(self.store, "k/file", path, 2 * PART_BYTES)
        self.assertRaises(Changed, transfer_files, [file], never)
        self.assertIsNone(self.store.get("k/file"))

    def test_an_end_that_comes_while_a_server_hangs_is_heard_of(self):
        path = self.make(PART_BYTES + 1)
        is_over = threading.Event()
        self.faults(("^PUT .*partNumber=1", answer(503, "SlowDown"), 1000))
        timer = threading.Timer(1.0, is_over.set)
        timer.start()
        self.addCleanup(timer.cancel)
        file = FileUp(self.store, "k/file", path, os.path.getsize(path))
        self.assertRaises(transfer.GaveUp, transfer_files, [file], is_over.is_set)

    def test_enormous_files_are_cut_into_bigger_parts(self):
        self.assertEqual(self.store.part_bytes(10_000 * PART_BYTES), PART_BYTES)
        self.assertEqual(self.store.part_bytes(10_000 * PART_BYTES + 1), 2 * PART_BYTES)
        path = self.make(4 * PART_BYTES + 5)
        with mock.patch.object(self.store, "part_bytes", lambda size: 2 * PART_BYTES):
            file = FileUp(self.store, "ck/file", path, os.path.getsize(path))
            transfer_files([file], never)
        self.assertEqual(len(file.parts()), 5)
        self.assertEqual(len(self.seen("PUT")), 3)
        back = os.path.join(self.folder, "back", "file")
        transfer_files([FileDown(self.store, "ck/file", back, self.entry(file))], never)

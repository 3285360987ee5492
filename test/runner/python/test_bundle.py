import errno
import hashlib
import io
import os
import tarfile
from unittest import mock

from support import FakeClock, FolderTest

from crucible_runner.endings import Failed
from crucible_runner.inputs.bundle import Fetcher, unpack
from crucible_runner.keys import Keys
from crucible_runner.paths import remove_tree
from crucible_runner.store.file_store import FileStore
from crucible_runner.store.retry import GaveUp, Patience, Trouble


class ArchiveTest(FolderTest):
    def setUp(self):
        super().setUp()
        os.mkdir(self.at("work"))

    def archive(self, *members):
        """A gzipped tar of members: (name, content or dict of TarInfo fields)."""
        body = io.BytesIO()
        with tarfile.open(fileobj=body, mode="w:gz") as archive:
            for name, content in members:
                info = tarfile.TarInfo(name)
                if isinstance(content, bytes):
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
                else:
                    for field, value in content.items():
                        setattr(info, field, value)
                    archive.addfile(info)
        body.seek(0)
        return body


class UnpackTest(ArchiveTest):
    def unpack(self, *members):
        unpack(self.archive(*members), self.at("work"))

    def test_files_folders_and_links(self):
        self.unpack(
            ("./", {"type": tarfile.DIRTYPE}),
            ("./src/train.py", b"print(1)"),
            ("empty", {"type": tarfile.DIRTYPE}),
            ("src/link.py", {"type": tarfile.SYMTYPE, "linkname": "train.py"}),
            ("hard.py", {"type": tarfile.LNKTYPE, "linkname": "src/train.py"}),
            ("run.sh", {"mode": 0o4755}),
        )
        self.assertEqual(self.read("work/src/link.py"), "print(1)")
        self.assertEqual(self.read("work/hard.py"), "print(1)")
        self.assertTrue(os.path.isdir(self.at("work", "empty")))
        self.assertEqual(os.stat(self.at("work", "run.sh")).st_mode & 0o7777, 0o755)

    def test_nothing_leaves_the_folder(self):
        for member in (
            ("/etc/passwd", b"x"),
            ("../x", b"x"),
            ("a/../../x", b"x"),
            ("l", {"type": tarfile.SYMTYPE, "linkname": "/etc"}),
            ("l", {"type": tarfile.SYMTYPE, "linkname": "../x"}),
            ("l", {"type": tarfile.LNKTYPE, "linkname": "../x"}),
            ("null", {"type": tarfile.CHRTYPE}),
            ("pipe", {"type": tarfile.FIFOTYPE}),
        ):
            with self.assertRaises(ValueError, msg=member):
                self.unpack(member)
        self.assertEqual(os.listdir(self.folder), ["work"])

    def test_nothing_is_written_through_a_link(self):
        with self.assertRaisesRegex(ValueError, "passes through a symbolic link"):
            self.unpack(
                ("inside", {"type": tarfile.DIRTYPE}),
                ("l", {"type": tarfile.SYMTYPE, "linkname": "inside"}),
                ("l/x", b"x"),
            )
        self.assertEqual(os.listdir(self.at("work", "inside")), [])

    def test_what_is_no_archive_is_an_error(self):
        for body in (b"", b"no archive", self.archive(("a", b"x" * 100_000)).getvalue()[:60]):
            self.assertRaises(
                (tarfile.TarError, EOFError, OSError), unpack, io.BytesIO(body), self.at("work")
            )


class BundleTest(ArchiveTest):
    """A store, from which bundles are fetched."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.at("store"))
        self.store = FileStore(self.at("store"))
        self.keys = Keys("job-a", 1)
        self.is_stopped = False

    def put(self, body, sha256=None):
        sha256 = sha256 or hashlib.sha256(body).hexdigest()
        self.store.put(self.keys.bundle(sha256), body)
        return {"sha256": sha256, "sizeBytes": len(body)}

    def fetch(self, bundle):
        fetcher = Fetcher(self.store, self.keys, Trouble("fetching", lambda _: None, FakeClock()))
        patience = Patience(lambda: self.is_stopped, lambda: self.is_stopped)
        fetcher.fetch(bundle, self.at("work"), self.at("bundle.tar.gz"), patience)

    def empty(self):
        """Empties the working directory."""
        remove_tree(self.at("work"))
        os.mkdir(self.at("work"))


class FetcherTest(BundleTest):
    def test_a_bundle_is_unpacked_and_its_archive_is_deleted(self):
        self.fetch(self.put(self.archive(("a.txt", b"a")).getvalue()))
        self.assertEqual(self.read("work/a.txt"), "a")
        self.assertFalse(os.path.exists(self.at("bundle.tar.gz")))

    def test_a_missing_damaged_or_unreadable_bundle_is_a_failure_of_the_bundle(self):
        for bundle, words in (
            ({"sha256": "0" * 64, "sizeBytes": 1}, "is not in the store"),
            (self.put(b"other", "1" * 64), "is damaged"),
            (self.put(b"no archive"), "cannot be unpacked"),
            (self.put(self.archive(("../x", b"x")).getvalue()), "cannot be unpacked"),
        ):
            with self.assertRaisesRegex(Failed, words) as caught:
                self.fetch(bundle)
            self.assertEqual(caught.exception.ending().reason, "bundle")

    def test_a_full_disk_is_not_a_failure_of_the_bundle(self):
        bundle = self.put(self.archive(("a.txt", b"a")).getvalue())
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch("crucible_runner.inputs.bundle.unpack", side_effect=full):
            self.assertRaises(OSError, self.fetch, bundle)

    def test_a_stop_ends_the_download(self):
        self.is_stopped = True
        self.assertRaises(GaveUp, self.fetch, self.put(self.archive(("a.txt", b"a")).getvalue()))

import io
import os
import tarfile

from support import FolderTest

from crucible_runner.inputs.bundle import unpack


class UnpackTest(FolderTest):
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
        with self.assertRaisesRegex(ValueError, "reached through a link"):
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

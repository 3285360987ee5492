"""Archives made to harm the machine that unpacks them: each is a failure of the bundle, and nothing is written outside its folder."""

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
from unittest import mock

from test_bundle import BundleTest

from crucible_runner.documents import dump
from crucible_runner.endings import Failed
from crucible_runner.inputs import bundle as subject

FOLDER, SYMLINK, HARD_LINK = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def header(name, kind=tarfile.REGTYPE, **fields):
    """The 512 bytes of a header, with any fields."""
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape")


def file(name, content=b"x", **fields):
    return header(name, size=len(content), **fields) + content + bytes(-len(content) % 512)


def pax(*records):
    """A PAX header for the next member."""
    body = b""
    for key, value in records:
        text = b" %s=%s\n" % (key, value)
        size = len(text)
        while size != len(str(size)) + len(text):
            size = len(str(size)) + len(text)
        body += str(size).encode() + text
    return file("pax", body, kind=tarfile.XHDTYPE)


def long_name(name):
    return file("././@LongLink", name + b"\0", kind=tarfile.GNUTYPE_LONGNAME)


def old_sparse(size):
    """A GNU sparse header that promises `size` bytes and stores none."""
    block = bytearray(header("sparse", tarfile.GNUTYPE_SPARSE))
    block[386:410] = b"%011o\0%011o\0" % (size, 0)
    block[483:495] = b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


END = bytes(1024)
LEAVING = [
    header("d", FOLDER, mode=0o755),
    header("d/e", SYMLINK, linkname=".."),
    header("out", SYMLINK, linkname="d/e/../.."),
]

HOSTILE = {
    "traversal": [file("../x")],
    "traversal in the middle": [file("a/../../x")],
    "traversal by a long name": [long_name(b"a/" * 60 + b"../" * 61 + b"x"), file("y")],
    "traversal by a PAX path": [pax((b"path", b"../x")), file("y")],
    "absolute": [file("/etc/crucible-hostile")],
    "link to the root": [header("l", SYMLINK, linkname="/")],
    "link that leaves": [header("l", SYMLINK, linkname="../x")],
    "link that leaves through another link": LEAVING,
    "member through a link that leaves": [*LEAVING, file("out/x")],
    "member through a link that stays": [header("i", FOLDER), header("l", SYMLINK, linkname="i"), file("l/x")],
    "hard link to outside": [header("l", HARD_LINK, linkname="../outside")],
    "hard link to an absolute name": [header("l", HARD_LINK, linkname="/etc/passwd")],
    "hard link through a link": [*LEAVING, header("l", HARD_LINK, linkname="out/outside")],
    "hard link to nothing": [header("l", HARD_LINK, linkname="absent")],
    "hard link that moves a link": [
        header("a", FOLDER, mode=0o755),
        header("a/l", SYMLINK, linkname="../x"),
        header("l", HARD_LINK, linkname="a/l"),
    ],
    "character device": [header("null", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "block device": [header("sda", tarfile.BLKTYPE, devmajor=8)],
    "named pipe": [header("pipe", tarfile.FIFOTYPE)],
    "unknown type that says nothing": [header("x", b"Z"), header("../x", FOLDER)],
    "name of 10,000 bytes": [long_name(b"n" * 10_000), file("y")],
    "path of 10,000 bytes": [long_name(b"n/" * 5_000 + b"x"), file("y")],
    "name with a zero byte": [pax((b"path", b"a\0b")), file("y")],
    "name that is not text": [file("../\udcff\x1b[2J\n")],
    "file in the place of the folder": [file("./")],
    "file in the place of a folder with files": [file("a/b"), file("a")],
    "file below a file": [file("a"), file("a/b")],
    "folder in the place of a file": [file("a"), header("a", FOLDER)],
    "sparse file of exabytes": [old_sparse(1 << 62)],
    "sparse file by PAX": [pax((b"GNU.sparse.realsize", b"%d" % (1 << 62)), (b"GNU.sparse.map", b"0,0")), file("y")],
    "PAX size of exabytes": [pax((b"size", b"%d" % (1 << 62))), file("y")],
    "PAX size below zero": [pax((b"size", b"-1024")), file("y")],
    "PAX time that is infinite": [pax((b"mtime", b"1e999")), file("y")],
    "PAX time that is not a number": [pax((b"mtime", b"nan")), file("y")],
    "PAX time of ages": [pax((b"mtime", b"1e300")), file("y")],
    "PAX header of 100 MB": [header("pax", tarfile.XHDTYPE, size=100_000_000), bytes(100_000_000)],
    "long name of 100 MB": [header("long", tarfile.GNUTYPE_LONGNAME, size=100_000_000), bytes(100_000_000)],
    "PAX headers upon PAX headers": [pax((b"comment", b"x"))] * 5_000 + [file("y")],
    "cut in a file": [file("a"), header("b", size=5_000), b"x" * 1_000],
}

# Versions of Python refuse these or read another size.
ODD = {
    "PAX size of 60,000 digits": [pax((b"size", b"9" * 60_000)), file("y")],
    "PAX size that is not a number": [pax((b"size", b"nan")), file("y", b"")],
    "PAX header that is no record": [file("pax", b"999999999999 a=b\n", kind=tarfile.XHDTYPE), file("y")],
    "size below zero in the header": [header("y", size=-512)],
    "cut in a header": [file("a"), header("b", size=5)[:200]],
}


class HostileBundleTest(BundleTest):
    def setUp(self):
        super().setUp()
        self.write("outside", "untouched")

    def reject(self, body):
        with self.assertRaises(Failed) as caught:
            self.fetch(self.put(body))
        ending = caught.exception.ending()
        self.assertEqual(ending.reason, "bundle")
        self.assertLess(len(ending.message), 1_000)
        self.assertEqual(ending.message, " ".join(ending.message.split()))
        dump({"message": ending.message})
        self.assertEqual(sorted(os.listdir(self.folder)), ["outside", "store", "work"])
        self.assertEqual(self.read("outside"), "untouched")
        self.assertEqual(os.stat(self.at("outside")).st_nlink, 1)
        self.assertFalse(os.path.exists("/etc/crucible-hostile"))

    def test_a_hostile_archive_is_refused(self):
        for name, members in HOSTILE.items():
            with self.subTest(name):
                self.empty()
                self.reject(gzip.compress(b"".join([*members, END]) if "cut" not in name else b"".join(members), 1))

    def test_an_odd_archive_leaves_the_folder_never(self):
        for name, members in ODD.items():
            with self.subTest(name):
                self.empty()
                with contextlib.suppress(Failed):
                    self.fetch(self.put(gzip.compress(b"".join(members))))
                self.assertEqual(sorted(os.listdir(self.folder)), ["outside", "store", "work"])

    def test_an_archive_larger_than_any_bundle_is_refused(self):
        many = b"".join(header("f%d" % number) for number in range(120))
        for name, members, limit in (
            ("bytes of one file", file("a", bytes(90_000)), {"_BYTES_MAX": 80_000}),
            ("bytes of many files", b"".join(file("a", bytes(1_000)) for _ in range(60)), {"_BYTES_MAX": 80_000}),
            ("members", many, {"_MEMBERS_MAX": 100}),
        ):
            with self.subTest(name), mock.patch.multiple(subject, **limit):
                self.empty()
                self.reject(gzip.compress(members + END))

    def test_damaged_bytes_are_refused(self):
        whole = gzip.compress(b"".join([file("a", os.urandom(3_000)), file("b", b"y" * 2_000), END]))
        for name, body in (
            ("cut", whole[: len(whole) // 2]),
            ("cut before its checksum", whole[:-6]),
            ("one byte of another value", whole[:1_500] + bytes([whole[1_500] ^ 1]) + whole[1_501:]),
            ("wrong checksum", whole[:-8] + bytes(8)),
            ("nothing", b""),
        ):
            with self.subTest(name):
                self.empty()
                self.reject(body)
        with self.assertRaisesRegex(Failed, "is damaged"):
            self.fetch(self.put(whole, hashlib.sha256(b"another").hexdigest()))

    def test_the_last_of_members_with_one_name_stays_and_no_link_is_followed(self):
        parts = [file("a", b"1"), header("l", SYMLINK, linkname="a"), file("l", b"2"), file("a", b"3"), END]
        self.fetch(self.put(gzip.compress(b"".join(parts))))
        self.assertEqual((self.read("work/a"), self.read("work/l")), ("3", "2"))

    def test_the_largest_and_oddest_archive_of_a_person_is_unpacked(self):
        body = io.BytesIO()
        names = ["%s/%s.py" % ("folder" * 30, "n" * 200), "ü\u2028 name.py", "wei rd\n.py"]
        with tarfile.open(fileobj=body, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size, info.mtime = 200_000, 1_700_000_000.25
                archive.addfile(info, io.BytesIO(b"z" * 200_000))
            for number in range(1_000):
                archive.addfile(tarfile.TarInfo("many/%d" % number))
        self.fetch(self.put(body.getvalue()))
        for name in names:
            self.assertEqual(os.path.getsize(self.at("work", *name.split("/"))), 200_000)
            self.assertEqual(os.stat(self.at("work", *name.split("/"))).st_mtime, 1_700_000_000.25)
        self.assertEqual(len(os.listdir(self.at("work", "many"))), 1_000)

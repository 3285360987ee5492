"""The user's code: fetched, checked and unpacked into the working directory."""

import gzip
import io
import os
import stat
import tarfile
from typing import BinaryIO, List, Tuple

from ..endings import Failed, is_disk_full
from ..keys import Keys
from ..store.base import Store
from ..store.retry import Patience, Trouble, persist
from ..store.transfer import download_whole

# At most this is read at once, so a header of this size is the largest.
_BLOCK_BYTES = 64 * 1024
# More than a client packs (storage/bundles.ts).
_BYTES_MAX = 2 * 1024**3
_MEMBERS_MAX = 250_000
_WORDS_MAX = 300


class Fetcher:
    """Fetches the bundle. Raises `Failed('bundle')` when it differs from the order, `GaveUp` when time is over."""

    def __init__(self, store: Store, keys: Keys, trouble: Trouble) -> None:
        self._store = store
        self._keys = keys
        self._trouble = trouble

    def fetch(self, bundle: dict, work: str, archive: str, patience: Patience) -> None:
        key = self._keys.bundle(bundle["sha256"])
        digest = persist(
            lambda: download_whole(self._store, key, archive, patience.is_stopped),
            patience.is_hopeless,
            self._trouble,
        )
        if digest is None:
            raise Failed("bundle", "the bundle %s is not in the store; submit the job again" % key)
        if digest != bundle["sha256"]:
            raise Failed(
                "bundle", "the bundle %s is damaged: its digest is %s; submit the job again" % (key, digest)
            )
        try:
            with open(archive, "rb") as file:
                unpack(file, work)
        except Exception as error:
            if is_disk_full(error):
                raise
            # The archive reader answers damage with errors of many kinds.
            raise Failed("bundle", "the bundle cannot be unpacked: %s" % _in_words(error)) from error
        finally:
            os.unlink(archive)


def _in_words(error: Exception) -> str:
    text = str(error).encode("utf-8", "backslashreplace").decode()
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:_WORDS_MAX]


class _Unzipped(io.RawIOBase):
    """What a gzip file holds, read once from its beginning to its end. Raises `ValueError` for more than a bundle can be."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=file)
        self._at = 0

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, _whence: int = io.SEEK_SET) -> int:
        if offset < self._at:
            raise ValueError("it has a member of a negative size")
        while self._at < offset:
            if not self.read(min(offset - self._at, _BLOCK_BYTES)):
                break
        return self._at

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _BLOCK_BYTES:
            raise ValueError("it has a header of %d bytes" % size)
        data = self._file.read(size)
        self._at += len(data)
        if self._at > _BYTES_MAX:
            raise ValueError("it has more than %d bytes" % _BYTES_MAX)
        return data


def unpack(file: BinaryIO, folder: str) -> None:
    """Unpacks a gzipped tar. Raises `ValueError` for an entry that would leave the folder or is neither a file, a folder nor a link, and for
    more than a bundle can be; errors of any other kind for a damaged archive."""
    links: List[str] = []
    folders: List[Tuple[str, float]] = []
    unzipped = _Unzipped(file)
    with tarfile.open(fileobj=unzipped, mode="r:") as archive:
        for number, member in enumerate(archive):
            if number >= _MEMBERS_MAX:
                raise ValueError("it has more than %d members" % _MEMBERS_MAX)
            path = os.path.join(folder, *_segments(member.name))
            _check_parents(folder, path)
            if member.isdir():
                os.makedirs(path, exist_ok=True)
                folders.append((path, member.mtime))
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            if member.isreg() and not member.issparse():
                _write(archive, member, path)
            elif member.issym():
                _check_target(folder, path, member.linkname)
                os.symlink(member.linkname, path)
                links.append(path)
            elif member.islnk():
                target = os.path.join(folder, *_segments(member.linkname))
                _check_parents(folder, target)
                os.link(target, path, follow_symlinks=False)
                links.append(path)
            else:
                raise ValueError("%s is a device, a pipe or a sparse file" % member.name)
    # The checksum stands at the end.
    while unzipped.read(_BLOCK_BYTES):
        pass
    # One link may lead through another, so they are followed when all are made.
    for path in links:
        if not _is_in(os.path.realpath(folder), os.path.realpath(path)):
            raise _leaves(folder, path)
    # Each member changes the time of its folder.
    for path, changed in folders:
        os.utime(path, (changed, changed), follow_symlinks=False)


def _segments(name: str) -> list:
    segments = [segment for segment in name.split("/") if segment not in ("", ".")]
    if name.startswith("/") or ".." in segments or "\0" in name:
        raise ValueError("%s points outside the working directory" % name)
    return segments


def _check_parents(folder: str, path: str) -> None:
    """A link unpacked earlier must not redirect later entries."""
    parent = os.path.dirname(path)
    while len(parent) > len(folder):
        if os.path.islink(parent):
            raise ValueError("%s passes through a symbolic link" % os.path.relpath(path, folder))
        parent = os.path.dirname(parent)


def _check_target(folder: str, path: str, target: str) -> None:
    led = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or not _is_in(folder, led):
        raise _leaves(folder, path)


def _is_in(folder: str, path: str) -> bool:
    return (path + os.sep).startswith(folder + os.sep)


def _leaves(folder: str, path: str) -> ValueError:
    return ValueError("the link %s points outside the working directory" % os.path.relpath(path, folder))


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    source = archive.extractfile(member)
    assert source is not None
    with open(path, "wb") as target:
        while True:
            block = source.read(_BLOCK_BYTES)
            if not block:
                break
            target.write(block)
    os.chmod(path, stat.S_IMODE(member.mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
    # Build tools compare the times of files.
    os.utime(path, (member.mtime, member.mtime))

"""The user's code: fetched, checked and unpacked into the working directory."""

import os
import stat
import tarfile
import zlib
from typing import BinaryIO

from ..clock import Clock
from ..endings import Failed, is_disk_full
from ..keys import Keys
from ..store.base import Store
from ..store.retry import Patience, Remark, Trouble, persist
from ..store.transfer import download_whole

_BLOCK_BYTES = 1024 * 1024


class Fetcher:
    """Fetches the bundle. Raises `Failed('bundle')` when it differs from the order, `GaveUp` when time is over."""

    def __init__(self, store: Store, keys: Keys, clock: Clock, remark: Remark) -> None:
        self._store = store
        self._keys = keys
        self._trouble = Trouble("fetching the bundle", remark, clock)

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
        except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
            raise Failed("bundle", "the bundle cannot be unpacked: %s" % error) from error
        except OSError as error:
            # gzip also reports damage as OSError.
            if is_disk_full(error):
                raise
            raise Failed("bundle", "the bundle cannot be unpacked: %s" % error) from error
        finally:
            os.unlink(archive)


def unpack(file: BinaryIO, folder: str) -> None:
    """Unpacks a gzipped tar. Raises `ValueError` for an entry that would leave the folder or is neither a file, a folder nor a link."""
    with tarfile.open(fileobj=file, mode="r|gz") as archive:
        for member in archive:
            path = os.path.join(folder, *_segments(member.name))
            _check_parents(folder, path)
            if member.isdir():
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                os.unlink(path)
            if member.isreg():
                _write(archive, member, path)
            elif member.issym():
                _check_target(folder, path, member.linkname)
                os.symlink(member.linkname, path)
            elif member.islnk():
                target = os.path.join(folder, *_segments(member.linkname))
                _check_parents(folder, target)
                os.link(target, path, follow_symlinks=False)
            else:
                raise ValueError("%s is a device or a pipe" % member.name)


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
    if os.path.isabs(target) or not (led + os.sep).startswith(folder + os.sep):
        raise ValueError("the link %s points outside the working directory" % os.path.relpath(path, folder))


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

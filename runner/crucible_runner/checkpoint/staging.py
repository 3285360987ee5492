"""Sets the files of a checkpoint aside, so that the workload can keep writing and deleting during the upload."""

import errno
import fcntl
import os
import shutil
from contextlib import suppress
from typing import Dict, Iterable, Set

from ..paths import remove_tree
from ..store.holes import copy_with_holes
from ..store.transfer import Changed
from ..walls import NO_WALLS, OutsideWalls, Walls, path_of
from .databases import SIDE_FILES, copy_database, has_wal
from .names import is_database
from .scan import FileStamp, IsRecord, Selection, stamp_of

# Constant of <linux/fs.h> for a copy that shares the blocks of the original until either is written.
_FICLONE = 0x40049409
_LINKLESS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)


class Staged:
    """Links to, or copies of, the files of one selection, under `folder`."""

    def __init__(self, folder: str, walls: Walls = NO_WALLS) -> None:
        self.folder = folder
        self._walls = walls
        self.stamps: Dict[str, FileStamp] = {}
        self._is_copied: Dict[str, bool] = {}
        self.databases: Set[str] = set()
        """The files that SQLite has copied."""

    def path(self, file: str) -> str:
        return os.path.join(self.folder, file)

    def add(self, file: str, source: str, is_copied: bool) -> None:
        target = self.path(file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._walls.opened(source) as descriptor:
            self._is_copied[file] = is_copied or not link_opened(descriptor, source, target)
            if self._is_copied[file]:
                copy_file(path_of(descriptor), target)
        self.stamps[file] = stamp_of(target)

    def add_database(self, file: str, source: str) -> bool:
        """Makes a consistent copy despite concurrent writes; returns False for a file that is not an SQLite database or cannot be copied
        this way.
        """
        target = self.path(file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with self._walls.opened(source) as descriptor:
            if not copy_database(source, target):
                return False
            # SQLite opens the file by name, and the name must still lead to the same file.
            if not self._walls.holds(source) or not os.path.samestat(os.stat(source), os.fstat(descriptor)):
                os.unlink(target)
                raise OutsideWalls(source)
        self._is_copied[file] = True
        self.databases.add(file)
        self.stamps[file] = stamp_of(target)
        return True

    def is_what_was_seen(self, selection: Selection) -> bool:
        """Returns False when a file was replaced before it could be linked."""
        return all(
            self._is_copied[file] or stamp.content == selection.files[file].content
            for file, stamp in self.stamps.items()
        )

    def is_unchanged(self) -> bool:
        """Returns False when a file was written to, which a link cannot prevent."""
        return all(
            stamp_of(self.path(file)).content == stamp.content for file, stamp in self.stamps.items()
        )

    def remove(self) -> None:
        remove_tree(self.folder)


def stage(staged: Staged, directory: str, selection: Selection, is_copied: bool, is_record: IsRecord) -> None:
    """Raises `OSError`, including `FileNotFoundError` when a file vanishes during staging."""
    staged.remove()
    databases = {file for file in selection.files if is_copied_by_sqlite(directory, file)}
    databases = {file for file in databases if staged.add_database(file, os.path.join(directory, file))}
    # The database copy already contains the content of SQLite's side files.
    beside = {file + suffix for file in databases for suffix in SIDE_FILES}
    for file in selection.files.keys() - databases - beside:
        # Programs append to records in place.
        staged.add(file, os.path.join(directory, file), is_copied or is_record(file))


def is_copied_by_sqlite(directory: str, file: str) -> bool:
    return is_database(file) or has_wal(os.path.join(directory, file))


def stage_databases(staged: Staged, directory: str, files: Iterable[str]) -> None:
    """Raises `Changed` for a database that is locked, and `OSError`."""
    staged.remove()
    for file in files:
        staged.add_database(file, os.path.join(directory, file))


def stage_older(staged: Staged, directory: str, files: Iterable[str], is_copied: bool, is_record: IsRecord) -> None:
    """Sets older files aside. A file that vanishes or cannot be read is left out."""
    staged.remove()
    for file in files:
        source = os.path.join(directory, file)
        with suppress(OSError, Changed):
            if not (is_copied_by_sqlite(directory, file) and staged.add_database(file, source)):
                staged.add(file, source, is_copied or is_record(file))


def link_opened(descriptor: int, source: str, target: str) -> bool:
    """Creates a second name for a file that was opened as `source`; returns False when that is impossible or `source` leads elsewhere by
    now.
    """
    try:
        os.link(os.path.realpath(source), target)
    except OSError as error:
        if error.errno not in _LINKLESS:
            raise
        return False
    if os.path.samestat(os.lstat(target), os.fstat(descriptor)):
        return True
    os.unlink(target)
    return False


def copy_file(source: str, target: str) -> None:
    """Copies content and permissions; shares the blocks when the file system supports it."""
    with open(source, "rb") as old, open(target, "wb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError:
            copy_with_holes(old.fileno(), new.fileno())
    shutil.copymode(source, target)

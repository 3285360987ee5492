"""SQLite databases: recognized by their content, and copied through SQLite itself, so that a copy is whole whatever the program writes."""

import os
import stat
import urllib.parse
from contextlib import closing, suppress
from typing import Dict, Iterable

from ..store.holes import is_nearly_all_holes
from ..store.transfer import Changed
from ..walls import NO_WALLS
from .names import is_database

_MAGIC = b"SQLite format 3\0"
# Bytes 18 and 19 of the header are 2 for a database with a write-ahead log (SQLite Database File Format, section 1.3.3).
_WAL = b"\2\2"
_HEAD_BYTES = 20
_BUSY_SECONDS = 5.0
SIDE_FILES = ("-journal", "-wal", "-shm")


def has_wal(path: str) -> bool:
    """Whether the file is a database whose program writes to a write-ahead log next to it, so that any instant is consistent."""
    return _head(path)[18:20] == _WAL


def is_sqlite(path: str) -> bool:
    return _head(path) != b""


def _head(path: str) -> bytes:
    """Returns the header of a database; nothing for another file."""
    try:
        with NO_WALLS.opened(path) as descriptor:
            head = os.pread(descriptor, _HEAD_BYTES, 0)
    except OSError:
        return b""
    return head if head.startswith(_MAGIC) else b""


def _has_odd(paths: Iterable[str]) -> bool:
    """Whether something that is not a file has one of the paths."""
    for path in paths:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return True
    return False


def join_wal(directory: str, files: Dict[str, tuple]) -> None:
    """Makes a database and its write-ahead log one member: the newer of their times is that of the database. `files` holds stamps."""
    for log in [path for path in files if path.endswith("-wal")]:
        path = log[: -len("-wal")]
        if path in files and has_wal(os.path.join(directory, path)):
            stamp, wal = files[path], files[log]
            files[path] = stamp._replace(modified_ns=max(stamp.modified_ns, wal.modified_ns))
            for suffix in SIDE_FILES:
                files.pop(path + suffix, None)


def copy_database(source: str, target: str) -> bool:
    """Copies a database with the content of its journal or log. Returns False for another file, or a damaged database. Raises `Changed` when
    its program keeps it locked."""
    head = _head(source)
    # SQLite waits for the writer of a named pipe, and writes holes as zeros.
    if not head or _has_odd(source + suffix for suffix in SIDE_FILES) or is_nearly_all_holes(os.stat(source)):
        return False
    try:
        import sqlite3
    except ImportError:
        return False
    is_closed = head[18:20] == _WAL and not os.path.exists(source + "-wal")
    # Without its log the database is whole; opened in the usual way, it would get a new log.
    url = "file:%s?mode=ro%s" % (urllib.parse.quote(source), "&immutable=1" if is_closed else "")
    try:
        with closing(sqlite3.connect(url, timeout=_BUSY_SECONDS, uri=True)) as old, closing(sqlite3.connect(target)) as new:
            # With a read transaction of its own, the copy waits for no lock: `backup` itself would wait for ever.
            old.execute("BEGIN")
            old.execute("SELECT COUNT(*) FROM sqlite_master")
            old.backup(new)
        if is_closed and os.path.exists(source + "-wal"):
            raise Changed("%s was opened while it was copied" % source)
        return True
    except sqlite3.Error as error:
        with suppress(OSError):
            os.unlink(target)
        if isinstance(error, sqlite3.OperationalError) and is_database(source):
            raise Changed("%s cannot be copied now: %s" % (source, error)) from error
        return False

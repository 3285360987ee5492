"""Reads sparse files without reading their holes, which are known to be zeros."""

import errno
import functools
import hashlib
import os
from typing import Iterator

from ..paths import write_at
from .base import BLOCK_BYTES

ZEROS = bytes(BLOCK_BYTES)
# A file with fewer bytes in holes is like any other.
_HOLES_MIN_BYTES = 1 << 30


def is_nearly_all_holes(status: os.stat_result) -> bool:
    """Whether a file is long, and little of it is written: a terabyte of zeros would be read, copied and paid for."""
    held = status.st_blocks * 512
    return status.st_size - held > _HOLES_MIN_BYTES and held < status.st_size // 10


def is_zeros(block: bytes) -> bool:
    """Checks a block of at most `BLOCK_BYTES`."""
    return ZEROS.startswith(block)


@functools.lru_cache(maxsize=16)
def sha256_of_zeros(length: int) -> bytes:
    digest = hashlib.sha256()
    for begin in range(0, length, BLOCK_BYTES):
        digest.update(memoryview(ZEROS)[: length - begin])
    return digest.digest()


class Reader:
    """Reads an open file, from several threads. The descriptor's position changes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        self._has_holes = hasattr(os, "SEEK_DATA") and status.st_blocks * 512 < status.st_size
        if self._has_holes:
            # Some file systems report data that is not yet on the disk as a hole (openzfs/zfs issue 15526).
            try:
                os.fsync(descriptor)
            except OSError:
                self._has_holes = False

    def blocks(self, begin: int, end: int) -> Iterator[bytes]:
        """Yields all bytes from `begin` to `end`, or fewer when the file ends earlier, in pieces of at most `BLOCK_BYTES`."""
        known_data_end = begin
        while begin < end:
            if self._has_holes and begin >= known_data_end:
                data = self._next_data(begin)
                # Smaller holes are read with their surroundings: querying each would cost more.
                if min(data, end) - begin >= BLOCK_BYTES or data >= end:
                    while begin < min(data, end):
                        block = ZEROS[: min(BLOCK_BYTES, min(data, end) - begin)]
                        yield block
                        begin += len(block)
                    continue
                known_data_end = self._next_hole(data)
            block = os.pread(self._descriptor, min(BLOCK_BYTES, end - begin), begin)
            if not block:
                return
            yield block
            begin += len(block)

    def is_hole(self, begin: int, end: int) -> bool:
        """Whether the range is a hole. False when the file system does not know."""
        return self._has_holes and self._next_data(begin) >= end

    def _next_data(self, begin: int) -> int:
        """Returns the start of the next data, or the end of the file."""
        return self._seek(begin, os.SEEK_DATA)

    def _next_hole(self, begin: int) -> int:
        return self._seek(begin, os.SEEK_HOLE)

    def _seek(self, begin: int, whence: int) -> int:
        # The size is read first, so that a concurrent truncation never lengthens the file.
        size = os.fstat(self._descriptor).st_size
        try:
            return os.lseek(self._descriptor, begin, whence)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return size
            # The file system does not support hole queries.
            self._has_holes = False
            return begin


def copy_with_holes(source: int, target: int) -> None:
    """Copies the content of an open file into another one, which is empty. Blocks of zeros become holes."""
    size = os.fstat(source).st_size
    offset = 0
    for block in Reader(source).blocks(0, size):
        if not is_zeros(block):
            write_at(target, block, offset)
        offset += len(block)
    os.ftruncate(target, offset)

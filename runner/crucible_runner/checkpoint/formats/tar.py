"""Tar archives end with two zero blocks (POSIX 1003.1, pax)."""

from typing import Optional

from .base import File, Verdict

_BLOCK_BYTES = 512


def file_check(file: File) -> Optional[Verdict]:
    if file.head[257:262] != b"ustar":
        return None
    is_whole = file.size % _BLOCK_BYTES == 0 and not any(file.tail(2 * _BLOCK_BYTES))
    return Verdict(True, "ends as a tar archive does", is_written_last=True) if is_whole else Verdict(False, "lacks the end of a tar archive")

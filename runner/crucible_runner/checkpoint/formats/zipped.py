"""Zip files: `torch.save` since PyTorch 1.6, `np.savez`, Keras 3, Lightning. A zip's central directory is written last.

Source: APPNOTE 6.3.10, sections 4.3.6 and 4.3.14 to 4.3.16.
"""

import struct
from typing import Optional

from .base import File, Verdict

_LOCAL = b"PK\x03\x04"
_CENTRAL = b"PK\x01\x02"
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_LOCATOR64 = b"PK\x06\x07"
_END_BYTES = 22
_END64_BYTES = 56
_LOCATOR64_BYTES = 20
_COMMENT_MAX = 65_535


def file_check(file: File) -> Optional[Verdict]:
    # torch.distributed.checkpoint concatenates arbitrary blobs, including archives, into one file.
    if not file.head.startswith(_LOCAL) or file.name.endswith(".distcp"):
        return None
    tail = file.tail(_END_BYTES + _COMMENT_MAX)
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES or not _is_directory_there(file, tail, at):
        return Verdict(False, "lacks the directory at the end of a zip")
    return Verdict(True, "ends with its zip directory", is_written_last=True)


def _is_directory_there(file: File, tail: bytes, at: int) -> bool:
    """Scanner for the directory just before the end record: data before the archive shifts its offsets."""
    size, comment = struct.unpack_from("<12xI4xH", tail, at)
    end = file.size - len(tail) + at
    if end + _END_BYTES + comment != file.size:
        return False
    # PyTorch also writes the zip64 record when the short one would suffice.
    if at >= _LOCATOR64_BYTES and tail[at - _LOCATOR64_BYTES :].startswith(_LOCATOR64):
        end -= _LOCATOR64_BYTES + _END64_BYTES
        record = file.read(end, _END64_BYTES)
        if not record.startswith(_END64):
            return False
        (size,) = struct.unpack_from("<40xQ", record)
    return size <= end and (size == 0 or file.read(end - size, 4) == _CENTRAL)

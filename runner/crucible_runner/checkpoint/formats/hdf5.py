"""HDF5 (Keras `.h5`): the superblock contains the end of the file and, since version 3, whether it is open for writing.

Source: HDF5 File Format Specification 3.0, section II.A.
"""

import struct
from typing import Optional

from .base import File, Verdict

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def file_check(file: File) -> Optional[Verdict]:
    if not file.head.startswith(_SIGNATURE) or len(file.head) < 48:
        return None
    version = file.head[8]
    if version in (0, 1) and file.head[13] == 8:
        (end,) = struct.unpack_from("<Q", file.head, 40 if version == 0 else 44)
    elif version in (2, 3) and file.head[9] == 8:
        (end,) = struct.unpack_from("<Q", file.head, 28)
        if version == 3 and file.head[11] & 1:
            return Verdict(False, "is marked as open for writing")
    else:
        return None
    if file.size < end:
        return Verdict(False, "is %d bytes shorter than its HDF5 superblock declares" % (end - file.size))
    return Verdict(True, "is as long as its HDF5 superblock declares")

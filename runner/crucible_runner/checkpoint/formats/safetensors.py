"""safetensors: eight bytes of length, then a JSON header that gives the extent of the data, then the data."""

import struct
from typing import Optional

from ...shapes import read_json
from .base import File, Verdict

_HEADER_BYTES_MAX = 100_000_000


def file_check(file: File) -> Optional[Verdict]:
    if not file.name.endswith(".safetensors"):
        return None
    if file.size < 8:
        return Verdict(False, "is shorter than the header of a safetensors file")
    (length,) = struct.unpack_from("<Q", file.head)
    if length > _HEADER_BYTES_MAX:
        return None
    if 8 + length > file.size:
        return Verdict(False, "is shorter than the header of a safetensors file")
    header = read_json(file.read(8, length))
    ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
    missing = 8 + length + max(ends, default=0) - file.size
    if missing > 0:
        return Verdict(False, "lacks %d bytes of its tensors" % missing)
    return Verdict(True, "holds all tensors that its header lists")

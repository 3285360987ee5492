"""NumPy's `.npy`: the header contains shape and type. (`.npz` is a zip.) Source: NEP 1."""

import ast
import re
import struct
from typing import Optional

from .base import File, Verdict

_MAGIC = b"\x93NUMPY"
# NumPy itself reads no longer header, unless its caller trusts the file.
_HEADER_BYTES_MAX = 10_000
_PLAIN_TYPE = re.compile(r"[<>|=]?[biufcmMSV?](\d+)(?:\[.*\])?")


def file_check(file: File) -> Optional[Verdict]:
    if not file.head.startswith(_MAGIC) or len(file.head) < 12:
        return None
    is_short = file.head[6] == 1
    start = 10 if is_short else 12
    (length,) = struct.unpack_from("<H" if is_short else "<I", file.head, 8)
    if length > _HEADER_BYTES_MAX:
        return None
    header = ast.literal_eval(file.read(start, length).decode("latin-1").strip())
    plain = _PLAIN_TYPE.fullmatch(header["descr"]) if isinstance(header["descr"], str) else None
    if plain is None:
        return None
    items = 1
    for extent in header["shape"]:
        items *= extent
    missing = start + length + items * int(plain.group(1)) - file.size
    if missing > 0:
        return Verdict(False, "lacks %d bytes of its array" % missing)
    return Verdict(True, "is as long as its NumPy header declares")

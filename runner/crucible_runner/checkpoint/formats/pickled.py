"""Pickles: a pickle that parses to its last byte is whole. One that does not parse may be a different format that begins with a pickle."""

import io
import pickletools
from typing import Optional

from .base import File, Verdict

# Parsing a pickle takes one second per million operations.
_OPERATIONS_MAX = 200_000
# Older Pythons take quadratic time to read a long decimal number, which no pickle of this kind contains.
_DECIMALS = (pickletools.decimalnl_short, pickletools.decimalnl_long)


def file_check(file: File) -> Optional[Verdict]:
    if not file.head.startswith(b"\x80") or len(file.head) < 2 or not 2 <= file.head[1] <= 5:
        return None
    body = file.whole()
    if body is None or not body.endswith(b"."):
        return None
    rest = io.BytesIO(body)
    for _ in range(_OPERATIONS_MAX):
        operation = pickletools.code2op[rest.read(1).decode("latin-1")]
        if operation.arg in _DECIMALS:
            return None
        if operation.arg is not None:
            operation.arg.reader(rest)
        if operation.name == "STOP":
            is_whole = rest.tell() == len(body)
            return Verdict(True, "is a pickle that can be read to its end", is_written_last=True) if is_whole else None
    return None

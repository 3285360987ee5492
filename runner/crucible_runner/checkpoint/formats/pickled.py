"""Pickles: a pickle that parses to its last byte is whole. One that does not parse may be a different format that begins with a pickle."""

import pickletools
from typing import Optional

from .base import File, Verdict

# Parsing a pickle takes one second per million operations.
_OPERATIONS_MAX = 200_000


def file_check(file: File) -> Optional[Verdict]:
    if not file.head.startswith(b"\x80") or len(file.head) < 2 or not 2 <= file.head[1] <= 5:
        return None
    body = file.whole()
    if body is None or not body.endswith(b"."):
        return None
    end = -1
    for count, (operation, _, position) in enumerate(pickletools.genops(body)):
        if count > _OPERATIONS_MAX:
            return None
        if operation.name == "STOP":
            end = position or 0
    return Verdict(True, "is a pickle that can be read to its end", is_written_last=True) if end + 1 == len(body) else None

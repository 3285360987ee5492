"""The sources of the provider's interruption notice: one module per kind of source.

The runner polls a source once a second. Its `poll()` returns when the machine will be taken (wall clock, ms), or None while nothing is
announced. It raises `OSError` when it cannot answer, and is then polled again.

Some providers report an increased interruption risk earlier: a hint's `poll()` returns since when.
"""

from typing import Callable, Dict, Optional

from ..shapes import Shape
from . import ec2, file, none

Poll = Callable[[], Optional[int]]

NOTICE_SHAPES: Dict[str, Shape] = {
    "none": none.SHAPE,
    "file": file.SHAPE,
    "instance-metadata": ec2.SHAPE,
}
_OPENERS: Dict[str, Callable[[dict], Poll]] = {
    "none": none.open_source,
    "file": file.open_source,
    "instance-metadata": ec2.open_source,
}

_HINTS: Dict[str, Callable[[dict], Poll]] = {"instance-metadata": ec2.open_hint}


def open_hint(notice: dict) -> Optional[Poll]:
    """Returns None when the order's notice source gives no hints."""
    opener = _HINTS.get(notice["kind"])
    return opener and opener(notice)


def open_source(notice: dict) -> Poll:
    """Opens the source that an order names; the order's shape ensures that its kind is known."""
    return _OPENERS[notice["kind"]](notice)

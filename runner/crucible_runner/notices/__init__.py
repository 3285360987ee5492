"""Where the provider's interruption notice comes from: one module per kind of source.

A source is asked once a second. Its `look()` returns when the machine will be taken (wall clock, ms), or None while nothing
is announced. It raises `OSError` when it cannot tell; it is then asked again.

Some providers say earlier that a machine may be taken back sooner than others: a hint's `look()` returns since when.
"""

from typing import Callable, Dict, Optional

from ..shapes import Shape
from . import ec2, file, none

Look = Callable[[], Optional[int]]

NOTICE_SHAPES: Dict[str, Shape] = {
    "none": none.SHAPE,
    "file": file.SHAPE,
    "instance-metadata": ec2.SHAPE,
}
_OPENERS: Dict[str, Callable[[dict], Look]] = {
    "none": none.open_source,
    "file": file.open_source,
    "instance-metadata": ec2.open_source,
}

_HINTS: Dict[str, Callable[[dict], Look]] = {"instance-metadata": ec2.open_hint}


def open_hint(notice: dict) -> Optional[Look]:
    """None where the source that an order names gives no hints."""
    opener = _HINTS.get(notice["kind"])
    return opener and opener(notice)


def open_source(notice: dict) -> Look:
    """The source that an order names; the order's shape has made sure that its kind is known."""
    return _OPENERS[notice["kind"]](notice)

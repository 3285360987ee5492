"""Composable checks for the shape of a document. A check takes a value and the name of its field. It returns the value without unknown
fields, or raises `DocumentError` with a sentence about the field.
"""

import json
import math
import re
import sys
from typing import Any, Callable, Dict, Optional, Union

Shape = Callable[[Any, str], Any]

# The largest integer that both sides hold exactly (IEEE double).
_WHOLE_MAX = 2**53 - 1
# The largest number of a double.
_NUMBER_MAX = sys.float_info.max
_TEXT_SHOWN_MAX = 60
# Longer integers take Python quadratic time to read, and no document has one.
_DIGITS_MAX = 1000


class DocumentError(ValueError):
    """The document does not have the required shape."""


def read_json(text: Union[str, bytes]) -> Any:
    """Parses JSON of strangers. Raises `ValueError` for all that is not JSON, for nesting that exhausts the stack, for `NaN` and the like,
    and for integers of more than 1,000 digits."""
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise ValueError("it has a number of %d digits" % len(digits))
    return int(digits)


def _no_number(name: str) -> None:
    raise ValueError("%s is not a number of JSON" % name)


def _wrong(value: Any, at: str, wanted: str) -> DocumentError:
    shown = repr(value)
    if len(shown) > _TEXT_SHOWN_MAX:
        shown = shown[:_TEXT_SHOWN_MAX] + "..."
    return DocumentError("%s must be %s, but is %s" % (at, wanted, shown))


def text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, at, "a text")
    return value


def boolean(value: Any, at: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, at, "true or false")
    return value


def number(value: Any, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= _NUMBER_MAX or math.isnan(value):
        raise _wrong(value, at, "a number")
    return value


def whole(least: int = 0, most: int = _WHOLE_MAX) -> Shape:
    """A whole number of at least `least`."""
    wanted = "a whole number from %d %s" % (least, "up" if most == _WHOLE_MAX else "to %d" % most)

    def check(value: Any, at: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _wrong(value, at, wanted)
        return value

    return check


def literal(*allowed: Any) -> Shape:
    """One of a few values."""

    def check(value: Any, at: str) -> Any:
        if isinstance(value, bool) or value not in allowed:
            raise _wrong(value, at, "one of " + ", ".join(repr(item) for item in allowed))
        return value

    return check


def pattern(expression: str, wanted: str) -> Shape:
    """A text that fully matches the expression; `wanted` completes "must be"."""
    compiled = re.compile(expression)

    def check(value: Any, at: str) -> str:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            raise _wrong(value, at, wanted)
        return value

    return check


def or_null(shape: Shape) -> Shape:
    return lambda value, at: None if value is None else shape(value, at)


def list_of(shape: Shape) -> Shape:
    def check(value: Any, at: str) -> list:
        if not isinstance(value, list):
            raise _wrong(value, at, "a list")
        return [shape(item, "%s[%d]" % (at, index)) for index, item in enumerate(value)]

    return check


def map_of(shape: Shape) -> Shape:
    def check(value: Any, at: str) -> dict:
        if not isinstance(value, dict):
            raise _wrong(value, at, "an object")
        return {name: shape(item, "%s.%s" % (at, name)) for name, item in value.items()}

    return check


def record(fields: Dict[str, Shape], optional: Optional[Dict[str, Shape]] = None) -> Shape:
    """An object with these fields; others are ignored."""

    def check(value: Any, at: str) -> dict:
        if not isinstance(value, dict):
            raise _wrong(value, at or "the document", "an object")
        prefix = at + "." if at else ""
        result = {}
        for name, shape in fields.items():
            if name not in value:
                raise DocumentError("%s is missing" % (prefix + name))
            result[name] = shape(value[name], prefix + name)
        for name, shape in (optional or {}).items():
            if name in value:
                result[name] = shape(value[name], prefix + name)
        return result

    return check


def tagged(tag: str, shapes: Dict[str, Shape]) -> Shape:
    """An object whose field `tag` selects one of the shapes."""

    def check(value: Any, at: str) -> dict:
        if not isinstance(value, dict):
            raise _wrong(value, at, "an object")
        kind = literal(*shapes)(value.get(tag), "%s.%s" % (at, tag))
        return dict(shapes[kind](value, at), **{tag: kind})

    return check

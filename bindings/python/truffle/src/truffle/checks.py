"""Checks of arguments, so that a wrong one is refused at once, in the words of the caller."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from typing import Any, Iterable, Optional, Sequence, Tuple, Union

from . import errors

#: A name, several separated by commas, or a list of names.
Names = Union[str, Iterable[str]]
#: ``"2027-01-15"``, ``"2027-01-15T11:30:00Z"``, a `date` or a `datetime`. A date means its midnight; without a time zone, UTC is meant.
When = Union[str, date, datetime]
#: Seconds, or a `timedelta`.
Seconds = Union[int, float, timedelta]


def names(value: Optional[Names], what: str) -> Optional[Tuple[str, ...]]:
    if value is None:
        return None
    if not isinstance(value, (str, Iterable)):
        raise _wrong(what, value, "a name or a list of names")
    given = value.split(",") if isinstance(value, str) else list(value)
    if any(not isinstance(one, str) for one in given):
        raise _wrong(what, value, "a name or a list of names")
    trimmed = tuple(one.strip() for one in given if one.strip())
    # A computed list that is empty by mistake must not ask about everything.
    if not trimmed:
        raise errors.UsageError("%s= is empty." % what, hint="Pass '*' for all." if what == "pattern" else "To ask about all, leave it out.")
    if any(one.startswith("-") for one in trimmed):
        raise _wrong(what, value, "names that do not begin with `-`")
    return trimmed


def needed_names(value: Names, what: str) -> Tuple[str, ...]:
    given = names(value, what)
    if given is None:
        raise _wrong(what, value, "a name or a list of names")
    return given


def name(value: Optional[str], what: str) -> Optional[str]:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or value.strip().startswith("-"):
        raise _wrong(what, value, "a name")
    return value.strip()


def whole(value: Optional[int], what: str) -> Optional[int]:
    if value is None:
        return None
    if _is_number(value) and value == int(value) and value > 0:
        return int(value)
    raise _wrong(what, value, "a whole number above 0")


def number(value: Optional[float], what: str) -> Optional[float]:
    if value is None or (_is_number(value) and value > 0):
        return value
    raise _wrong(what, value, "a number above 0")


def gib(value: Union[int, float, str, None], what: str) -> Union[int, float, str, None]:
    if not isinstance(value, str):
        return number(value, what)
    if value.strip():
        return value.strip()
    raise _wrong(what, value, "a number above 0")


def flag(value: bool, what: str) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(what, value, "True or False")


def choice(value: Optional[str], what: str, choices: Sequence[str]) -> Optional[str]:
    if value is None or value in choices:
        return None if value is None else str(value)
    raise _wrong(what, value, "one of %s" % ", ".join(repr(one) for one in choices))


def yes_or_no(value: Optional[bool], what: str) -> Optional[str]:
    return None if value is None else "yes" if flag(value, what) else "no"


def when(value: Optional[When], what: str) -> Optional[str]:
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, datetime):
        utc = value.astimezone(timezone.utc) if value.tzinfo is not None else value
        return utc.replace(tzinfo=None, microsecond=0).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if value is None:
        return None
    raise _wrong(what, value, "a date such as '2027-01-15', or a datetime")


def seconds(value: Optional[Seconds], what: str) -> Optional[str]:
    given = value.total_seconds() if isinstance(value, timedelta) else number(value, what)
    if given is None:
        return None
    if given <= 0:
        raise _wrong(what, value, "seconds above 0")
    return ("%.3f" % given).rstrip("0").rstrip(".") + "s"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(what: str, value: Any, wanted: str) -> errors.UsageError:
    return errors.UsageError("%s=%r is not %s." % (what, value, wanted))

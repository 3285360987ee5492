"""Whether values are what the annotations of their dataclass promise."""

import dataclasses
import enum
import typing
from typing import Any, List


def problems(value: Any, hint: Any, where: str) -> List[str]:
    """What does not fit, as ``where: value``."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        tries = [problems(value, one, where) for one in args]
        return [] if [] in tries else tries[0]
    if origin is tuple:
        if not isinstance(value, tuple):
            return ["%s: %r" % (where, value)]
        return [one for index, part in enumerate(value) for one in problems(part, args[0], "%s[%d]" % (where, index))]
    if origin is not None and issubclass(origin, typing.Mapping):
        if not isinstance(value, dict):
            return ["%s: %r" % (where, value)]
        return [one for name, part in value.items() for one in problems(part, args[1], "%s[%r]" % (where, name))]
    if dataclasses.is_dataclass(hint):
        return of_row(value, where) if isinstance(value, hint) else ["%s: %r" % (where, value)]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [] if isinstance(value, hint) else ["%s: %r" % (where, value)]
    fits = isinstance(value, (int, float) if hint is float else hint) and not (isinstance(value, bool) and hint is not bool)
    return [] if fits else ["%s: %r is no %s" % (where, value, hint)]


def of_row(row: Any, where: str = "") -> List[str]:
    hints = typing.get_type_hints(type(row))
    return [
        one
        for field in dataclasses.fields(row)
        for one in problems(getattr(row, field.name), hints[field.name], "%s.%s" % (where or type(row).__name__, field.name))
    ]

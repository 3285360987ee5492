"""Turns JSON documents of the command line into frozen dataclasses: ``spentMicroUsd`` becomes the field ``spent_micro_usd``."""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import Any, Dict, Mapping, Type, TypeVar

T = TypeVar("T")


def read(kind: Type[T], document: Mapping[str, Any]) -> T:
    """Builds a dataclass from a document. Fields that the document does not have keep their default; without one they are None.
    Fields that the dataclass does not have are left out: newer versions add some."""
    values: Dict[str, Any] = {}
    for name, hint, has_default in _fields(kind):
        key = camel(name)
        if key in document:
            values[name] = _converted(document[key], hint)
        elif not has_default:
            values[name] = None
    return kind(**values)


def read_all(kind: Type[T], documents: Any) -> typing.Tuple[T, ...]:
    """`read` for each of a list."""
    return tuple(read(kind, one) for one in documents or ())


def camel(name: str) -> str:
    """``spent_micro_usd`` as ``spentMicroUsd``."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _fields(kind: type) -> typing.List[typing.Tuple[str, Any, bool]]:
    if kind in _KNOWN:
        return _KNOWN[kind]
    hints = typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))
    missing = dataclasses.MISSING
    _KNOWN[kind] = [
        (one.name, hints[one.name], one.default is not missing or one.default_factory is not missing)
        for one in dataclasses.fields(typing.cast(Any, kind))
        if one.init
    ]
    return _KNOWN[kind]


_KNOWN: Dict[type, typing.List[typing.Tuple[str, Any, bool]]] = {}


def _converted(value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if value is None:
        return () if origin is tuple else None
    if origin is typing.Union:
        return _converted(value, next(one for one in typing.get_args(hint) if one is not type(None)))
    if origin is tuple:
        return tuple(_converted(one, typing.get_args(hint)[0]) for one in value)
    if dataclasses.is_dataclass(hint):
        return read(typing.cast(Any, hint), value)
    return value

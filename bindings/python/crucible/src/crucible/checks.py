"""Checks of arguments by their annotations, so that a wrong one is refused at once, in the words of the caller.

`truffle.checks` has those of single names and numbers.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import re
import shlex
import sys
import threading
import typing
from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

from truffle import checks
from truffle.errors import UsageError

C = TypeVar("C", bound=Callable[..., Any])

#: Fields whose values are never shown.
PRIVATE = ("secrets", "env")
_SHOWN_CHARACTERS = 80

#: Names of types, in singular and plural.
_WORDS: Dict[Any, Tuple[str, str]] = {
    str: ("a text", "texts"),
    bool: ("True or False", "True or False"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    timedelta: ("a timedelta", "timedeltas"),
    datetime: ("a datetime", "datetimes"),
    os.PathLike: ("a path", "paths"),
    Mapping: ("a mapping", "mappings"),
    Sequence: ("a list", "lists"),
}


def checked(define: C) -> C:
    """Decorates a function: its arguments are checked by their annotations before it runs."""

    @functools.wraps(define)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_call(define, args, kwargs)
        return define(*args, **kwargs)

    return typing.cast(C, call)


def check_call(define: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raises `UsageError` for the first argument that has not the type of its annotation."""
    try:
        bound = inspect.signature(define).bind(*args, **kwargs)
    except TypeError:
        return  # the call itself names the function
    hints = hints_of(define)
    kinds = inspect.signature(define).parameters
    for name, value in bound.arguments.items():
        if name not in hints:
            continue
        if kinds[name].kind is inspect.Parameter.VAR_POSITIONAL:
            for one in value:
                check(name, one, hints[name])
        elif value is not kinds[name].default:
            check(name, value, hints[name])


@functools.lru_cache(maxsize=None)
def hints_of(define: Callable[..., Any]) -> Dict[str, Any]:
    """The types of the parameters. Left out are those that exist for type checkers only, such as ``P.args``."""
    hints = {}
    space = vars(sys.modules[define.__module__])
    for name, text in define.__annotations__.items():
        if name != "return" and not str(text).startswith("P."):
            hints[name] = eval(text, space) if isinstance(text, str) else text
    return hints


def check(name: str, value: Any, hint: Any) -> None:
    """Raises `UsageError` unless the value has this type and can be sent."""
    if not _fits(value, hint):
        raise wrong(name, value, hint)
    for one in _texts(value):
        check_text(name, one)


def check_named(define: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Checks values by the annotations of a function that has arguments of these names; others are left to the caller."""
    hints = hints_of(define)
    for name, value in values.items():
        if name in hints:
            check(name, value, hints[name])


def check_text(name: str, text: str) -> None:
    """Raises `UsageError` for a text that no command and no file can hold."""
    if "\0" in text:
        raise UsageError("%s= has a NUL character, which no command line can take." % name, hint="Leave it out.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise UsageError("%s= has half of a surrogate pair, which is not text." % name, hint="Decode it again, as UTF-8 or UTF-16.") from None


def job(name: Any, what: str = "job") -> str:
    """The id or name of a job. It must not be taken as an option."""
    checks.name(name, what)
    if name is None:
        raise UsageError("%s=None is not the id or name of a job." % what, hint="`platform.jobs()` lists them.")
    return str(name).strip()


def no_job(value: Any) -> UsageError:
    return UsageError(
        "%r is neither the id or name of a job nor a function." % (value,),
        hint="Write platform.job('job-...'), or decorate a function with @platform.job.",
    )


def command(executable: Optional[str]) -> None:
    if executable is not None and not executable.strip():
        raise UsageError("executable= is empty.", hint="Name a command, such as 'crucible', or leave it out.")


def path(value: Any) -> str:
    """A path as a word of a command line, where it is not taken as an option."""
    text = os.fspath(value)
    return os.path.join(os.curdir, text) if text.startswith("-") else text


def time_limit(value: Optional[float], what: str = "timeout_s") -> Optional[float]:
    """Seconds to wait; 0 does not wait. None has no limit."""
    if value is None or value == 0:
        return value
    limit = checks.number(value, what)
    return None if limit is None else min(float(limit), threading.TIMEOUT_MAX)


def wrong(name: str, value: Any, hint: Any) -> UsageError:
    shown = "" if name in PRIVATE else repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "..."
    what = "%s=%s (%s)" % (name, shown, type(value).__name__) if shown else "%s= (%s)" % (name, type(value).__name__)
    return UsageError("%s is not %s." % (what, words(hint)), hint=_example(name, value, hint))


def words(hint: Any, are_many: bool = False) -> str:
    """A type in words: ``Optional[Sequence[str]]`` is "a list of texts"."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return " or ".join(dict.fromkeys(words(one, are_many) for one in inner if one is not type(None)))
    if origin is Mapping:
        text = _WORDS[Mapping][are_many] + " of texts"
        return text if inner[1] is Any else "%s to %s" % (text, words(inner[1], True))
    if origin in (Sequence, tuple):
        text = _WORDS[Sequence][are_many]
        return text if inner[0] is Any else "%s of %s" % (text, words(inner[0], True))
    name = str(getattr(hint, "__name__", hint))
    one, many = _WORDS.get(origin or hint, ("a %s" % name, name))
    return many if are_many else one


def _example(name: str, value: Any, hint: Any) -> Optional[str]:
    options = typing.get_args(hint) if typing.get_origin(hint) is typing.Union else (hint,)
    kinds = [typing.get_origin(one) or one for one in options]
    if isinstance(value, str) and Sequence in kinds:
        element = typing.get_args(options[kinds.index(Sequence)])[0]
        try:
            given = shlex.split(value) if element is Any else [value]
        except ValueError:
            given = [value]
        return "Write %s=%r." % (name, given)
    if isinstance(value, str) and float in kinds and re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        return "Write %s=%s." % (name, value.strip())
    if timedelta in kinds and isinstance(value, (int, float)):
        return "Write its unit, such as %s='%sh'." % (name, value)
    named = [one for one in kinds if isinstance(one, type) and one.__name__ == "Requirements"]
    if isinstance(value, dict) and named:
        return "Write %s=Requirements(%s)." % (name, ", ".join("%s=%r" % each for each in value.items()))
    if named:
        return "Write %s=Requirements(gpus=1)." % name
    if name == "preferences":
        return "Write preferences={'optimize_for': 'cost'}."
    if value is None or type(None) not in kinds:
        return None
    return "Leave it out for the default."


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin is typing.Union:
        return any(_fits(value, one) for one in inner)
    if origin is tuple or origin is Sequence:
        is_list = isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes, bytearray))
        return is_list and all(_fits(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items())
    if hint is int or hint is float:
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _texts(value: Any) -> typing.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(key)
            yield from _texts(one)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, os.PathLike):
        yield os.fsdecode(value)

"""Calls of the command line. Each is defined once, and used in two forms: one that waits, and one for asyncio.

An operation is a generator: it yields the commands that it needs, gets their documents, and returns its value.
"""

from __future__ import annotations

import asyncio
import functools
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Dict,
    Generator,
    Generic,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Tuple,
    Type,
    TypeVar,
    Union,
    overload,
)

from truffle.cli import UPGRADE, Document, Program
from truffle.errors import CrucibleError, SchemaMismatch

from .checks import check_call

T = TypeVar("T")
S = TypeVar("S", bound="HasProgram")

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")


class HasProgram:
    """Base of objects with operations. It holds the command line."""

    _program: Program


@dataclass(frozen=True)
class Run:
    """A command with one document.

    Args:
        words: The command and its arguments.
        env: Variables for this command only.
    """

    words: Tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Follow:
    """A command that prints documents until something is over. Its answer is the last one.

    Args:
        words: The command and its arguments.
        on_document: Gets each document when it arrives.
        timeout_s: After so many seconds the command is ended, and `TimeoutError` is raised. None waits without limit.
    """

    words: Tuple[str, ...]
    on_document: Callable[[Document], None]
    timeout_s: Optional[float] = None


Steps = Generator[Union[Run, Follow], Document, T]


class Bound(Generic[P, T]):
    """An operation of one object: call it to wait for its value, or await `aio(...)` with the same arguments."""

    def __init__(self, owner: HasProgram, define: Callable[..., Steps[T]]) -> None:
        self._owner = owner
        self._define = define
        functools.update_wrapper(self, define)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_call(self._define, (self._owner, *args), kwargs)
        return _finish(self._owner._program, self._define(self._owner, *args, **kwargs))

    async def aio(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for asyncio. Cancelling the task ends the command."""
        check_call(self._define, (self._owner, *args), kwargs)
        return await _finish_async(self._owner._program, self._define(self._owner, *args, **kwargs))

    def __repr__(self) -> str:
        return "<%s of %r>" % (self._define.__name__, self._owner)


class operation(Generic[S, P, T]):
    """Decorates a generator of steps as a method in two forms: ``job.cancel()``, and ``await job.cancel.aio()``."""

    def __init__(self, define: Callable[Concatenate[S, P], Steps[T]]) -> None:
        self.define = define
        self.__doc__ = define.__doc__

    @overload
    def __get__(self, instance: None, owner: Type[S]) -> operation[S, P, T]: ...

    @overload
    def __get__(self, instance: S, owner: Type[S]) -> Bound[P, T]: ...

    def __get__(self, instance: Optional[S], owner: Type[S]) -> Union[operation[S, P, T], Bound[P, T]]:
        return self if instance is None else Bound(instance, self.define)


class Stream(Generic[T]):
    """Values that arrive one after the other. Use it with ``for`` or ``async for``; leaving the loop ends the command.

    Each loop starts anew.
    """

    def __init__(
        self, program: Program, words: Tuple[str, ...], reader: Callable[[], Callable[[Document], Iterable[T]]]
    ) -> None:
        self._program = program
        self._words = words
        self._reader = reader

    def __iter__(self) -> Iterator[T]:
        read = self._reader()
        for document in self._program.lines(*self._words):
            with understood(self._words):
                yield from read(document)

    async def __aiter__(self) -> AsyncIterator[T]:
        read = self._reader()
        documents = self._program.lines_async(*self._words)
        try:
            async for document in documents:
                with understood(self._words):
                    for value in read(document):
                        yield value
        finally:
            await documents.aclose()


@contextmanager
def understood(words: Tuple[str, ...]) -> Iterator[None]:
    """Wraps the reading of a document: one without the expected fields comes from another version, whatever it declares."""
    try:
        yield
    except CrucibleError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SchemaMismatch(
            "`crucible %s` printed a document that this package cannot read: %s: %s." % (words[0], type(error).__name__, error), hint=UPGRADE
        ) from error


def _with(program: Program, env: Mapping[str, str]) -> Program:
    return replace(program, env={**program.env, **env}) if env else program


def _finish(program: Program, steps: Steps[T]) -> T:
    def do(call: Union[Run, Follow]) -> Document:
        if isinstance(call, Run):
            return _with(program, call.env).run(*call.words)
        last: Document = {}
        for document in program.lines(*call.words, timeout_s=call.timeout_s):
            with understood(call.words):
                call.on_document(document)
            last = document
        return last

    try:
        call = next(steps)
        while True:
            try:
                document = do(call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                with understood(call.words):
                    call = steps.send(document)
    except StopIteration as end:
        value: T = end.value
        return value


async def _finish_async(program: Program, steps: Steps[T]) -> T:
    async def follow(call: Follow) -> Document:
        last: Document = {}
        documents = program.lines_async(*call.words)
        try:
            async for document in documents:
                with understood(call.words):
                    call.on_document(document)
                last = document
        finally:
            await documents.aclose()
        return last

    async def do(call: Union[Run, Follow]) -> Document:
        if isinstance(call, Run):
            return await _with(program, call.env).run_async(*call.words)
        try:
            return await asyncio.wait_for(follow(call), call.timeout_s)
        except asyncio.TimeoutError:
            raise TimeoutError("`crucible %s` still runs after %g s." % (" ".join(call.words), call.timeout_s or 0)) from None

    try:
        call = next(steps)
        while True:
            try:
                document = await do(call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                with understood(call.words):
                    call = steps.send(document)
    except StopIteration as end:
        value: T = end.value
        return value


def options(values: Mapping[str, Any]) -> Tuple[str, ...]:
    """Words for the command line: ``{"tail": 5, "now": True}`` becomes ``--tail=5 --now``. None and False are left out; a list
    repeats its option."""
    words: Dict[str, None] = {}
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words[flag if one is True else "%s=%s" % (flag, one)] = None
    return tuple(words)

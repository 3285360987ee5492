"""The command line that answers every question, and the options of every command."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple, TypeVar

from . import checks, errors
from .checks import Names, Seconds
from .cli import Program, arguments
from .questions import Question, in_words_of_python

T = TypeVar("T")


class Settings:
    """How `Truffle` and `AsyncTruffle` ask.

    Args:
        profile: Profile of the AWS configuration; by default that of the environment.
        regions: Regions to ask where a method names none; by default all that the account has enabled.
        executable: The command to run, such as ``"/opt/bin/truffle"``; by default ``truffle`` is found on ``PATH``.
        timeout: Regions that take longer are given up; in seconds, by default 60.
        fresh: Ask AWS again, instead of using answers of the last 30 seconds (an hour for types and prices).
        env: Variables for the command in addition to those of this process, such as ``{"AWS_PROFILE": "research"}``.
    """

    def __init__(
        self,
        profile: Optional[str] = None,
        regions: Optional[Names] = None,
        executable: Optional[str] = None,
        timeout: Optional[Seconds] = None,
        fresh: bool = False,
        env: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._regions = checks.names(regions, "regions")
        self._options = {
            "profile": checks.name(profile, "profile"),
            "timeout": checks.seconds(timeout, "timeout"),
            "fresh": checks.flag(fresh, "fresh"),
        }
        self._program = Program("truffle", executable=executable, env=dict(env or {}))

    def __repr__(self) -> str:
        given = {"regions": self._regions, **self._options}
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % item for item in given.items() if item[1]))

    def _words(self, question: Question[Any]) -> Tuple[str, ...]:
        regions = question.regions or self._regions
        return (*question.words, *arguments({"regions": regions, **self._options}))


class Session(Settings):
    """Asks, and waits for the answer."""

    def _ask(self, question: Question[T]) -> T:
        try:
            return question.answer(*self._program.ask(*self._words(question)))
        except errors.UsageError as error:
            raise in_words_of_python(error) from None


class AsyncSession(Settings):
    """Asks with `asyncio`."""

    async def _ask(self, question: Question[T]) -> T:
        try:
            return question.answer(*await self._program.ask_async(*self._words(question)))
        except errors.UsageError as error:
            raise in_words_of_python(error) from None

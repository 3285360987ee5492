"""Errors. The classes of ``truffle.errors`` are those of the command line; the others are about jobs and functions."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from truffle.errors import (
    CapacityError,
    CommandFailed,
    ConditionalError,
    CrucibleError,
    ExecutableNotFound,
    InterruptedError,
    NotFoundError,
    NotSurvivedError,
    PermissionError,
    SchemaMismatch,
    UnavailableError,
    UnconfirmedError,
    UsageError,
)

from .plain import plain

__all__ = [
    "CapacityError",
    "CommandFailed",
    "ConditionalError",
    "CrucibleError",
    "CrucibleWarning",
    "ExecutableNotFound",
    "InterruptedError",
    "JobFailed",
    "NotFoundError",
    "NotSurvivedError",
    "PackingError",
    "PermissionError",
    "ResultError",
    "SchemaMismatch",
    "UnavailableError",
    "UnconfirmedError",
    "UsageError",
]


class JobFailed(CrucibleError):
    """The job ended without a result.

    Attributes:
        status: The job's end.
        exception_type: Of a function, the class of its exception, such as ``ValueError``; otherwise None.
        traceback: Of a function, the traceback on the machine; otherwise None.
        log: The last lines of its log.
    """

    def __init__(
        self,
        message: str,
        hint: Optional[str] = None,
        details: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(plain(message), hint, details)
        self.status = self.details.get("status")
        self.exception_type: Optional[str] = self.details.get("exception_type")
        self.traceback: Optional[str] = self.details.get("traceback")
        self.log: str = self.details.get("log", "")


class CrucibleWarning(UserWarning):
    """Something about a job that may become a problem, such as work that an interruption would lose."""


class PackingError(CrucibleError, TypeError):
    """A function, or something that it uses, cannot be sent."""


class ResultError(CrucibleError):
    """The return value of a function cannot be read here, or nothing shows that the job wrote it."""

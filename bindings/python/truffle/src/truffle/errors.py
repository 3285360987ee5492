"""Errors, by the reaction that fits. The kinds and exit codes are those of the command line."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class CrucibleError(Exception):
    """Base of all errors of `truffle` and `crucible`.

    Attributes:
        message: What happened and why.
        hint: What to do, or None.
        details: More for programs, such as `problems` of a job file.
    """

    def __init__(self, message: str, hint: Optional[str] = None, details: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message if hint is None else "%s %s" % (message, hint))
        self.message = message
        self.hint = hint
        self.details: Mapping[str, Any] = details or {}


class CommandFailed(CrucibleError):
    """The job failed, or something unexpected happened."""


class UsageError(CrucibleError, ValueError):
    """A wrong argument, job file or name."""


class CapacityError(CrucibleError):
    """No machine is available."""


class PermissionError(CrucibleError):
    """Credentials, permissions or keys."""


class NotFoundError(CrucibleError, LookupError):
    """No such job, attempt or checkpoint."""


class UnconfirmedError(CrucibleError):
    """The request was accepted, but its outcome is still unknown."""


class UnavailableError(CrucibleError):
    """The Temporal server, its workers or the object store do not answer."""


class NotSurvivedError(CrucibleError):
    """A rehearsal shows that the job does not survive an interruption."""


class ConditionalError(CrucibleError):
    """Capacity exists, under conditions."""


class InterruptedError(CrucibleError):
    """The command was ended by a signal."""


class ExecutableNotFound(CrucibleError):
    """The command line is not installed."""


class SchemaMismatch(CrucibleError):
    """The command line has another version than this package, and its documents cannot be read."""

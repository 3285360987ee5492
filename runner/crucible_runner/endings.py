"""How an attempt can end."""

import errno
from typing import NamedTuple, Optional


class Ending(NamedTuple):
    """The core of `result.json`."""

    outcome: str
    reason: str
    message: str
    exit_code: Optional[int] = None
    signal: Optional[str] = None


class Failed(Exception):
    """The attempt cannot continue. `reason` is one of the result's; the text is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def ending(self) -> Ending:
        return Ending("failed", self.reason, str(self))


class Stopped(Exception):
    """The attempt was asked to stop before its workload started, or started too late."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def ending(self) -> Ending:
        return Ending("stopped", self.reason, str(self))


_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_disk_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _FULL


DRAIN_WORDS = {
    "cancelled": "the job was cancelled",
    "migrated": "the job moves to another machine",
    "deadline": "the deadline is near",
    "budget": "the budget of this machine is used up",
    "superseded": "the attempt was abandoned",
    "expired": "the reservation or run limit of this machine ends",
    "interrupted": "the provider takes the machine back",
    "lease": "the lease has expired without a renewal",
}


def stopped_early(reason: str) -> Stopped:
    """Returns the ending of an attempt that had to stop before its command started."""
    words = DRAIN_WORDS[reason]
    return Stopped(reason, "%s%s; the command was not started." % (words[0].upper(), words[1:]))

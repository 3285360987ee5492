"""Retries while the store does not answer."""

import contextlib
import sys
import time
from typing import Callable, NamedTuple, Optional, TypeVar

from ..clock import Clock, in_words
from ..retries import RETRIES
from .base import StoreError, StoreRefused

T = TypeVar("T")
Remark = Callable[[str], None]

_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 15.0
_LOOK_SECONDS = 0.1
# A right that was just granted, or credentials that are being replaced, take some seconds to arrive everywhere.
_REFUSED_MS = 30_000


class GaveUp(Exception):
    """The action failed and no time is left for another try."""


class Refused(GaveUp):
    """The store has refused this machine since the start, and waiting longer has no use."""


class Patience(NamedTuple):
    """The time limit for required actions before the workload starts."""

    is_stopped: Callable[[], bool]
    """A stop was requested: even a succeeding action is given up."""
    is_hopeless: Callable[[], bool]
    """A stop was requested, or it is too late to retry a failing action."""


class Trouble:
    """One repeated request to the store; logs once that it fails, and once that it works again."""

    def __init__(self, doing: str, remark: Remark, clock: Clock, is_start: bool = False) -> None:
        """`is_start`: the workload has never run on this machine, so a store that keeps refusing is not waited for."""
        self._doing = doing
        self._remark = remark
        self._clock = clock
        self._is_start = is_start
        self._since_ms: Optional[int] = None
        self._refused_since_ms: Optional[int] = None
        self.error = ""
        """Why the last try failed; empty after a success."""

    def happened(self, error: Exception) -> None:
        self.error = str(error)
        RETRIES.failed(self, "%s does not work: %s" % (self._doing, error))
        if not isinstance(error, StoreRefused):
            self._refused_since_ms = None
        elif self._refused_since_ms is None:
            self._refused_since_ms = self._clock.mono_ms()
        if self._since_ms is None:
            self._since_ms = self._clock.mono_ms()
            words = "%s does not work, trying again: %s" % (self._doing, error)
            self._remark(words)
            # The log may not reach the store; the provider shows the machine's own output.
            with contextlib.suppress(OSError, ValueError):
                print(words, file=sys.stderr, flush=True)

    @property
    def is_refusal(self) -> bool:
        """Whether the store has done nothing but refuse for a while, at the start."""
        since_ms = self._refused_since_ms
        return self._is_start and since_ms is not None and self._clock.mono_ms() - since_ms >= _REFUSED_MS

    def over(self) -> None:
        """Nothing is tried again from now on."""
        self._refused_since_ms = None
        RETRIES.over(self)

    def passed(self) -> None:
        self.over()
        self.error = ""
        if self._since_ms is not None:
            lasted_ms = self._clock.mono_ms() - self._since_ms
            self._since_ms = None
            self._remark("%s works again after %s" % (self._doing, in_words(lasted_ms)))


class Pauses:
    """Growing pauses between tries."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._seconds = _FIRST_PAUSE_SECONDS

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Waits for the next pause, or until `is_over`."""
        end = time.monotonic() + self._seconds
        self._seconds = min(self._seconds * 2, _LONGEST_PAUSE_SECONDS)
        while not is_over():
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK_SECONDS))


def persist(action: Callable[[], T], is_over: Callable[[], bool], trouble: Trouble) -> T:
    """Repeats the action until it succeeds. Raises `GaveUp` when `is_over` comes first, and `Refused` for a refusal at the start; the first
    try is always made."""
    pauses = Pauses()
    try:
        while True:
            try:
                result = action()
            except StoreError as error:
                trouble.happened(error)
                if trouble.is_refusal:
                    raise Refused(str(error)) from error
                last = error
            else:
                trouble.passed()
                return result
            pauses.wait(is_over)
            if is_over():
                raise GaveUp(str(last)) from last
    finally:
        trouble.over()

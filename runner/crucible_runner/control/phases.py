"""The stages of an attempt on the machine and how long each took."""

import threading
from typing import List, NamedTuple

from ..clock import Clock


class _Phase(NamedTuple):
    name: str
    wall_ms: int
    mono_ms: int


class Phases:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: List[_Phase] = []
        self.enter("starting")

    @property
    def now(self) -> str:
        return self._begun[-1].name

    def enter(self, name: str) -> None:
        with self._lock:
            self._begun.append(_Phase(name, self._clock.wall_ms(), self._clock.mono_ms()))

    def document(self) -> List[dict]:
        """Returns the phases for the result; the last stage ends now."""
        with self._lock:
            ends = [phase.mono_ms for phase in self._begun[1:]] + [self._clock.mono_ms()]
            return [
                {"name": phase.name, "startedAtMs": phase.wall_ms, "durationMs": max(0, end - phase.mono_ms)}
                for phase, end in zip(self._begun, ends)
            ]

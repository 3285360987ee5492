"""What fails on this machine and is tried again, for beats: people see why nothing moves."""

import threading
from typing import Dict, NamedTuple, Optional

from .clock import Clock

# Shorter retries are the way of networks.
_TOLD_AFTER_MS = 10_000


class _Failing(NamedTuple):
    since_ms: int
    """Monotonic."""
    since_wall_ms: int
    words: str


class Retries:
    """Used by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failing: Dict[object, _Failing] = {}

    def failed(self, action: object, words: str) -> None:
        """The action has failed in these words, and is tried again."""
        with self._lock:
            before = self._failing.get(action)
            since = (self._clock.mono_ms(), self._clock.wall_ms()) if before is None else before[:2]
            self._failing[action] = _Failing(*since, words)

    def over(self, action: object) -> None:
        """The action has succeeded, or is given up."""
        with self._lock:
            self._failing.pop(action, None)

    def document(self) -> Optional[dict]:
        """Returns the retry that has lasted longest; None if none has lasted long."""
        with self._lock:
            oldest = min(self._failing.values(), key=lambda failing: failing.since_ms, default=None)
        if oldest is None or self._clock.mono_ms() - oldest.since_ms < _TOLD_AFTER_MS:
            return None
        return {"text": oldest.words, "sinceMs": oldest.since_wall_ms}


RETRIES = Retries(Clock())
"""Those of this process, which has one attempt."""

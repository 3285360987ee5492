"""Lets a program that does not handle the request to stop finish its next save before its machine is taken."""

from typing import Optional

from ..clock import Clock
from ..control.stop import Drain
from .evidence import QUIET
from .generations import Generation
from .scanner import Scanner
from .uploads import Checkpoints

# Expected variation of the interval between saves.
_LATE_SHARE = 0.25


class LastSave:
    """Waits for a checkpoint whose save was not finished when the drain began."""

    def __init__(self, checkpoints: Checkpoints, scanner: Scanner, drain: Drain, clock: Clock) -> None:
        self._checkpoints = checkpoints
        self._scanner = scanner
        self._drain = drain
        self._clock = clock
        self._until_ms: Optional[int] = None
        current = scanner.saves.current
        self._safe_before_ms = current.changed_ms if current is not None and self._is_safe(current) else -1

    def due_ms(self) -> Optional[int]:
        """Returns when the next or current save should be in the store (monotonic); None when it cannot be estimated."""
        saves = self._scanner.saves
        current, interval_ms = saves.current, self._scanner.interval_ms()
        after_ms = self._checkpoints.upload_ms + self._scanner.quiet_ms
        save_ms = saves.closed[-1].save_ms if saves.closed else 0
        if current is not None and not self._is_safe(current):
            return max(current.burst_ms + save_ms, self._drain.began_at_ms) + after_ms
        if interval_ms is None:
            return None
        # The interval is measured from end to end of saves, because a second file next to it, such as a copy of the best checkpoint, shifts
        # both.
        ended_ms = self._scanner.trained_since_ms() + save_ms if current is None else current.changed_ms
        due_ms = ended_ms + interval_ms + int(interval_ms * _LATE_SHARE)
        return None if due_ms < self._drain.began_at_ms else due_ms + after_ms

    def _is_safe(self, generation: Generation) -> bool:
        """Whether a save is in the store and could be restored."""
        uploaded = self._checkpoints.uploads[-1] if self._checkpoints.uploads else None
        if uploaded is None or uploaded.generation is not generation or uploaded.files != generation.files:
            return False
        if uploaded.evidence.state != QUIET:
            return True
        return self._scanner.saves.is_like_complete(generation.shape) and generation.unfinished() is None

    def _begun_ms(self, generation: Generation) -> int:
        """Returns when its last burst of writing began (monotonic). A scan notices that late; the files of a new save give a better time."""
        if generation.burst_ms != generation.first_ms:
            return generation.burst_ms
        ago_ms = self._clock.wall_ms() - generation.written_ns // 1_000_000
        return min(generation.burst_ms, self._clock.mono_ms() - ago_ms)

    def wait_until(self, until_ms: int) -> None:
        self._until_ms = until_ms
        self._checkpoints.hurry()

    def is_over(self) -> bool:
        """Whether the save has arrived, its time has passed, or no save is awaited."""
        if self._until_ms is None or self._clock.mono_ms() >= self._until_ms:
            return True
        current = self._scanner.saves.current
        if current is None or current.changed_ms <= self._safe_before_ms or not self._is_safe(current):
            return False
        if self._begun_ms(current) >= self._drain.began_at_ms:
            return True
        # A save was in progress when the drain began. Another one may be due.
        due_ms = self.due_ms()
        return due_ms is None or due_ms > self._until_ms

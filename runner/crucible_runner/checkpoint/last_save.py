"""Lets a program that does not handle the request to stop make the save that is due before its machine goes."""

from typing import Optional

from ..clock import Clock
from ..stop import Drain
from .evidence import QUIET
from .looks import Looks
from .uploads import Checkpoints

# Intervals between saves differ by so much.
_LATE_SHARE = 0.25


class LastSave:
    """Waits for a checkpoint whose save was not over when the drain began."""

    def __init__(self, checkpoints: Checkpoints, looks: Looks, drain: Drain, clock: Clock) -> None:
        self._checkpoints = checkpoints
        self._looks = looks
        self._drain = drain
        self._clock = clock
        self._until_ms: Optional[int] = None

    def due_ms(self) -> Optional[int]:
        """When the next save, or the one under way, should be in the store (monotonic); None where nothing tells."""
        saves = self._looks.saves
        current, interval_ms = saves.current, saves.interval_ms()
        if current is None or interval_ms is None:
            return None
        uploaded = self._checkpoints.uploads[-1] if self._checkpoints.uploads else None
        is_under_way = uploaded is None or uploaded.generation is not current
        begins_ms = current.first_ms if is_under_way else current.first_ms + interval_ms + int(interval_ms * _LATE_SHARE)
        closed = saves.closed[-1].save_ms if saves.closed else current.save_ms
        return max(begins_ms, self._drain.began_at_ms) + closed + self._checkpoints.upload_ms + self._looks.quiet_ms

    def wait_until(self, until_ms: int) -> None:
        self._until_ms = until_ms
        self._checkpoints.hurry()

    def is_over(self) -> bool:
        """Whether the save has come, or the time for it has passed, or nobody waits for one."""
        if self._until_ms is None or self._clock.mono_ms() >= self._until_ms:
            return True
        uploaded = self._checkpoints.uploads[-1] if self._checkpoints.uploads else None
        if uploaded is None or uploaded.generation.changed_ms < self._drain.began_at_ms:
            return False
        saves = self._looks.saves
        return uploaded.evidence.state != QUIET or saves.is_like_complete(uploaded.generation.shape)

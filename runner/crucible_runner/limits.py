"""The hard stop: by when the machine must be off, whatever happens. Pure: clocks are arguments."""

from typing import NamedTuple, Optional


class HardStop(NamedTuple):
    at_ms: int
    """Monotonic."""
    reason: str
    """`deadline` or `budget`."""


class Limits:
    """The limits in force: the document with the highest `seq`, the order's own being the first."""

    def __init__(self, first: dict, ordered_ms: int) -> None:
        """`ordered_ms` is when the order was issued (monotonic): from then on somebody may be paying for the machine."""
        self.document = first
        self._ordered_ms = ordered_ms

    @property
    def seq(self) -> int:
        return self.document["seq"]

    def obey(self, document: dict) -> bool:
        """True when the document is newer than what was in force."""
        if document["seq"] <= self.seq:
            return False
        self.document = document
        return True

    def hard_stop(self, mono_ms: int, wall_ms: int) -> Optional[HardStop]:
        """The earliest end, or None without any. The wall clock is asked each time, for it may be set meanwhile."""
        deadline_at_ms, run_ms = self.document["deadlineAtMs"], self.document["runMs"]
        stops = []
        if deadline_at_ms is not None:
            stops.append(HardStop(mono_ms + deadline_at_ms - wall_ms, "deadline"))
        if run_ms is not None:
            stops.append(HardStop(self._ordered_ms + run_ms, "budget"))
        return min(stops) if stops else None

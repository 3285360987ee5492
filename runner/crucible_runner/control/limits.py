"""The hard stop: the time by which the machine must be off in any case."""

from typing import NamedTuple, Optional

from ..dates import Dates, WrittenDate

# Ten years (core/money/meter.ts): longer than any job.
AFFORDABLE_MAX_MS = 3650 * 24 * 3600 * 1000


def affordable_ms(left_micro_usd: int, price_micro_usd_per_hour: int, step_ms: int = 1000) -> Optional[int]:
    """Returns how long a machine may be billed with the remaining budget, in whole steps of billing; None when it costs nothing
    (core/money/budget.ts does the same).
    """
    if price_micro_usd_per_hour <= 0:
        return None
    seconds = max(0, left_micro_usd) * 3600 // price_micro_usd_per_hour
    return min(seconds * 1000 // step_ms * step_ms, AFFORDABLE_MAX_MS)


class Spent(NamedTuple):
    """The upper bound of the attempt's cost, and its instant (monotonic)."""

    at_ms: int
    micro_usd: int


class HardStop(NamedTuple):
    at_ms: int
    """Monotonic."""
    reason: str
    """`deadline` or `budget`."""


class Limits:
    """The limits in force: the document with the highest `seq`, starting with the order's own; and the amount spent."""

    def __init__(self, first: dict, spent: Spent, dates: Dates) -> None:
        """`spent` starts at zero when the order was issued, or when a machine that may have been queued began: it may be billed from then
        on."""
        self._dates = dates
        self._take(first)
        self.spent = spent

    @property
    def seq(self) -> int:
        return self.document["seq"]

    def obey(self, document: dict) -> bool:
        """Returns True when the document is newer than the limits in force."""
        if document["seq"] <= self.seq:
            return False
        self._take(document)
        return True

    def _take(self, document: dict) -> None:
        deadline_at_ms = document["deadlineAtMs"]
        self._deadline: Optional[WrittenDate] = None if deadline_at_ms is None else self._dates.read(deadline_at_ms)
        self.document = document

    def learn(self, spent: Spent) -> bool:
        """Records the control plane's latest spend report; ignores a report of an earlier moment. Returns True when it is recorded."""
        if spent.at_ms <= self.spent.at_ms:
            return False
        self.spent = spent
        return True

    def hard_stop(self) -> Optional[HardStop]:
        """Returns the earliest end, or None without any."""
        deadline, budget = self._deadline, self.document["budget"]
        stops = []
        if deadline is not None:
            stops.append(HardStop(deadline.mono_ms(), "deadline"))
        if budget is not None:
            left_micro_usd = budget["microUsd"] - self.spent.micro_usd
            step_ms = budget.get("billedInStepsOfMs", 1000)
            paid_ms = affordable_ms(left_micro_usd, budget["priceMaxMicroUsdPerHour"], step_ms)
            if paid_ms is not None:
                stops.append(HardStop(self.spent.at_ms + paid_ms, "budget"))
        return min(stops) if stops else None

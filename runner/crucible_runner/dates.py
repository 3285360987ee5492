"""Written dates on the monotonic clock, so that a wall clock that is set ends nothing."""

from typing import Optional

from .clock import CLOCK_SLACK_MS, Clock


class Dates:
    """Converts dates. A lead of the wall clock over the monotonic one that the store's clock confirms is better than the present one: a
    machine's clock may be set only after its start, or be set to a wrong time later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.confirmed_lead_ms: Optional[int] = None
        """Lead when the store's clock and this machine's agreed last; None if they never did."""

    def on_store_date(self, at_ms: int) -> None:
        """The store has just answered with this date."""
        wall_ms = self._clock.wall_ms()
        if abs(wall_ms - at_ms) <= CLOCK_SLACK_MS:
            self.confirmed_lead_ms = wall_ms - self._clock.mono_ms()

    def read(self, at_ms: int) -> "WrittenDate":
        """Converts the date of a document that has just been read."""
        return WrittenDate(at_ms, self._clock.wall_ms() - self._clock.mono_ms(), self)


class WrittenDate:
    """A date of a document. It is converted when it is read, and once more when the store first confirms the machine's clock."""

    def __init__(self, at_ms: int, lead_ms: int, dates: Dates) -> None:
        """`lead_ms` is the wall clock's lead when the document was read."""
        self.at_ms = at_ms
        self._lead_ms = lead_ms
        self._dates = dates
        self._is_certain = False
        self.mono_ms()

    def mono_ms(self) -> int:
        """Returns the date on the monotonic clock."""
        confirmed_ms = self._dates.confirmed_lead_ms
        if not self._is_certain and confirmed_ms is not None:
            self._lead_ms, self._is_certain = confirmed_ms, True
        return self.at_ms - self._lead_ms

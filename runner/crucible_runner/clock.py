"""The two clocks: one for durations, one for instants. Both in whole milliseconds."""

import time

# The kernel's clock that nobody sets and that goes on while the machine is suspended: a hibernated machine must not
# believe that its lease has stood still. macOS counts sleep in CLOCK_MONOTONIC; Linux only in CLOCK_BOOTTIME.
_CLOCK_ID = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))

# Both sides' clocks may be off by this much together (core/time.ts).
CLOCK_SLACK_MS = 30_000


class Clock:
    """The machine's clocks. Everything that measures time is given one of these, so that tests can give another."""

    def mono_ms(self) -> int:
        """Monotonic milliseconds, the same for all processes until the next boot; for durations."""
        if _CLOCK_ID is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(_CLOCK_ID) // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC as this machine believes; for display and for deadlines of people."""
        return time.time_ns() // 1_000_000


def in_words(duration_ms: float) -> str:
    """A duration for people, in its two largest units: `2 h 5 min`, `12 s`, `350 ms`."""
    ms = max(0, int(duration_ms))
    if ms < 1000:
        return "%d ms" % ms
    seconds = ms // 1000
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    return " ".join("%d %s" % part for part in parts[:2] if part[0] > 0)

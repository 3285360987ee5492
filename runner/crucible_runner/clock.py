"""The two clocks: one for durations, one for instants. Both in whole milliseconds."""

import os
import time
from typing import Optional

# A kernel clock that cannot be set and that keeps running while the machine is suspended, so that a hibernated machine does not believe
# that its lease stood still. macOS counts sleep in CLOCK_MONOTONIC; Linux only in CLOCK_BOOTTIME.
_CLOCK_ID = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))

# Maximum clock skew between the two sides (core/time/time.ts).
CLOCK_SLACK_MS = 30_000


class Clock:
    """The machine's clocks. Everything that measures time takes one of these, so that tests can substitute another."""

    def mono_ms(self) -> int:
        """Monotonic milliseconds, the same for all processes until the next boot; for durations."""
        if _CLOCK_ID is None:
            return time.monotonic_ns() // 1_000_000
        return time.clock_gettime_ns(_CLOCK_ID) // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC by this machine's clock; for display and for deadlines set by people."""
        return time.time_ns() // 1_000_000


def machine_age_ms(proc: str = "/proc") -> Optional[int]:
    """Returns the age of this machine's first process, which is that of the machine or of the container that it is; None when the system
    does not report it."""
    try:
        with open(proc + "/1/stat") as stat, open(proc + "/uptime") as uptime:
            # The name of the process, in parentheses, may contain spaces; the start time is the 20th field after it (proc(5)).
            ticks = int(stat.read().rpartition(")")[2].split()[19])
            up_seconds = float(uptime.read().split()[0])
        return max(0, int(up_seconds * 1000) - ticks * 1000 // os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return None


def in_words(duration_ms: float) -> str:
    """Formats a duration for people, in its two largest units: `2 h 5 min`, `12 s`, `350 ms`."""
    ms = max(0, int(duration_ms))
    if ms < 1000:
        return "%d ms" % ms
    seconds = ms // 1000
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    return " ".join("%d %s" % part for part in parts[:2] if part[0] > 0)

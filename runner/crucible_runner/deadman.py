"""The last resort against a store that hangs instead of failing: a runner that waits for it would keep an expensive machine."""

import os
import sys
import threading
import time

from .attempt import Attempt
from .process import processes
from .process.container import remove_container
from .process.guard import power_off

# By the end of the time for the result, every step that can be abandoned has been abandoned.
_OVERDUE_MS = 5_000
_LOOK_SECONDS = 0.5


def arm(attempt: Attempt, order_until_ms: int) -> None:
    """Ensures that the process ends when the attempt must be over, whatever it is waiting for; without an order that is after
    `order_until_ms` (monotonic)."""

    def end_ms() -> float:
        if attempt.stop is None:
            return order_until_ms
        drain = attempt.stop.poll()
        return float("inf") if drain is None else drain.window_end_ms + attempt.order["powerOffMs"]

    def run() -> None:
        while attempt.clock.mono_ms() <= end_ms() + _OVERDUE_MS:
            time.sleep(_LOOK_SECONDS)
        print("the runner hangs and is overdue: ending the machine without it", file=sys.stderr)
        sys.stderr.flush()
        do_last_duties(attempt)
        os._exit(1)

    threading.Thread(target=run, name="deadman", daemon=True).start()


def do_last_duties(attempt: Attempt) -> None:
    """Performs the guard's duties, unless the guard is dead."""
    if os.getppid() != attempt.post.guard:
        if attempt.container is not None:
            remove_container(attempt.container)
        if not attempt.is_foreign:
            processes.end_all(attempt.options.attempt_id, [], [])
        power_off(attempt.options.power_off)

"""The last resorts: the duties of a dead guard, and the end of a runner that is overdue."""

import os
import sys
import threading
import time
from typing import Callable, Optional

from .clock import Clock
from .process import processes
from .process.container import remove_container
from .process.guard import Options, Post, power_off

# By the end of the time for the result, every step that can be abandoned has been abandoned.
OVERDUE_MS = 5_000
_LOOK_SECONDS = 0.5
_GUARD_LOOK_SECONDS = 0.1
# A guard that has not ended this process after this time cannot.
_GUARD_MS = 15_000


class LastDuties:
    """The guard's duties after the end of the runner. Runner or timekeeper perform them if the guard is dead."""

    def __init__(self, options: Options, post: Post, tell: Callable[[dict], None]) -> None:
        """`tell` reports facts to the other processes that may have these duties."""
        self._options = options
        self._post = post
        self._tell = tell
        self.container: Optional[str] = None
        self._is_foreign = False
        self._lock = threading.Lock()
        self._is_done = False

    def remember_container(self, name: str) -> None:
        """A container of this name may have to be ended."""
        self.container = name
        self._tell({"container": name})

    def mark_foreign(self) -> None:
        """The attempt belongs to another machine: processes under its name must not be ended here."""
        self._is_foreign = True
        self._tell({"foreign": True})

    def do(self, is_guard_stuck: bool = False) -> None:
        """Performs them once, unless the guard lives and is not stuck."""
        with self._lock:
            is_guard_stuck = is_guard_stuck or processes.is_stopped(self._post.guard)
            if self._is_done or not (is_guard_stuck or os.getppid() != self._post.guard):
                return
            if self.container is not None:
                remove_container(self.container)
            if not self._is_foreign:
                processes.end_all(self._options.machine, [], [])
            power_off(self._options.power_off)
            self._is_done = True

    def take_over(self, clock: Clock) -> None:
        """For a process that the guard is about to end: performs the duties if it does not, since it is dead, dies meanwhile, or is stuck."""
        until_ms = clock.mono_ms() + _GUARD_MS
        while os.getppid() == self._post.guard and clock.mono_ms() < until_ms:
            time.sleep(_GUARD_LOOK_SECONDS)
        self.do(is_guard_stuck=True)


class Deadman:
    """Ends the runner when the attempt must be over, even while a thread waits for something that never comes. The timekeeper does so later,
    for a runner whose threads do not run."""

    def __init__(self, clock: Clock, duties: LastDuties, order_until_ms: float) -> None:
        """`order_until_ms` (monotonic) limits a runner without an order."""
        self._clock = clock
        self._duties = duties
        self._end_ms: Callable[[], float] = lambda: order_until_ms
        threading.Thread(target=self._run, name="deadman", daemon=True).start()

    def follow(self, end_ms: Callable[[], float]) -> None:
        """From now on the attempt's own end counts (monotonic)."""
        self._end_ms = end_ms

    def _run(self) -> None:
        while self._clock.mono_ms() <= self._end_ms() + OVERDUE_MS:
            time.sleep(_LOOK_SECONDS)
        print("the runner hangs and is overdue: ending the machine", file=sys.stderr)
        sys.stderr.flush()
        self._duties.do()
        os._exit(1)

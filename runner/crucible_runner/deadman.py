"""The last resort against a store that hangs instead of failing: a runner that waits for it would keep an expensive machine."""

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
_OVERDUE_MS = 5_000
_LOOK_SECONDS = 0.5


class LastDuties:
    """The guard's duties after the end of the runner. The runner performs them if the guard is dead."""

    def __init__(self, options: Options, post: Post) -> None:
        self._options = options
        self._post = post
        self._container: Optional[str] = None
        self._is_foreign = False

    def remember_container(self, name: str) -> None:
        """A container of this name may have to be ended."""
        self._container = name
        self._post.tell({"container": name})

    def mark_foreign(self) -> None:
        """The attempt belongs to another machine: processes under its name must not be ended here."""
        self._is_foreign = True
        self._post.tell({"foreign": True})

    def do(self) -> None:
        if os.getppid() != self._post.guard:
            if self._container is not None:
                remove_container(self._container)
            if not self._is_foreign:
                processes.end_all(self._options.attempt_id, [], [])
            power_off(self._options.power_off)


class Deadman:
    """Ends the process when the attempt must be over, even while a thread waits for something that never comes."""

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
        while self._clock.mono_ms() <= self._end_ms() + _OVERDUE_MS:
            time.sleep(_LOOK_SECONDS)
        print("the runner hangs and is overdue: ending the machine", file=sys.stderr)
        sys.stderr.flush()
        self._duties.do()
        os._exit(1)

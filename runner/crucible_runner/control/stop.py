"""Decides whether the attempt must stop, why, and by what time. Pure except for its lock: clocks are arguments."""

import threading
from typing import Callable, List, NamedTuple, Optional, Tuple

from ..clock import CLOCK_SLACK_MS, Clock
from ..dates import Dates, WrittenDate
from .lease import Lease
from .limits import Limits

# The workload does not get the whole window of a provider's notice: the result must be uploaded before power-off. A tenth is reserved,
# because a test notice may be only seconds long, but never more than this.
_RESULT_AFTER_NOTICE_MS = 1000
_UPLOAD_MARGIN_MS = 500
# A stop that is known in advance begins early enough for a workload that needs as long to save as its checkpoint needs to upload, plus the
# time reserved for that upload.
_UPLOADS_BEFORE_EXPIRY = 3


class Drain(NamedTuple):
    """A drain that has begun. Instants are monotonic."""

    reason: str
    began_at_ms: int
    window_end_ms: int
    """After this time only the log and the result are uploaded."""

    def kill_at_ms(self, upload_ms: int) -> int:
        """Returns when the workload must be dead, so that the newest checkpoint can still be uploaded if the last one took `upload_ms`, 0
        without any. Upload times vary: the reserve is half as much again plus half a second, and at most half of the window, because a
        workload that cannot save leaves nothing to upload."""
        window_ms = self.window_end_ms - self.began_at_ms
        kept_ms = upload_ms + upload_ms // 2 + _UPLOAD_MARGIN_MS if upload_ms > 0 else 0
        return self.window_end_ms - min(kept_ms, window_ms // 2)


class Stop:
    """Collects the reasons to stop. The first one begins the drain; later ones can only shorten it."""

    def __init__(
        self,
        clock: Clock,
        order: dict,
        limits: Limits,
        lease: Lease,
        dates: Dates,
        drain_stored_here: Callable[[], Optional[Tuple[str, int]]] = lambda: None,
        upload_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`drain_stored_here` returns the reason and the window of a drain order stored on this machine, which explains a signal.
        `upload_ms` returns the duration of the last checkpoint upload."""
        self._clock = clock
        self._drain_ms: int = order["drainMs"]
        self._power_off_ms: int = order["powerOffMs"]
        self._limits = limits
        self._lease = lease
        self._lock = threading.Lock()
        self._dates = dates
        usable_until_ms: Optional[int] = order.get("usableUntilMs")
        self._usable_until = None if usable_until_ms is None else dates.read(usable_until_ms)
        self._run_until_ms: Optional[int] = None
        self._drain_stored_here = drain_stored_here
        self._upload_ms = upload_ms
        self._asked: Optional[Tuple[str, int]] = None
        self._told_here: Optional[Tuple[str, int]] = None
        self._notice: Optional[WrittenDate] = None
        self._noticed_end_ms: Optional[int] = None
        self._drain: Optional[Drain] = None
        self._is_signalled = False
        self.no_notice_at_ms: Optional[int] = None
        """Wall clock of the last poll that found no notice of the provider; None without a notice source."""

    def on_document(self, reason: str, window_ms: int) -> None:
        """Applies `drain.json`, or one of `drains/`: the first reason stays, and the window that ends first."""
        with self._lock:
            self._ask(reason, self._clock.mono_ms() + min(self._drain_ms, window_ms))

    def _ask(self, reason: str, end_ms: int) -> None:
        if self._asked is None:
            self._asked = (reason, end_ms)
        else:
            self._asked = (self._asked[0], min(self._asked[1], end_ms))

    def on_unknown_document(self) -> None:
        """`drain.json` exists, but is unreadable."""
        self.on_document("superseded", self._drain_ms)

    def on_notice(self, terminate_at_ms: int) -> None:
        """The provider announces the end of the machine (wall clock)."""
        with self._lock:
            if self._notice is not None and self._notice.at_ms == terminate_at_ms:
                return
            self._notice = self._dates.read(terminate_at_ms)
            left_ms = max(0, self._notice.mono_ms() - self._clock.mono_ms())
            self._interrupt(left_ms - min(_RESULT_AFTER_NOTICE_MS, left_ms // 10))

    def on_usable_until(self, at_ms: int) -> None:
        """The machine's reservation ends at another time than the order says (wall clock)."""
        with self._lock:
            self._run_until_ms = None
            if self._usable_until is None or self._usable_until.at_ms != at_ms:
                self._usable_until = self._dates.read(at_ms)

    def on_run_limit(self, at_ms: int) -> None:
        """The provider's limit on how long a machine runs ends it at this time (monotonic)."""
        with self._lock:
            known = self._run_until_ms
            self._run_until_ms = at_ms if known is None else min(known, at_ms)

    def _expires_at_ms(self) -> Optional[int]:
        """Returns when the machine is taken or its limit is reached (monotonic); None without such an end."""
        ends = [] if self._usable_until is None else [self._usable_until.mono_ms()]
        return min(ends + ([] if self._run_until_ms is None else [self._run_until_ms]), default=None)

    def on_no_notice(self, asked_at_ms: int) -> None:
        """The provider announced nothing when asked at this time (wall clock)."""
        if self._noticed_end_ms is None:
            self.no_notice_at_ms = asked_at_ms

    def on_signal(self) -> None:
        """The runner got a signal to end: the machine is being shut down. Takes no lock, because it runs in a signal handler."""
        self._is_signalled = True

    def _interrupt(self, usable_ms: int) -> None:
        end_ms = self._clock.mono_ms() + min(self._drain_ms, usable_ms)
        if self._noticed_end_ms is None or end_ms < self._noticed_end_ms:
            self._noticed_end_ms = end_ms

    def is_draining(self) -> bool:
        with self._lock:
            return self._drain is not None

    def poll(self) -> Optional[Drain]:
        """Returns the current drain, or None while no reason exists."""
        now_ms = self._clock.mono_ms()
        with self._lock:
            if self._is_signalled:
                self._is_signalled = False
                self._obey_signal(now_ms)
            reasons = self._reasons(now_ms)
            if not reasons and self._drain is None:
                return None
            ends = [end_ms for _, end_ms in reasons]
            if self._drain is None:
                reason, began_at_ms = reasons[0][0], now_ms
            else:
                reason, began_at_ms = self._drain.reason, self._drain.began_at_ms
                ends.append(self._drain.window_end_ms)
            end_ms = max(began_at_ms, min(ends))
            self._drain = Drain(reason, began_at_ms, end_ms)
            return self._drain

    def _obey_signal(self, now_ms: int) -> None:
        told = self._drain_stored_here()
        if told is None or told == self._told_here:
            self._interrupt(self._drain_ms)
        else:
            self._told_here = told
            self._ask(told[0], now_ms + min(self._drain_ms, told[1]))

    def _reasons(self, now_ms: int) -> List[Tuple[str, int]]:
        """Returns every reason in force with the end of its window, in order of rank."""
        reasons = []
        if self._asked is not None:
            reasons.append(self._asked)
        if self._noticed_end_ms is not None:
            reasons.append(("interrupted", self._noticed_end_ms))
        hard_stop = self._limits.hard_stop()
        if hard_stop is not None:
            end_ms = hard_stop.at_ms - self._power_off_ms
            if self._drain is not None or now_ms >= end_ms - self._drain_ms:
                reasons.append((hard_stop.reason, end_ms))
        expires_at_ms = self._expires_at_ms()
        if expires_at_ms is not None:
            end_ms = expires_at_ms - CLOCK_SLACK_MS - self._power_off_ms
            window_ms = max(self._drain_ms, _UPLOADS_BEFORE_EXPIRY * self._upload_ms())
            if self._drain is not None or now_ms >= end_ms - window_ms:
                reasons.append(("expired", end_ms))
        if now_ms >= self._lease.lapses_at_ms:
            reasons.append(("lease", self._lease.lapses_at_ms + self._drain_ms))
        return reasons

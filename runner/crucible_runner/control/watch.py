"""Polls the documents of the control plane and the notices of the provider."""

import threading
from typing import Callable, NamedTuple, Optional

from ..clock import Clock
from ..documents import DRAIN, LEASE, LIMITS, parse
from ..keys import Keys
from ..notices import Poll
from ..shapes import DocumentError, Shape
from ..store.base import Store
from ..store.retry import Remark, Trouble
from .lease import Lease
from .limits import Limits, Spent
from .stop import Stop

_LOOK_SECONDS_MAX = 5.0
# While the machine stops, a shorter window may arrive whose seconds count.
_DRAINING_LOOK_SECONDS_MAX = 1.0
_NOTICE_LOOK_SECONDS = 1.0
# Before the first look has succeeded, the command is not started.
_FIRST_LOOK_SECONDS = 0.25
# AWS recommends polling non-urgent metadata every five seconds.
_POLLS_PER_HINT = 5


class Numbered(NamedTuple):
    """A document whose name is its number."""

    seq: int
    key: str


class Watch:
    """Polls `drain.json` with `drains/`, `lease.json` and `limits/`."""

    def __init__(self, store: Store, keys: Keys, remark: Remark, use_grant: Callable[[dict], None]) -> None:
        """`use_grant` uses the sealed credentials of a lease. It raises `ValueError` or `OSError` with the reason on failure."""
        self._store = store
        self._keys = keys
        self._remark = remark
        self._complaint = ""
        self._drain_seq = 1
        self._grant: Optional[dict] = None
        self._use_grant = use_grant

    def begin(self, stop: Stop, lease: Lease, limits: Limits, moved: Callable[[], None]) -> None:
        """`moved` is called whenever the lease is extended, the limits change, or a new spend report arrives."""
        self._stop = stop
        self._lease = lease
        self._limits = limits
        self._moved = moved

    def start(self, beat_ms: int, clock: Clock, on_look: Callable[[], None]) -> None:
        """Reads them at once, then repeatedly. `on_look` is called after each time that all were read."""
        pause = threading.Event()
        trouble = Trouble("reading the control plane's documents", self._remark, clock)

        def run() -> None:
            has_looked = False
            while True:
                try:
                    self.poll()
                    trouble.passed()
                    has_looked = True
                    on_look()
                except Exception as error:  # whatever the error is: the documents must be read again
                    trouble.happened(error)
                most = _DRAINING_LOOK_SECONDS_MAX if self._stop.is_draining() else _LOOK_SECONDS_MAX
                pause.wait(min(beat_ms / 1000, most) if has_looked else _FIRST_LOOK_SECONDS)

        threading.Thread(target=run, name="documents", daemon=True).start()

    def poll(self) -> None:
        """Reads all of them once."""
        self._read_drain()
        lease = self._read(self._keys.lease, LEASE)
        if lease is not None:
            before_ms = self._lease.lapses_at_ms
            is_longer = self._lease.renew(lease) and self._lease.lapses_at_ms > before_ms
            if self._learn(lease) or is_longer:
                self._moved()
            if lease.get("usableUntilMs") is not None:
                self._stop.on_usable_until(lease["usableUntilMs"])
            self._take_grant(lease.get("grant"))
        newest = self._newest_after(self._limits.seq, self._keys.limits)
        if newest is not None:
            limits = self._read(newest.key, LIMITS)
            if limits is not None and self._limits.obey(limits):
                self._moved()
                self._remark("obeying limits %d" % limits["seq"])

    def _newest_after(self, seq: int, folder: str) -> Optional[Numbered]:
        """Returns the document with the highest number in a folder, if that is higher than `seq`."""
        key = max(self._store.list(folder), default="")
        number = key[len(folder) : -len(".json")] if key.endswith(".json") else ""
        return Numbered(int(number), key) if number.isdigit() and int(number) > seq else None

    def _learn(self, lease: dict) -> bool:
        """Records the attempt's cost at the time of the answered beat."""
        sent_at_ms = self._lease.sent_at_ms(lease["answersBeat"])
        if sent_at_ms is None or "spentMicroUsd" not in lease:
            return False
        return self._limits.learn(Spent(sent_at_ms, lease["spentMicroUsd"]))

    def _take_grant(self, sealed: Optional[dict]) -> None:
        # The lease may answer a beat of an earlier runner; its grant is equally valid.
        if sealed is None or sealed == self._grant:
            return
        self._grant = sealed
        try:
            self._use_grant(sealed)
        except (ValueError, OSError) as error:
            self._complain("the grant in lease.json cannot be used: %s" % error)

    def _read_drain(self) -> None:
        body = self._store.get(self._keys.drain)
        if body is None:
            return
        try:
            drain = parse(DRAIN, body)
            self._stop.on_document(drain["reason"], drain["windowMs"])
        except DocumentError as error:
            # Even an unreadable document is a request to stop; a later version may use unknown reasons.
            self._complain("drain.json is unreadable, stopping anyway: %s" % error)
            self._stop.on_unknown_document()
        self._read_shorter_drain()

    def _read_shorter_drain(self) -> None:
        newest = self._newest_after(self._drain_seq, self._keys.shorter_drains)
        if newest is None:
            return
        drain = self._read(newest.key, DRAIN)
        self._drain_seq = newest.seq
        if drain is not None:
            self._stop.on_document(drain["reason"], drain["windowMs"])
            self._remark("asked to stop earlier, within %.1f s" % (drain["windowMs"] / 1000))

    def _read(self, key: str, shape: Shape) -> Optional[dict]:
        body = self._store.get(key)
        if body is None:
            return None
        try:
            return parse(shape, body)
        except DocumentError as error:
            self._complain("%s is invalid and ignored: %s" % (key, error))
            return None

    def _complain(self, words: str) -> None:
        if words != self._complaint:
            self._complaint = words
            self._remark(words)


class Hint(NamedTuple):
    """The provider's source for rebalance recommendations, and the callback that receives one, once."""

    poll: Poll
    heard: Callable[[int], None]


def watch_notice(poll: Poll, stop: Stop, remark: Remark, clock: Clock, hint: Optional[Hint] = None) -> None:
    """A thread that asks the provider's notice source once a second, and its hint source less often."""
    pause = threading.Event()

    def run() -> None:
        complaint, polls, left = "", 0, hint
        while True:
            try:
                asked_at_ms = clock.wall_ms()
                terminate_at_ms = poll()
                if terminate_at_ms is not None:
                    stop.on_notice(terminate_at_ms)
                else:
                    stop.on_no_notice(asked_at_ms)
                if left is not None and polls % _POLLS_PER_HINT == 0:
                    since_ms = left.poll()
                    if since_ms is not None:
                        left.heard(since_ms)
                        left = None
                polls += 1
            except OSError as error:
                if str(error) != complaint:
                    complaint = str(error)
                    remark(complaint)
            pause.wait(_NOTICE_LOOK_SECONDS)

    threading.Thread(target=run, name="notice", daemon=True).start()

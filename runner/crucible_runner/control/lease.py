"""The right to continue, and when it ends. Pure: instants on the runner's monotonic clock are arguments."""

import threading
from collections import OrderedDict
from typing import Optional

# A renewal answers a recent beat; a renewal that is more than this many beats late is ignored.
_BEATS_KEPT = 1000


class Lease:
    """The runner's lease. It lapses at `lapses_at_ms` (monotonic) unless it is renewed earlier."""

    def __init__(self, lapses_at_ms: int) -> None:
        self.lapses_at_ms = lapses_at_ms
        self.seq = 0
        self._sent: "OrderedDict[int, int]" = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, beat: int, at_ms: int) -> None:
        """Records the moment just before a beat was sent."""
        with self._lock:
            self._sent[beat] = at_ms
            while len(self._sent) > _BEATS_KEPT:
                self._sent.popitem(last=False)

    def sent_at_ms(self, beat: int) -> Optional[int]:
        """Returns when a beat was sent; None for a beat that was never sent or was sent long ago."""
        with self._lock:
            return self._sent.get(beat)

    def renew(self, document: dict) -> bool:
        """Applies `lease.json`. Returns False when it answers a beat that was never sent, or a very old one."""
        with self._lock:
            sent_at_ms = self._sent.get(document["answersBeat"])
            if sent_at_ms is None:
                return False
            self.seq = max(self.seq, document["seq"])
            self.lapses_at_ms = max(self.lapses_at_ms, sent_at_ms + document["ttlMs"])
            return True

"""The right to go on, and when it ends. Pure: instants on the runner's monotonic clock come from outside."""

import threading
from collections import OrderedDict
from typing import Optional

# A renewal answers a recent beat; more than this many beats later it is too old to mean anything.
_BEATS_KEPT = 1000


class Lease:
    """The runner's lease. It lapses at `lapses_at_ms` (monotonic) unless it is renewed before."""

    def __init__(self, lapses_at_ms: int) -> None:
        self.lapses_at_ms = lapses_at_ms
        self.seq = 0
        self._sent: "OrderedDict[int, int]" = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, beat: int, at_ms: int) -> None:
        """Notes the moment just before a beat was sent."""
        with self._lock:
            self._sent[beat] = at_ms
            while len(self._sent) > _BEATS_KEPT:
                self._sent.popitem(last=False)

    def sent_at_ms(self, beat: int) -> Optional[int]:
        """When a beat was sent; None of one that never was, or long ago."""
        with self._lock:
            return self._sent.get(beat)

    def renew(self, document: dict) -> bool:
        """Obeys `lease.json`. False when it answers a beat that was never sent, or one of long ago."""
        with self._lock:
            sent_at_ms = self._sent.get(document["answersBeat"])
            if sent_at_ms is None:
                return False
            self.seq = max(self.seq, document["seq"])
            self.lapses_at_ms = max(self.lapses_at_ms, sent_at_ms + document["ttlMs"])
            return True

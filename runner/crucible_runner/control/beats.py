"""Reports periodically that the runner is alive."""

import threading
from typing import Callable

from ..clock import Clock
from ..documents import BEAT, dump, parse
from ..keys import Keys
from ..shapes import DocumentError
from ..store.base import Store
from ..store.retry import Trouble
from .lease import Lease


class Beats:
    """A thread of the timekeeper that puts `beat.json`. `facts` returns all its fields except `seq`."""

    def __init__(self, store: Store, keys: Keys, lease: Lease, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._lease = lease
        self._clock = clock
        self._seq = 0
        self._is_due = threading.Event()
        self._is_ended = False
        self._on_end: Callable[[], None] = lambda: None

    def go_on_after(self, seq: int) -> None:
        """Continues the numbering of an earlier runner, so that a renewal of that runner's lease does not count as a renewal of this one."""
        self._seq = seq

    def start(self, every_ms: int, facts: Callable[[], dict], trouble: Trouble) -> None:
        def run() -> None:
            while not self._is_ended:
                self._is_due.clear()
                try:
                    self._send(facts())
                    trouble.passed()
                except Exception as error:  # whatever the error is: without beats the lease lapses
                    trouble.happened(error)
                self._is_due.wait(every_ms / 1000)
            self._on_end()

        threading.Thread(target=run, name="beats", daemon=True).start()

    def send_soon(self) -> None:
        """Requests an early beat after a change that other parties wait for."""
        self._is_due.set()

    def end(self, on_end: Callable[[], None]) -> None:
        """Sends no more beats. `on_end` is called when none is under way either."""
        self._on_end = on_end
        self._is_ended = True
        self._is_due.set()

    def _send(self, facts: dict) -> None:
        self._seq += 1
        # Recorded before sending, whether or not the beat arrives: the lease of the answer counts from this moment at the latest.
        self._lease.sent(self._seq, self._clock.mono_ms())
        self._store.put(self._keys.beat, dump(dict(facts, seq=self._seq)))


def seq_of(beat: bytes) -> int:
    """Returns the number of a beat; 0 for one that cannot be read."""
    try:
        return parse(BEAT, beat)["seq"]
    except DocumentError:
        return 0

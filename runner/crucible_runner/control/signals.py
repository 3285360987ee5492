"""The signals that ask the runner to end."""

import signal
from typing import Callable, List


class Signals:
    """Remembers a signal that arrives before any subscription."""

    def __init__(self) -> None:
        self.is_received = False
        self._subscribers: List[Callable[[], None]] = []

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._receive)
        signal.signal(signal.SIGINT, self._receive)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def subscribe(self, on_signal: Callable[[], None]) -> None:
        """`on_signal` runs in a signal handler and must take no lock."""
        self._subscribers.append(on_signal)
        if self.is_received:
            on_signal()

    def _receive(self, *_: object) -> None:
        self.is_received = True
        for on_signal in self._subscribers:
            on_signal()

"""The runner's side of the connection to its timekeeper."""

import os
import sys
import threading
from typing import Callable, Optional, Tuple

from .control.memory import Memory
from .control.stop import Drain
from .process.guard import Post
from .store.retry import GaveUp

_LOOK_SECONDS = 0.05
# Facts are sent at least this often, so that a beat is never older than this by its content.
_FACTS_SECONDS_MAX = 1.0
_BEGIN_SECONDS = 60.0
# A beat that is under way may delay the result by this long.
_LAST_BEAT_SECONDS = 1.0


class Timekeeping:
    """What the timekeeper has told, and the facts that it needs. Instants are monotonic and the same in both processes."""

    def __init__(self, post: Post, remark: Callable[[str], None], on_end: Callable[[], None]) -> None:
        """`on_end` is called when the timekeeper has ended."""
        self._line = post.line
        self._remark = remark
        self._on_end = on_end
        self._lock = threading.Lock()
        self._drain: Optional[Drain] = None
        self._end_ms: Optional[int] = None
        self.no_notice_at_ms: Optional[int] = None
        """Wall clock of the last poll that found no notice of the provider; None without a notice source."""
        self._has_looked = False
        self._refusal: Optional[Tuple[int, str]] = None
        self._has_answered = threading.Event()
        self._has_ended_beats = threading.Event()
        self._are_facts_due = threading.Event()
        self._is_soon = False
        self._use_grant: Callable[[dict], None] = lambda _: None
        self._on_recommendation: Callable[[int], None] = lambda _: None

    def begin(self, order: dict, memory: Memory, use_grant: Callable[[dict], None]) -> None:
        """Hands over the order, and when the attempt began here. `use_grant` uses sealed credentials of a lease. Raises `OSError` when the attempt cannot begin."""
        self._use_grant = use_grant
        threading.Thread(target=self._receive, name="timekeeper", daemon=True).start()
        started = [memory.started_ms, memory.started_wall_ms]
        self._send({"begin": {"order": order, "runner": os.getpid(), "started": started}})
        if not self._has_answered.wait(_BEGIN_SECONDS):
            raise OSError(0, "the timekeeper does not answer")
        if self._refusal is not None:
            number, words = self._refusal
            raise OSError(number, os.strerror(number) if number else words)

    def start(self, every_ms: int, earlier_seq: int, facts: Callable[[], dict], upload_ms: Callable[[], int]) -> None:
        """Starts beats, the watch of the control plane's documents and that of notices. `facts` returns a beat's fields except those that
        the timekeeper knows; `earlier_seq` is the number of the newest beat of an earlier runner."""
        self._send({"start": {"facts": facts(), "earlierSeq": earlier_seq}})

        def run() -> None:
            while True:
                self._are_facts_due.wait(min(every_ms / 1000, _FACTS_SECONDS_MAX))
                self._are_facts_due.clear()
                is_soon, self._is_soon = self._is_soon, False
                try:
                    self._send({"facts": {"facts": facts(), "uploadMs": upload_ms(), "isSoon": is_soon}})
                except Exception as error:  # whatever the error is: the beats say how old their facts are
                    print("the facts of a beat cannot be read: %s" % error, file=sys.stderr, flush=True)

        threading.Thread(target=run, name="facts", daemon=True).start()

    def send_soon(self) -> None:
        """Requests an early beat after a change that other parties wait for."""
        self._is_soon = True
        self._are_facts_due.set()

    def end_beats(self) -> None:
        """No beat is sent after this."""
        self._send({"end": True})
        self._has_ended_beats.wait(_LAST_BEAT_SECONDS)

    def on_recommendation(self, heard: Callable[[int], None]) -> None:
        """`heard` receives the time of a rebalance recommendation, once."""
        self._on_recommendation = heard

    def ask_to_stop(self, reason: str, window_ms: int) -> None:
        self._send({"drain": {"reason": reason, "windowMs": window_ms}})

    def poll(self) -> Optional[Drain]:
        """Returns the current drain, or None while no reason to stop exists."""
        with self._lock:
            return self._drain

    def end_ms(self) -> float:
        """Returns when the machine must be off at the latest."""
        with self._lock:
            return float("inf") if self._end_ms is None else self._end_ms

    def wait_for_first_look(self, is_hopeless: Callable[[], bool]) -> None:
        """Waits until the control plane's documents were read once. Raises `GaveUp` when `is_hopeless` comes first."""
        while not self._has_looked:
            if is_hopeless():
                raise GaveUp("drain.json could not be read in time")
            threading.Event().wait(_LOOK_SECONDS)

    def _send(self, note: dict) -> None:
        try:
            self._line.send(note)
        except OSError:
            pass  # The timekeeper has ended; the receiver ends this process.

    def _receive(self) -> None:
        while True:
            notes = self._line.receive()
            if notes is None:
                return self._on_end()
            for note in notes:
                for name, value in note.items():
                    self._hear(name, value)

    def _hear(self, name: str, value) -> None:
        if name == "state":
            self._learn(value)
            self._send({"here": True})
        elif name == "remark":
            self._remark(value)
        elif name == "grant":
            self._take_grant(value)
        elif name == "recommendedAtMs":
            threading.Thread(target=lambda: self._on_recommendation(value), name="recommendation", daemon=True).start()
        elif name == "ended":
            self._has_ended_beats.set()
        else:
            self._refusal = tuple(value) if name == "refused" else None
            self._has_answered.set()

    def _learn(self, state: dict) -> None:
        with self._lock:
            self._drain = None if state["drain"] is None else Drain(*state["drain"])
            self._end_ms = state["endMs"]
            self.no_notice_at_ms = state["noNoticeAtMs"]
            self._has_looked = state["hasLooked"]

    def _take_grant(self, sealed: dict) -> None:
        try:
            self._use_grant(sealed)
        except (ValueError, OSError):
            pass  # The timekeeper has used it, and complains about one that it cannot use.

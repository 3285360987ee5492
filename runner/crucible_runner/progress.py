"""How far the training is: from what the helper writes, else from log lines."""

import math
import os
import re
import threading
from collections import deque
from typing import Deque, List, Optional, Tuple

from .clock import Clock
from .documents import HELPER_PROGRESS, parse
from .paths import read_plain

# Only the newest figure counts; of a flood of lines the last ones are looked at, so that reading costs little.
_LINES_PER_LOOK = 20
# Where a figure would be: searching a long line holds up the whole process.
_BYTES_PER_LINE = 2048

# Steps are remembered for so many changes, to date what was written a moment ago.
_TOLD_KEPT = 4096

_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_OF_TOTAL = rb"(\d{1,12})(?![\d.])(?:\s*(?:/|of)\s*(\d{1,12})(?![\d.]))?"
_STEP = re.compile(
    rb"\b(?:global[ _])?(?:steps?|iter(?:ation)?)\b['\"]?[\s:=#\[]*" + _OF_TOTAL, re.IGNORECASE
)
_BAR = re.compile(rb"(?<![\d./])(\d{1,12})/(\d{1,12}) \[")
_EPOCH = re.compile(rb"\bepochs?\b['\"]?[\s:=#\[]*" + _OF_TOTAL, re.IGNORECASE)
_LOSS = re.compile(rb"\b(?:train(?:ing)?[ _])?loss['\"]?(?:\s*[:=])?\s*(" + _NUMBER + rb")", re.IGNORECASE)
# A figure of a better source is not overwritten by one of a worse: bars count anything, epochs are coarse.
_RANKS = ((_EPOCH, 1), (_BAR, 2), (_STEP, 3))
_HELPER_RANK = 4
# From here on a step is surely a step of the training, so that the last one means that the training is done.
_SURE_RANK = 3

_WORTH_A_LOOK = re.compile(rb"step|iter|epoch|loss|/\d+ \[", re.IGNORECASE)


class Progress:
    """The newest progress, from whichever source spoke last; once the helper has spoken it alone counts."""

    def __init__(self, helper_path: str, clock: Clock) -> None:
        self._helper_path = helper_path
        self._clock = clock
        self._lock = threading.Lock()
        self._helper_stamp: Optional[tuple] = None
        self._rank = 0
        self._step: Optional[int] = None
        self._total: Optional[int] = None
        self._loss: Optional[float] = None
        self._at_ms = 0
        self._restored_step: Optional[int] = None
        self._told: Deque[Tuple[int, int]] = deque(maxlen=_TOLD_KEPT)
        """Instants (wall clock) and the steps that were told then."""
        self.first_step_at_ms: Optional[int] = None
        """Wall clock of when the first step of this attempt's own was seen; None before."""

    def begin(self, restored_step: int) -> None:
        """The command is about to start: from now on a step beyond the restored one (0 for none) is its own."""
        with self._lock:
            self._restored_step = restored_step

    def _note_step(self) -> None:
        begun, step = self._restored_step, self._step
        if step is not None and (not self._told or self._told[-1][1] != step):
            self._told.append((self._at_ms, step))
        if self.first_step_at_ms is None and begun is not None and step is not None and step > begun:
            self.first_step_at_ms = self._at_ms

    def see(self, lines: List[bytes]) -> None:
        """Looks for progress in log lines, oldest first."""
        if self._rank == _HELPER_RANK:
            return
        for whole in lines[-_LINES_PER_LOOK:]:
            line = whole[:_BYTES_PER_LINE]
            if _WORTH_A_LOOK.search(line) is not None:
                self._see_line(line)

    def _see_line(self, line: bytes) -> None:
        loss = _LOSS.search(line)
        with self._lock:
            for expression, rank in _RANKS:
                match = expression.search(line) if rank >= self._rank else None
                if match is None:
                    continue
                if match.group(2) is not None or rank > self._rank:
                    self._total = int(match.group(2)) if match.group(2) is not None else None
                self._rank = rank
                self._step = int(match.group(1))
                self._at_ms = self._clock.wall_ms()
                self._note_step()
            if loss is not None and math.isfinite(float(loss.group(1))):
                self._loss = float(loss.group(1))
                self._at_ms = self._clock.wall_ms()

    def _read_helper(self) -> None:
        try:
            status = os.stat(self._helper_path)
            stamp = (status.st_ino, status.st_mtime_ns)
            if stamp == self._helper_stamp:
                return
            told = parse(HELPER_PROGRESS, read_plain(self._helper_path)[0])
        except (OSError, ValueError):
            return  # not there, or not whole: the next look tells
        with self._lock:
            self._helper_stamp = stamp
            self._rank = _HELPER_RANK
            self._step = told["step"]
            self._total = told.get("total")
            self._loss = told.get("loss")
            self._at_ms = self._clock.wall_ms()
            self._note_step()

    def document(self) -> Optional[dict]:
        """As it stands in beats and results; None while nothing is known."""
        self._read_helper()
        with self._lock:
            if self._step is None and self._loss is None:
                return None
            return {"step": self._step, "stepsTotal": self._total, "loss": self._loss, "atMs": self._at_ms}

    def step(self) -> Optional[int]:
        self._read_helper()
        return self._step

    def step_at(self, wall_ms: int) -> Optional[int]:
        """The newest step that had been told at an instant; None where nothing had been, or too long ago to remember."""
        self._read_helper()
        with self._lock:
            return next((step for at_ms, step in reversed(self._told) if at_ms <= wall_ms), None)

    def is_done(self) -> bool:
        """True when the last step of a known number of steps is done; bars and epochs are never taken for that."""
        self._read_helper()
        with self._lock:
            return (
                self._rank >= _SURE_RANK
                and self._step is not None
                and self._total is not None
                and self._step >= self._total
            )

"""The progress of an attempt, from the best available source."""

import os
import threading
from collections import deque
from typing import Deque, Iterable, List, NamedTuple, Optional, Tuple

from ..clock import Clock
from ..documents import HELPER_PROGRESS, parse
from ..paths import read_plain
from .reading import read
from .tables import Tables
from .tracker import Progress as Told
from .tracker import Tracker

# Number of lines that one reading parses: only the newest figure counts, which keeps reading cheap.
_LINES_PER_LOOK = 10
_FLOOD_LINES = 100
_LINES_OF_FLOOD = 3
# Beginnings of epochs and of tables, for which all lines are searched because later lines are interpreted with them.
_HEADS = (b"Iter", b"iter", b"Step", b"step", b"E ")
_HEADS_PER_LOOK = 2


# Steps are remembered for this many changes, to date recent writes.
_STEPS_KEPT = 4096


class _Step(NamedTuple):
    """A reported step; times are of the wall clock."""

    at_ms: int
    step: int
    until_ms: Optional[int] = None
    """The helper's file still had this step at this time; its values between two reads are unknown. None for printed steps."""


class Progress:
    """The newest progress; once the helper has reported, only its reports count."""

    def __init__(self, helper_path: str, clock: Clock) -> None:
        self._helper_path = helper_path
        self._clock = clock
        self._lock = threading.Lock()
        self._helper_stamp: Optional[tuple] = None
        self._is_helped = False
        self._told = Told()
        self._at_ms = 0
        self._tracker = Tracker()
        self._tables = Tables()
        self._restored_step: Optional[int] = None
        self._steps: Deque[_Step] = deque(maxlen=_STEPS_KEPT)
        self._epochs: Deque[Tuple[int, float]] = deque(maxlen=_STEPS_KEPT)
        self.first_step_at_ms: Optional[int] = None
        """Wall clock time of the attempt's own first step; None before it."""
        self.first_step: Optional[int] = None
        """The step that was then seen; None before it, and if the program reports no steps."""

    def begin(self, restored_step: int) -> None:
        """The command is about to start: from now on a step beyond the restored one (0 for none) is its own. Earlier output, from the
        set-up, is not progress."""
        with self._lock:
            self._restored_step = restored_step
            self._tracker = Tracker(restored_step)
            self._tables = Tables()
            if not self._is_helped:
                self._told = Told()

    def _note_step(self, written_ms: Optional[int] = None) -> None:
        """`written_ms` is when the helper wrote it."""
        begun, step = self._restored_step, self._told.step
        if step is not None and (not self._steps or self._steps[-1].step != step):
            told = _Step(self._at_ms, step) if written_ms is None else _Step(written_ms, step, self._at_ms)
            self._steps.append(told)
        if self.first_step_at_ms is not None or begun is None:
            return
        # When no step is known, a growing count of the training is used as its step.
        if step > begun if step is not None else not self._is_helped and self._tracker.has_advanced:
            self.first_step_at_ms = self._at_ms
            self.first_step = step

    def _note_epoch(self) -> None:
        epoch = self._told.epoch
        if epoch is not None and (not self._epochs or self._epochs[-1][1] != epoch):
            self._epochs.append((self._at_ms, epoch))

    def see(self, lines: List[bytes]) -> None:
        """Searches printed output for progress, oldest first: lines, and the versions of a bar."""
        if self._is_helped:
            return
        with self._lock:
            is_seen = False
            for line in _worth_reading(lines):
                reading = self._tables.read(line) or read(line)
                if reading is not None:
                    self._tracker.see(reading)
                    is_seen = True
            if is_seen:
                told = self._tracker.progress
                if told != self._told:
                    self._at_ms = self._clock.wall_ms()
                    self._told = told
                self._note_step()
                self._note_epoch()

    def _read_helper(self) -> None:
        try:
            status = os.stat(self._helper_path)
            stamp = (status.st_ino, status.st_mtime_ns)
            if stamp == self._helper_stamp:
                self._note_unchanged()
                return
            told = parse(HELPER_PROGRESS, read_plain(self._helper_path)[0])
        except (OSError, ValueError):
            return  # the file is absent or incomplete: the next scan reads it
        with self._lock:
            self._helper_stamp = stamp
            self._is_helped = True
            self._told = Told(told["step"], told.get("total"), loss=told.get("loss"))
            self._at_ms = self._clock.wall_ms()
            self._note_step(status.st_mtime_ns // 1_000_000)

    def _note_unchanged(self) -> None:
        with self._lock:
            if self._steps and self._steps[-1].until_ms is not None:
                self._steps[-1] = self._steps[-1]._replace(until_ms=self._clock.wall_ms())

    def document(self) -> Optional[dict]:
        """Returns the progress for beats and results; None while nothing is known."""
        self._read_helper()
        with self._lock:
            told = self._told
            if told == Told():
                return None
            document = {
                "step": told.step,
                "stepsTotal": told.steps_total,
                "loss": told.loss,
                "atMs": self._at_ms,
            }
            more = {
                "epoch": told.epoch,
                "epochsTotal": told.epochs_total,
                "batch": told.batch,
                "batchesTotal": told.batches_total,
                "percent": told.percent,
            }
            document.update((key, value) for key, value in more.items() if value is not None)
            return document

    def step(self) -> Optional[int]:
        """Returns the steps of the whole training; None when none are known for sure."""
        self._read_helper()
        return self._told.step

    def step_at(self, wall_ms: int) -> Optional[int]:
        """Returns the newest step reported at an instant; None when none was reported, or when the instant is too long ago."""
        self._read_helper()
        with self._lock:
            return next((told.step for told in reversed(self._steps) if told.at_ms <= wall_ms), None)

    def epoch_at(self, wall_ms: int) -> Optional[float]:
        """Returns the newest printed epoch at an instant; None when none was printed, or when the instant is too long ago."""
        with self._lock:
            return next((epoch for at_ms, epoch in reversed(self._epochs) if at_ms <= wall_ms), None)

    def certain_step_at(self, wall_ms: int, unsure_ms: int) -> Optional[int]:
        """Like `step_at`, but None when the step is uncertain: another step was reported less than `unsure_ms` later and may have been
        printed before, or the helper may have reported another one that was not read."""
        self._read_helper()
        with self._lock:
            told = next((told for told in reversed(self._steps) if told.at_ms < wall_ms + unsure_ms), None)
        if told is None or told.at_ms > wall_ms or (told.until_ms is not None and told.until_ms < wall_ms):
            return None
        return told.step

    def ms_per_step(self) -> Optional[float]:
        """Returns the recent duration of a step; None if too few were reported."""
        with self._lock:
            if len(self._steps) < 2:
                return None
            first, last = self._steps[0], self._steps[-1]
            return (last.at_ms - first.at_ms) / (last.step - first.step) if last.step > first.step else None

    def is_done(self) -> bool:
        """True when the last step of a known number of steps is done; bars and epochs never count for that."""
        self._read_helper()
        with self._lock:
            if not self._is_helped:
                return self._tracker.is_done
            told = self._told
            return told.step is not None and told.steps_total is not None and told.step >= told.steps_total


def _is_head(line: bytes) -> bool:
    return b"poch" in line or b"EPOCH" in line or line.lstrip().startswith(_HEADS)


def _worth_reading(lines: List[bytes]) -> Iterable[bytes]:
    count = _LINES_PER_LOOK if len(lines) < _FLOOD_LINES else _LINES_OF_FLOOD
    if len(lines) > count:
        early = lines[:-count]
        yield from [line for line in early if _is_head(line)][-_HEADS_PER_LOOK:]
    yield from lines[-count:]

"""Looks at the checkpoint directory again and again, and remembers since when nothing in it has changed."""

import os
import threading
import time
from typing import Dict, FrozenSet, List, NamedTuple, Optional

from .clock import Clock
from .documents import HELPER_SAVED, parse
from .hold import Hold
from .paths import Paths, read_plain
from .progress import Progress
from .retry import Trouble
from .scan import (
    Selection,
    baseline_of,
    newest_change_ns,
    scan,
    scan_declared,
    select,
    select_declared,
    single_file,
)
from .symptoms import is_full

_LOOK_SECONDS_MAX = 1.0
# Looking at ten thousand files takes a good part of a second: this much of the time it may take, the rest is the workload's.
_LOOK_SHARE = 0.1
# A held file that nobody has uploaded after this long makes room for a newer one.
_HOLD_MS = 10_000


class Seen(NamedTuple):
    """A checkpoint as it was at a look."""

    selection: Selection
    since_ms: int
    """The first look (monotonic) that found it as it is."""
    until_ms: int
    """The last look that did."""
    progress_step: Optional[int]
    """The newest step at the first of them."""
    is_doubtful: bool
    """The disk was full then: what could not be written may be missing."""
    is_declared: bool
    """The workload has said that it is complete."""
    directory: str
    """Where its files are."""


class _First(NamedTuple):
    """What was so at the first look that found a checkpoint as it is."""

    at_ms: int
    progress_step: Optional[int]
    is_disk_full: bool


class _Declaration(NamedTuple):
    written_ns: int
    step: int
    path: str


class Looks:
    """What is in the directory now. What was there when `begin` was called is no new checkpoint."""

    def __init__(self, paths: Paths, directory: str, quiet_ms: int, clock: Clock, progress: Progress) -> None:
        self._directory = directory
        self._saved = paths.saved
        self._hold = Hold(paths.held)
        self._quiet_ms = quiet_ms
        self._clock = clock
        self._progress = progress
        self._lock = threading.Lock()
        self._baseline: FrozenSet[tuple] = frozenset()
        self._known: Dict[FrozenSet[tuple], _First] = {}
        self._held_since = _First(0, None, False)
        self._uploaded_since_ms = -1
        self._is_ended = threading.Event()
        self._ended_ms: Optional[int] = None
        self.seen: List[Seen] = []
        """Newest first."""

    def begin(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._baseline = baseline_of(scan(self._directory))
        threading.Thread(target=self._run, name="looks", daemon=True).start()

    def end(self) -> None:
        """The workload has ended: that nothing changes any more says nothing from now on."""
        self._ended_ms = self._clock.mono_ms()
        self._is_ended.set()

    def _run(self) -> None:
        shortest = pause_seconds = min(_LOOK_SECONDS_MAX, self._quiet_ms / 1000) or 0.1
        while not self._is_ended.wait(pause_seconds):
            began = time.monotonic()
            try:
                self.look()
                self._trouble.passed()
            except Exception as error:  # the directory is the workload's and may be anything for a while
                self._trouble.happened(error)
            pause_seconds = max(shortest, (time.monotonic() - began) * (1 / _LOOK_SHARE - 1))

    def look(self) -> List[Seen]:
        """One look. Raises `OSError` when the directory cannot be read."""
        with self._lock:
            declaration = self._newest_declaration()
            if declaration is None:
                selections = select(scan(self._directory), self._baseline)
            else:
                selections = self._declared(declaration)
            now = _First(self._clock.mono_ms(), self._progress.step(), is_full(self._directory))
            self._known = {each.signature: self._known.get(each.signature, now) for each in selections}
            seen = [
                self._seen_as(each, self._known[each.signature], now.at_ms, declaration is not None)
                for each in selections
            ]
            if declaration is None:
                seen += self._held(seen, now)
            self.seen = seen
            return seen

    def is_still(self, seen: Seen) -> bool:
        """Whether its files are still what they were at that look."""
        if seen.directory == self._hold.folder:
            with self._lock:
                return self._hold.selection == seen.selection and self._hold.is_intact()
        looks = [again.selection.signature for again in self.look() if again.directory == seen.directory]
        return seen.selection.signature in looks

    def is_written_since(self, wall_ms: int) -> bool:
        """Whether something of the newest checkpoint was written after that instant."""
        seen = self.look()
        return bool(seen) and newest_change_ns(seen[0].selection) > wall_ms * 1_000_000

    def uploaded(self, seen: Seen) -> None:
        """What is older than this need not be held any more."""
        with self._lock:
            self._uploaded_since_ms = seen.since_ms
            if self._held_since.at_ms <= seen.since_ms:
                self._hold.release()

    def _held(self, seen: List[Seen], now: _First) -> List[Seen]:
        if not self._hold.is_intact() or now.at_ms - self._held_since.at_ms > _HOLD_MS + self._quiet_ms:
            newest = seen[0] if seen else None
            if newest is None or newest.since_ms <= self._uploaded_since_ms:
                self._hold.release()
                return []
            if not self._hold.take(self._directory, newest.selection):
                return []
            self._held_since = now
        if seen and single_file(seen[0].selection) is None:
            # It was the first file of a checkpoint that has more of them.
            self._hold.release()
        held = self._hold.selection
        if held is None or any(held.signature == each.selection.signature for each in seen):
            return []
        as_seen = self._seen_as(held, self._held_since, now.at_ms, False)
        return [as_seen._replace(directory=self._hold.folder)]

    def _seen_as(self, selection: Selection, first: _First, now_ms: int, is_declared: bool) -> Seen:
        is_doubtful = first.is_disk_full and not is_declared
        until_ms = now_ms if self._ended_ms is None else min(now_ms, self._ended_ms)
        return Seen(
            selection, first.at_ms, until_ms, first.progress_step, is_doubtful, is_declared, self._directory
        )

    def _declared(self, declaration: _Declaration) -> List[Selection]:
        entries = scan_declared(self._directory, declaration.path)
        selection = select_declared(entries, declaration.path, declaration.step)
        if selection is None or newest_change_ns(selection) > declaration.written_ns:
            return []  # it is being written anew; the next declaration will tell when that is done
        return [selection]

    def _newest_declaration(self) -> Optional[_Declaration]:
        found: List[_Declaration] = []
        for name in os.listdir(self._saved) if os.path.isdir(self._saved) else []:
            path = os.path.join(self._saved, name)
            try:
                body, status = read_plain(path)
                told = parse(HELPER_SAVED, body)
                found.append(_Declaration(status.st_mtime_ns, told["step"], told["path"]))
            except (OSError, ValueError):
                continue  # not ours, or not whole
        newest = max(found, default=None)
        for declaration in found:
            if declaration != newest:
                self._forget(declaration.step)
        return newest

    def _forget(self, step: int) -> None:
        try:
            os.unlink(os.path.join(self._saved, "%d.json" % step))
        except OSError:
            pass

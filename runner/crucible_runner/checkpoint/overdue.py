"""Warns when no complete checkpoint appears, with the reason, before an interruption loses work."""

import os
import stat
import threading
import time
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..clock import Clock, in_words
from ..store.retry import Remark
from .scanner import Scanner
from .names import is_record, template
from .uploads import Checkpoints

# Number of usual save intervals that may pass without a complete checkpoint.
_INTERVALS = 3
# Used while no interval is known: in multiples of the quiet time (30 minutes for 5 s), and at least three times `checkpoint.every`.
_FIRST_QUIETS = 360
_FIRST_PACES = 3
# A program that has written the same files again for this long is not in its first, long save.
_RESTLESS_MS = 100_000
_RESTLESS_PACES = 1.5
# An obstacle that keeps a save from counting for this many times the quiet time is not transient.
_HINDERED_QUIETS = 20
# A file outside the checkpoint directory that was written this often is the program's saved state.
_OUTSIDE_WRITES = 3
# Used at the end of a program, when no more writes will follow; a single write may have been its result.
_OUTSIDE_WRITES_AT_END = 2
_OUTSIDE_FILES_MAX = 20_000
_OUTSIDE_BYTES_MIN = 1024 * 1024
_LOOK_SHARE = 0.02
_SCAN_SECONDS_MIN = 0.5
_SAVED = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".h5", ".hdf5", ".keras", ".npz", ".pkl", ".pickle", ".joblib")
_SAVED += (".msgpack", ".ubj", ".model", ".cbm", ".distcp", ".tar")
_NOT_OURS = (".git", "node_modules", "__pycache__", "site-packages", "wandb", "mlruns")


_RESTLESS = (
    "No checkpoint is saved: %s is written again and again without a pause of %s, so a copy would mix two saves. Write each checkpoint into a "
    "folder of its own, such as checkpoint-100, and keep the last two. An interruption now costs all work since the last one that was saved."
)

# Members named in the warning about those that are left out.
_LEFT_OUT_NAMED = 3


def left_out_words(left_out: Mapping[str, str]) -> str:
    """Returns sentences about members of the checkpoint directory that cannot be stored."""
    named = sorted(left_out)[:_LEFT_OUT_NAMED]
    words = "; ".join("%s (%s)" % (path, left_out[path]) for path in named)
    more = len(left_out) - len(named)
    return "Left out of the checkpoints: %s%s. The rest is saved." % (words, " and %d more" % more if more else "")


class _Outside(NamedTuple):
    modified_ns: int
    writes: int
    path: str


class Overdue:
    """Beats and results report `warning`; it is None while nothing is wrong."""

    def __init__(self, checkpoints: Checkpoints, scanner: Scanner, directory: str, work: str, clock: Clock) -> None:
        self._checkpoints = checkpoints
        self._scanner = scanner
        self._directory = os.path.realpath(directory)
        self._shown = os.path.relpath(directory, work) if directory.startswith(work + os.sep) else directory
        self._work = work
        self._clock = clock
        self._hindered_since_ms: Optional[int] = None
        self._outside: Dict[str, _Outside] = {}
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._warning: Optional[dict] = None
        self._left_out: Optional[dict] = None

    @property
    def warning(self) -> Optional[dict]:
        """The most serious one."""
        self.look_left_out()
        return self._warning or self._left_out

    def look_left_out(self) -> None:
        """Logs, once, the members of the last scan that cannot be stored."""
        left_out = self._scanner.left_out
        if not left_out:
            self._left_out = None
            return
        text = left_out_words(left_out)
        if self._left_out is None or self._left_out["text"] != text:
            self._left_out = {"kind": "left-out", "text": text, "sinceMs": self._clock.wall_ms()}
            self._remark("warning: %s" % text)

    def begin(self, quiet_ms: int, every_ms: int, remark: Remark) -> None:
        self._quiet_ms = quiet_ms
        self._every_ms = every_ms
        self._remark = remark
        self._began_ms = self._clock.mono_ms()
        self._began_ns = time.time_ns()
        threading.Thread(target=self._run, name="overdue", daemon=True).start()

    def end(self) -> None:
        """The program has ended. A program that is interrupted often may never have run long enough for a warning before."""
        self._is_over.set()
        try:
            with self._lock:
                if self._warning is None and self._has_saved_nothing():
                    self._warn(self._found_outside(_OUTSIDE_WRITES_AT_END))
        except Exception as error:  # the workload owns the folder, which may contain anything
            self._remark("cannot look for checkpoints outside %s: %s" % (self._shown, error))

    def _run(self) -> None:
        pause_seconds = max(_SCAN_SECONDS_MIN, self._quiet_ms / 1000)
        while not self._is_over.wait(pause_seconds):
            began = time.monotonic()
            try:
                self.check()
            except Exception as error:  # the workload owns the folder, which may contain anything
                self._remark("cannot look for checkpoints outside %s: %s" % (self._shown, error))
                return
            pause_seconds = max(_SCAN_SECONDS_MIN, self._quiet_ms / 1000, (time.monotonic() - began) / _LOOK_SHARE)

    def check(self) -> None:
        with self._lock:
            if self._is_over.is_set():
                return
            found = self._find()
            if found is None and self._warning is not None:
                self._remark("a checkpoint was saved; the previous warning is resolved")
                self._warning = None
            self._warn(found)

    def _warn(self, found: Optional[tuple]) -> None:
        if found is None:
            return
        kind, text = found
        if self._warning is None or self._warning["kind"] != kind:
            self._warning = {"kind": kind, "text": text, "sinceMs": self._clock.wall_ms()}
            self._remark("warning: %s" % text)

    def _find(self) -> Optional[tuple]:
        now_ms = self._clock.mono_ms()
        cause = self._hindrance(now_ms)
        if cause is not None:
            return "no-checkpoint", "No checkpoint is saved: %s. See docs/guides/checkpoints.md." % cause
        if self._is_restless(now_ms):
            return "no-checkpoint", _RESTLESS % (self._shown, in_words(self._quiet_ms))
        last_ms = self._checkpoints.complete_at_ms
        found = self._found_outside(_OUTSIDE_WRITES) if self._has_saved_nothing() else None
        if found is not None:
            return found
        interval_ms = self._scanner.interval_ms()
        if interval_ms is not None:
            patience_ms = max(_INTERVALS * max(interval_ms, self._every_ms), _HINDERED_QUIETS * self._quiet_ms)
        else:
            patience_ms = max(_FIRST_QUIETS * self._quiet_ms, _FIRST_PACES * self._every_ms)
        waited_ms = now_ms - (self._began_ms if last_ms is None else last_ms)
        if waited_ms <= patience_ms:
            return None
        newest = self._checkpoints.uploads[-1] if self._checkpoints.uploads else None
        if self._checkpoints.failure:
            cause = "the upload fails: %s" % self._checkpoints.failure
        elif newest is not None and newest.generation is self._scanner.saves.current:
            cause = "the last one (%s) is only provisional: %s" % (newest.checkpoint.name, newest.evidence.text)
        elif newest is None and self._scanner.saves.current is not None:
            cause = "%s is written too often to be quiet for long enough" % self._shown
        else:
            cause = "nothing was written to %s" % self._shown
        since = "since the start, %s ago" if last_ms is None else "for %s"
        return "no-checkpoint", "No complete checkpoint %s: %s. An interruption now costs all work since then." % (
            since % in_words(waited_ms),
            cause,
        )

    def _is_restless(self, now_ms: int) -> bool:
        """Whether files are written all the time, and no part of them could be stored for longer than usual."""
        since_ms, stored_ms = self._scanner.saves.restless_since_ms, self._checkpoints.stored_at_ms
        if since_ms is None or self._checkpoints.saving() is not None:
            return False
        if stored_ms is None:
            return now_ms - since_ms >= _RESTLESS_MS
        return now_ms - max(since_ms, stored_ms) >= max(_RESTLESS_MS, _RESTLESS_PACES * self._every_ms)

    def _has_saved_nothing(self) -> bool:
        is_empty = self._checkpoints.complete_at_ms is None and not self._checkpoints.uploads
        return is_empty and self._scanner.saves.current is None

    def _found_outside(self, writes_min: int) -> Optional[tuple]:
        outside = self._saved_outside(writes_min)
        if outside is None:
            return None
        text = "nothing was written to %s since the start, but ./%s was written %d times"
        told = text % (self._shown, outside.path, outside.writes)
        folder = os.path.dirname(outside.path) or "."
        return "outside", "No checkpoint is saved: %s. Set checkpoint.directory to %s." % (told, folder)

    def _hindrance(self, now_ms: int) -> Optional[str]:
        cause = self._checkpoints.hindrance
        if not cause:
            self._hindered_since_ms = None
            return None
        if self._hindered_since_ms is None:
            self._hindered_since_ms = now_ms
        return cause if now_ms - self._hindered_since_ms >= _HINDERED_QUIETS * self._quiet_ms else None

    def _saved_outside(self, writes_min: int) -> Optional[_Outside]:
        """Returns the file in the working directory that was written most often and so is most likely the program's saved state."""
        for path, modified_ns in self._walk():
            key = template(path)
            seen = self._outside.get(key)
            if seen is None:
                self._outside[key] = _Outside(modified_ns, 1, path)
            elif modified_ns > seen.modified_ns:
                self._outside[key] = _Outside(modified_ns, seen.writes + 1, path)
        often = [seen for seen in self._outside.values() if seen.writes >= writes_min]
        return max(often, key=lambda seen: seen.writes, default=None)

    def _walk(self) -> List[tuple]:
        found: List[tuple] = []
        work = os.path.realpath(self._work)
        looked_at = 0
        # The walk uses no recursion, because folders can be nested more deeply than Python's recursion limit.
        waiting = [""]
        while waiting and looked_at <= _OUTSIDE_FILES_MAX:
            folder = waiting.pop()
            try:
                names = os.listdir(os.path.join(work, folder))
            except OSError:
                continue
            for name in names:
                looked_at += 1
                shown = os.path.join(folder, name)
                path = os.path.join(work, shown)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    if name not in _NOT_OURS and path != self._directory:
                        waiting.append(shown)
                    continue
                is_saved = name.lower().endswith(_SAVED) or status.st_size >= _OUTSIDE_BYTES_MIN
                if is_saved and status.st_mtime_ns > self._began_ns and not is_record(shown):
                    found.append((shown, status.st_mtime_ns))
        return found

"""Recognises files that a program writes again before they are quiet for long enough, and a moment when all of one save are there. Pure."""

from collections import deque
from typing import Deque, Dict, Mapping, Set

from .names import template, unit_of
from .scan import FileStamp

# A file counts as written often after this many changes within this many quiet times.
_CHANGES = 2
_WITHIN_QUIETS = 10
# A file that is not written often has been there for this many quiet times.
_STILL_QUIETS = 2
# The files of one save are written shortly after one another, and the next save begins much later. A mixture of old and new files is the
# reverse: its age is less than this many times the time between its files.
_AGE_FACTOR = 4
# A pause within a save is shorter than the one before the next save. The files must have rested for this share of the longest rest seen,
# and never for more than this share in another order.
_REST_SHARE = 0.5
# The system clock for times of files advances in steps of up to this length.
_TICK_NS = 10_000_000


class Rhythm:
    """Follows the files of the newest checkpoint, without its records, from scan to scan."""

    def __init__(self, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._before: Dict[str, FileStamp] = {}
        """From two scans: a file that is renamed to make room for the next is missing in one."""
        self._last: Dict[str, FileStamp] = {}
        self._moved: Set[FileStamp] = set()
        self._changed_ms: Dict[str, Deque[int]] = {}
        self._rests: Deque[tuple] = deque()
        """When the files were seen (monotonic), how long after their last change, and the name of the oldest file that is written often."""

    def observe(self, files: Mapping[str, FileStamp], now_ms: int, wall_ms: int) -> None:
        now = {_name_of(path): stamp for path, stamp in files.items()}
        known = set(self._before.values())
        changed = {name for name, stamp in now.items() if self._before.get(name, stamp) != stamp}
        self._moved = (self._moved | {now[name] for name in changed if now[name] in known}) & set(now.values())
        for name in changed:
            if now[name] not in known:
                self._changed_ms.setdefault(name, deque(maxlen=_CHANGES)).append(now_ms)
        self._before, self._last = {**self._last, **now}, now
        often = self.often(files, now_ms)
        if often:
            self._rests.append((now_ms, _rest_ms(often, wall_ms), _oldest(often)))
        while self._rests and self._rests[0][0] < self._since_ms(now_ms):
            self._rests.popleft()

    def _since_ms(self, now_ms: int) -> int:
        return now_ms - _WITHIN_QUIETS * self._quiet_ms

    def often(self, files: Mapping[str, FileStamp], now_ms: int) -> Dict[str, FileStamp]:
        """Returns those of the files that are written often. A file that was only renamed, to make room for the next, is not."""
        names = {
            name
            for name, changes in self._changed_ms.items()
            if len(changes) == _CHANGES and changes[0] >= self._since_ms(now_ms)
        }
        return {path: stamp for path, stamp in files.items() if _name_of(path) in names and stamp not in self._moved}

    def is_whole(self, files: Mapping[str, FileStamp], now_ms: int, wall_ms: int) -> bool:
        """Whether some of the files are written often, these are all from one save, and no other has just appeared."""
        often = self.often(files, now_ms)
        still_ns = (wall_ms - _STILL_QUIETS * self._quiet_ms) * 1_000_000
        others = [stamp for path, stamp in files.items() if path not in often and stamp not in self._moved]
        if not often or any(stamp.modified_ns > still_ns for stamp in others):
            return False
        # Both pauses must have been seen: the one within a save, and the one before the next.
        if any(self._rests[0][0] > self._changed_ms[_name_of(path)][0] for path in often):
            return False
        # A file that is being truncated has its old time for a moment.
        if any(stamp.size == 0 for stamp in often.values()):
            return False
        times = [stamp.modified_ns for stamp in often.values()]
        rest_ms, oldest = _rest_ms(often, wall_ms), _oldest(often)
        rests_ms = [rest for _, rest, _ in self._rests]
        longest_ms = max(rests_ms)
        other_ms = max((rest for _, rest, each in self._rests if each != oldest), default=0)
        is_young = rest_ms < _AGE_FACTOR * (max(times) - min(times)) / 1_000_000
        # Otherwise the clock of the file system is another.
        is_clock_ours = min(rests_ms) < self._quiet_ms
        return is_clock_ours and not is_young and rest_ms >= _REST_SHARE * longest_ms and other_ms <= _REST_SHARE * longest_ms


def _rest_ms(files: Mapping[str, FileStamp], wall_ms: int) -> float:
    return wall_ms - max(stamp.modified_ns for stamp in files.values()) / 1_000_000


def _oldest(files: Mapping[str, FileStamp]) -> str:
    """Returns the name of the file that was written first; nothing when the clock of the file system cannot tell."""
    times = [stamp.modified_ns for stamp in files.values()]
    return "" if max(times) - min(times) <= _TICK_NS else _name_of(min(files, key=lambda path: files[path].modified_ns))


def _name_of(path: str) -> str:
    """The number in the name of a step or epoch does not make another file."""
    return path if unit_of(path) is None else template(path)

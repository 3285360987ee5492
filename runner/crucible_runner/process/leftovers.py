"""Processes that a command has left running in the background. Linux only: elsewhere there seem to be none.

A command such as `for i in 0 1; do python3 worker.py $i & done` ends while its programs still train. They are waited for. Helpers of a
command, such as a TensorBoard that was started before the training, are not, because they never end.
"""

import os
import re
import time
from typing import Dict, List, Optional, Set, Tuple

from . import processes

_TICKS = os.sysconf("SC_CLK_TCK")
# A process that began this long before the end of the command is what the command was for.
_YOUNG_SECONDS = 1.0
# Shares of a processor above which a process is at work, or at least not idle, over a period.
_BUSY_SHARE = 0.2
_IDLE_SHARE = 0.01
_PERIOD_SECONDS = 5.0
# A young process that has been idle for this time is not waited for any longer; a server is recognised sooner.
_IDLE_SECONDS = 600.0
_IDLE_SERVER_SECONDS = 10.0
_GPU = re.compile(r"/dev/(nvidia\d+|kfd|dri/renderD\d+)$")
_LISTENS = "0A"


class _Use:
    """The use that a process makes of processors."""

    def __init__(self, used: float, age: float) -> None:
        self._at = self.active_at = time.monotonic()
        self._used = used
        self.share = used / max(age, 1 / _TICKS)
        """Over the last whole period, or over the life of the process until one has passed."""

    def see(self, used: float) -> None:
        now = time.monotonic()
        if now - self._at < _PERIOD_SECONDS:
            return
        self.share = (used - self._used) / (now - self._at)
        self._at, self._used = now, used
        if self.share >= _IDLE_SHARE:
            self.active_at = now


class Leftovers:
    """Created when the command has ended."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._ended_at = _uptime()
        self._uses: Dict[int, _Use] = {}
        self._left: Dict[int, processes.Process] = {}
        self.awaited: Set[int] = set()
        """All processes that were waited for, the ended ones included."""

    def at_work(self) -> Set[int]:
        """Returns the living processes that must not be ended yet."""
        left = self._left = {process.pid: process for process in processes.below(self._root)}
        serving = {pid for pid in left if _listens(pid)}
        now = {pid for pid in left if self._is_at_work(pid, _is_below(pid, serving, left))}
        self.awaited |= now
        return now

    def names_of(self, pids: Set[int]) -> str:
        """Names programs of the last look, without those that another one of them has started."""
        heads = sorted(pid for pid in pids if self._left[pid].parent not in pids)
        return ", ".join("%s (process %d)" % (self._left[pid].name, pid) for pid in heads)

    def _is_at_work(self, pid: int, serves: bool) -> bool:
        times = _times(pid)
        if times is None:
            return False
        began, used = times
        use = self._uses.setdefault(pid, _Use(used, _uptime() - began))
        use.see(used)
        if self._ended_at - began <= _YOUNG_SECONDS:
            return time.monotonic() - use.active_at < (_IDLE_SERVER_SECONDS if serves else _IDLE_SECONDS)
        return not serves and (use.share >= _BUSY_SHARE or _holds_gpu(pid))


def _is_below(pid: int, serving: Set[int], left: Dict[int, processes.Process]) -> bool:
    """Whether a process, or one that it descends from, accepts connections."""
    while pid in left:
        if pid in serving:
            return True
        pid = left[pid].parent
    return False


def _times(pid: int) -> Optional[Tuple[float, float]]:
    """Returns when a process began, and the processor time that it has used, in seconds; None for one that has ended."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[19]) / _TICKS, (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, IndexError, ValueError):
        return None


def _uptime() -> float:
    # Unlike CLOCK_MONOTONIC, this clock includes the time that the machine sleeps, as the times of processes do.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0


def _open_files(pid: int) -> List[str]:
    try:
        folder = "/proc/%d/fd" % pid
        return [os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)]
    except OSError:
        return []


def _holds_gpu(pid: int) -> bool:
    return any(_GPU.match(path) for path in _open_files(pid))


def _listens(pid: int) -> bool:
    sockets = {path[len("socket:[") : -1] for path in _open_files(pid) if path.startswith("socket:[")}
    return bool(sockets) and any(sockets & _listening(pid, name) for name in ("tcp", "tcp6"))


def _listening(pid: int, name: str) -> Set[str]:
    try:
        with open("/proc/%d/net/%s" % (pid, name)) as file:
            rows = [line.split() for line in file]
    except OSError:
        return set()
    return {row[9] for row in rows if len(row) > 9 and row[3] == _LISTENS}

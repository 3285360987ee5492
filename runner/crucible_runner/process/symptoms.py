"""Why a workload may have failed: no memory, or no room on the disk."""

import os
import re
from typing import Iterable, List, Optional

# With less than this a disk is full for all that a training writes.
_FREE_BYTES_MIN = 1024 * 1024
_FULL_WORDS = re.compile(r"No space left on device|Disk quota exceeded|\[Errno 28\]|ENOSPC")

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

_OOM_FILES = ("/proc/vmstat", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def is_full(folder: str) -> bool:
    """Whether the disk that holds the folder takes nothing more."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    if disk.f_blocks == 0:
        return False  # a file system in user space that does not say
    # Some blocks are kept for the superuser, who may use them up.
    blocks, files = (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    return blocks * disk.f_frsize < _FREE_BYTES_MIN or (disk.f_files > 0 and files == 0)


def speaks_of_full_disk(lines: Iterable[str]) -> bool:
    return any(_FULL_WORDS.search(line) for line in lines)


def oom_kills(files: Iterable[str] = _OOM_FILES) -> List[int]:
    """How often the kernel has killed for want of memory, by each counter that it shows."""
    counts = []
    for path in files:
        try:
            with open(path) as file:
                found = re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE)
        except OSError:
            continue
        if found:
            counts.append(int(found.group(1)))
    return counts


def last_words(lines: Iterable[str]) -> Optional[str]:
    """The last line that says something, without colours and other controls of a terminal."""
    for line in reversed(list(lines)):
        plain = "".join(char if char.isprintable() else " " for char in _COLOURS.sub("", line)).strip()
        if plain:
            return plain
    return None

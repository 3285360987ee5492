"""Possible causes of a workload failure: out of memory, or disk full."""

import os
import re
from typing import Iterable, List

# Free space below which a disk is full for every file that a training writes.
_FREE_BYTES_MIN = 1024 * 1024

_OOM_FILES = ("/proc/vmstat", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def is_full(folder: str) -> bool:
    """Whether the disk that holds the folder is full."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    if disk.f_blocks == 0:
        return False  # a user-space file system that does not report its free space
    # Some blocks are reserved for the superuser, who may use them up.
    blocks, files = (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    return blocks * disk.f_frsize < _FREE_BYTES_MIN or (disk.f_files > 0 and files == 0)


def oom_kills(files: Iterable[str] = _OOM_FILES) -> List[int]:
    """Returns the kernel's out-of-memory kill count, for each counter that it exposes."""
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

"""A control group for everything that the command starts, so that even a process without a parent and without marks is found.

Only the command is in it: guard, runner and leash are outside, and everything in it may be killed.
"""

import errno
import os
import time
from typing import Iterator, List, NamedTuple, Optional, Set, Tuple

from ..paths import write_whole

_MOUNTS = "/sys/fs/cgroup/"
_PREFIX = "crucible-"
# Number of checks of a control group: for some milliseconds after a killed process has left /proc, the kernel still counts it as a member.
_BUSY_LOOKS = 50
_BUSY_LOOK_SECONDS = 0.01
# Hierarchies of version 1, in order of preference: neither limits the resources of a process.
_HIERARCHIES = ("name=systemd", "pids")


class _Mount(NamedTuple):
    controllers: Set[str]
    """Empty for version 2."""
    root: str
    folder: str


def make(machine: str, record: str) -> Optional[str]:
    """Creates the machine's group below the group of this process, so that its limits apply. `record` is the file with the group's
    path, for later processes. Returns None when no group can be created."""
    known = recorded(machine, record)
    if known is not None:
        return known
    for own in _own_groups():
        folder = os.path.join(own, _PREFIX + machine)
        try:
            os.makedirs(folder, exist_ok=True)
            if folder.startswith(_MOUNTS) and os.access(os.path.join(folder, "cgroup.procs"), os.W_OK):
                write_whole(record, folder.encode())
                return folder
        except OSError:
            pass
        remove(folder)
    return None


def recorded(machine: str, record: str) -> Optional[str]:
    """Returns the group that an earlier runner made, if it still exists."""
    try:
        with open(record) as file:
            folder = os.path.normpath(file.read(4096))
    except (OSError, ValueError):
        return None
    # The job may have written to the record.
    is_ours = folder.startswith(_MOUNTS) and os.path.basename(folder) == _PREFIX + machine
    return folder if is_ours and os.path.isdir(folder) else None


def enter(folder: str) -> None:
    """Moves this process into the group. If the kernel refuses, the process is still found by its other marks."""
    try:
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write("0")
    except OSError:
        pass


def _with_subgroups(folder: str) -> List[str]:
    """Returns the group and all groups in it, each after the one that contains it."""
    found = [folder]
    # No recursion, because groups can be nested more deeply than Python's recursion limit; the list grows while it is read.
    for group in found:
        try:
            with os.scandir(group) as entries:
                found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return found


def members(folder: str) -> Set[int]:
    """Returns the processes in the group and in its subgroups."""
    found: Set[int] = set()
    for group in _with_subgroups(folder):
        try:
            with open(os.path.join(group, "cgroup.procs")) as file:
                found |= {int(line) for line in file}
        except (OSError, ValueError):
            continue
    # 0 is a process that is not visible from here.
    return found - {0}


def kill(folder: str) -> None:
    """Kills the whole group at once, including processes started at the same moment (version 2, since Linux 5.14)."""
    try:
        with open(os.path.join(folder, "cgroup.kill"), "w") as file:
            file.write("1")
    except OSError:
        pass


def remove(folder: str) -> None:
    """Removes empty groups. A process that hangs in the kernel keeps its group."""
    for group in reversed(_with_subgroups(folder)):
        for _ in range(_BUSY_LOOKS):
            try:
                os.rmdir(group)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    time.sleep(_BUSY_LOOK_SECONDS)
                    continue
            break


def _own_groups() -> Iterator[str]:
    """Yields the groups of this process, version 2 first."""
    try:
        mounts = _mounts()
        with open("/proc/self/cgroup") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    wanted: List[Tuple[str, ...]] = [(), *((name,) for name in _HIERARCHIES)]
    for names in wanted:
        for _, controllers, path in lines:
            own = set(filter(None, controllers.split(",")))
            if own != set(names) and not (names and set(names) <= own):
                continue
            for mount in mounts:
                if (mount.controllers >= own if own else not mount.controllers) and _is_below(path, mount.root):
                    yield os.path.normpath(os.path.join(mount.folder, os.path.relpath(path, mount.root)))


def _is_below(path: str, root: str) -> bool:
    return (path.rstrip("/") + "/").startswith(root.rstrip("/") + "/")


def _mounts() -> List[_Mount]:
    """Reads the mounts; see proc_pid_mountinfo(5)."""
    found = []
    with open("/proc/self/mountinfo") as file:
        for line in file:
            head, _, tail = line.partition(" - ")
            fields, kinds = head.split(), tail.split()
            if kinds and kinds[0] == "cgroup2":
                found.append(_Mount(set(), fields[3], fields[4]))
            elif kinds and kinds[0] == "cgroup":
                found.append(_Mount(set(kinds[2].split(",")), fields[3], fields[4]))
    return found

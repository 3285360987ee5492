"""Finds and ends every process of this machine: by tree, by session, by `CRUCIBLE_MACHINE` in the environment, and by control group."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from . import cgroup
from .machine_name import MACHINE_VARIABLE

_IS_LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# Programs that only pass on their input, and so end with the process that writes to them.
PASSING_ON = {"awk", "cat", "gawk", "grep", "mawk", "sed", "tee", "tr", "ts"}
# Name of a program that passes the signal on to its command twice: to the command, then to the command's group. A command that has saved
# and is ending may die of the second one, which looks as if the save had been cut short.
TELLING = "timeout"

# A process that dies of SIGTERM does so within milliseconds; on a very busy machine it may take longer.
_DEATH_SECONDS = 1.0
_DEATH_LOOK_SECONDS = 0.005

# A process that survives SIGKILL for this long hangs in the kernel and cannot be ended.
_PATIENCE_SECONDS = 10.0
_LOOK_SECONDS = 0.02

_WORLD_SIZE = b"WORLD_SIZE="
# A machine has far fewer processes for training.
_WORLD_SIZE_MAX = 4096


# The control groups of machines, by machine. Inherited by forks.
_groups: Dict[str, str] = {}


def also_in(machine: str, group: str) -> None:
    """From now on this process also looks for the machine's processes in this control group."""
    _groups[machine] = group


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    name: str
    """The program's name, possibly truncated."""


def become_subreaper() -> None:
    """From now on descendants that lose their parent become children of this process (Linux only)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Gives this process SIGKILL when its parent dies (Linux only); at once when the parent is already dead."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if _IS_LINUX:
        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)


def of_machine(machine: str, roots: Iterable[int], keep: Iterable[int]) -> Set[int]:
    """Returns the living processes of a machine except this one and those to `keep`: `roots`, their descendants, every process started with
    the machine's name in its environment, and all sessions that one of these has begun.
    """
    table = _table()
    kept = set(keep) | {os.getpid()}
    begun = set(roots) - kept
    begun |= set(_descendants(table, roots)) | _with_machine(table, machine)
    begun |= _in_group(machine) & set(table)
    begun -= kept
    found = {pid for pid, process in table.items() if pid in begun or process.session in begun}
    return found - kept


def below(root: int) -> List[Process]:
    """Returns the living descendants of a process."""
    table = _table()
    return [table[pid] for pid in _descendants(table, [root])]


def end_all(machine: str, roots: Iterable[int], keep: Iterable[int]) -> Set[int]:
    """Sends SIGKILL until no process is left. Returns the processes that cannot be ended."""
    end = time.monotonic() + _PATIENCE_SECONDS
    roots, keep = list(roots), list(keep)
    if machine in _groups and not _in_group(machine) & (set(keep) | {os.getpid()}):
        cgroup.kill(_groups[machine])
    while True:
        left = of_machine(machine, roots, keep)
        if not left or time.monotonic() > end:
            return left
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(_LOOK_SECONDS)


def of_session(session: int) -> List[Process]:
    """Returns the living processes of a session in any group: shells and `timeout` give their commands groups of their own."""
    return [process for process in _table().values() if process.session == session]


def ask_to_stop(session: int) -> Optional[Set[int]]:
    """Sends SIGTERM to the present processes of the session; processes started later for saving do not get it.

    Programs that pass on the output of others are left alone, because their end would kill a process that writes to them while saving.
    `timeout` is left alone too: its command gets the signal instead, once, and `timeout` ends with it. A shell that will die of the
    signal gets it first; otherwise the end of a quick command would end the shell too, and the command's save would go unseen.

    Returns the processes that do not die of SIGTERM, as far as the system shows; None when the session has no process."""
    members, telling = _members(session)
    if not members:
        return None
    parents = {member.parent for member in members} - telling
    dying = [member.pid for member in members if member.pid in parents and dies_of_sigterm(member.pid)]
    if dying:
        _end_parents(dying)
        members, telling = _members(session)
    listening = {member.pid for member in members if not dies_of_sigterm(member.pid)}
    groups: Dict[int, List[Process]] = {}
    for member in members:
        groups.setdefault(member.group, []).append(member)
    for group, ours in groups.items():
        told = [member.pid for member in ours if member.pid not in telling and not is_passing_on(member)]
        if len(told) == len(ours):
            _terminate(os.killpg, group)
        else:
            for pid in told:
                _terminate(os.kill, pid)
    return listening


def _members(session: int) -> Tuple[List[Process], Set[int]]:
    """Returns the processes of a session, including the command of a `timeout`, which may have a session of its own; and the set of such
    `timeout` processes."""
    table = _table()
    parents = {process.parent for process in table.values()}
    ours = {process.pid: process for process in table.values() if process.session == session}
    # A `timeout` without a child has no command yet, or is about to become the command itself.
    telling = {pid for pid, process in ours.items() if process.name == TELLING and pid in parents}
    return [process for process in table.values() if process.pid in ours or process.parent in telling], telling


def _end_parents(pids: List[int]) -> None:
    """Waits briefly for their end, so that their children get another parent before these children end."""
    for pid in pids:
        _terminate(os.kill, pid)
    end = time.monotonic() + _DEATH_SECONDS
    while any(map(_is_alive, pids)) and time.monotonic() < end:
        time.sleep(_DEATH_LOOK_SECONDS)


def _is_alive(pid: int) -> bool:
    return _state_of(pid) not in (None, b"Z", b"X")


def is_stopped(pid: int) -> bool:
    """Whether the process was stopped by SIGSTOP. False where the system does not report it."""
    return _state_of(pid) == b"T"


def _state_of(pid: int) -> Optional[bytes]:
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except OSError:
        return None


def dies_of_sigterm(pid: int) -> bool:
    """Whether the process neither catches, ignores nor blocks SIGTERM. False when the system does not report it."""
    masks = _signal_masks(pid, ("SigBlk", "SigIgn", "SigCgt"))
    return masks is not None and not any(mask >> (signal.SIGTERM - 1) & 1 for mask in masks)


def catches(pid: int, number: int) -> bool:
    """Whether it has a handler for the signal. True when the system does not report it."""
    masks = _signal_masks(pid, ("SigCgt",))
    return masks is None or bool(masks[0] >> (number - 1) & 1)


def _signal_masks(pid: int, names: Iterable[str]) -> Optional[List[int]]:
    try:
        with open("/proc/%d/status" % pid) as file:
            fields = dict(line.split(":", 1) for line in file)
        return [int(fields[name], 16) for name in names]
    except (OSError, KeyError, ValueError):
        return None


def name_of(pid: int) -> str:
    """Returns the program's name, possibly truncated; empty when the system does not report it."""
    try:
        with open("/proc/%d/comm" % pid) as file:
            return file.read().strip()
    except OSError:
        return ""


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _terminate(kill: Callable[[int, int], None], target: int) -> None:
    try:
        kill(target, signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        pass


def is_passing_on(process: Process) -> bool:
    """Whether it only passes on the input from a pipe."""
    if process.name not in PASSING_ON:
        return False
    try:
        return os.readlink("/proc/%d/fd/0" % process.pid).startswith("pipe:")
    except OSError:
        return False


def reap() -> List[tuple]:
    """Collects ended children as (pid, status). Only for processes that do not use `subprocess`."""
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


class OpenFile(NamedTuple):
    """A file that a process has open for writing."""

    pid: int
    is_append: bool
    """It is open for appending only."""


def open_for_writing(pids: Iterable[int]) -> Dict[tuple, OpenFile]:
    """Returns the files, by (device, inode), that one of the processes has open for writing. Empty when the system cannot report them."""
    found: Dict[tuple, OpenFile] = {}
    for pid in pids:
        folder = "/proc/%d/fd" % pid
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                with open("/proc/%d/fdinfo/%s" % (pid, descriptor)) as file:
                    flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
                if flags & os.O_ACCMODE != os.O_RDONLY:
                    status = os.stat("%s/%s" % (folder, descriptor))
                    key = (status.st_dev, status.st_ino)
                    is_append = bool(flags & os.O_APPEND) and (key not in found or found[key].is_append)
                    found[key] = OpenFile(pid, is_append)
            except (OSError, StopIteration):
                continue
    return found


def world_size_of(pids: Iterable[int]) -> Optional[int]:
    """Returns the highest WORLD_SIZE in the environments that the processes were started with; None without one."""
    found: List[int] = []
    for pid in pids:
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                values = [each[len(_WORLD_SIZE) :] for each in file.read().split(b"\0") if each.startswith(_WORLD_SIZE)]
        except OSError:
            continue
        found += [int(value) for value in values if value.isdigit() and 0 < int(value) <= _WORLD_SIZE_MAX]
    return max(found, default=None)


def _descendants(table: Dict[int, Process], roots: Iterable[int]) -> List[int]:
    children: Dict[int, List[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: List[int] = []
    heads = list(roots)
    while heads:
        for pid in children.get(heads.pop(), []):
            found.append(pid)
            heads.append(pid)
    return found


def _table() -> Dict[int, Process]:
    """Returns all living processes; zombies count as dead."""
    return _table_of_proc() if _IS_LINUX else _table_of_ps()


def _table_of_proc() -> Dict[int, Process]:
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    # The command, in parentheses, may contain any character; the last parenthesis ends it.
                    head, _, rest = file.read().rpartition(b")")
            except OSError:
                continue
            fields = rest.split()
            if fields[0] not in (b"Z", b"X"):
                pid, command = int(name), head.partition(b"(")[2].decode("utf-8", "replace")
                table[pid] = Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), command)
    return table


def _table_of_ps() -> Dict[int, Process]:
    table = {}
    for line in _ps("-axo", "pid=,ppid=,pgid=,stat=,ucomm="):
        fields = line.split(None, 4)
        if len(fields) == 5 and not fields[3].startswith("Z"):
            # Not every ps shows the session; a group is the part of a session that matters here.
            pid, parent, group = int(fields[0]), int(fields[1]), int(fields[2])
            table[pid] = Process(pid, parent, group, group, fields[4].strip())
    return table


def _in_group(machine: str) -> Set[int]:
    return cgroup.members(_groups[machine]) if machine in _groups else set()


def _with_machine(table: Dict[int, Process], machine: str) -> Set[int]:
    wanted = "%s=%s" % (MACHINE_VARIABLE, machine)
    if not _IS_LINUX:
        lines = (line.split() for line in _ps("-axEww", "-o", "pid=,command="))
        return {int(words[0]) for words in lines if wanted in words[1:]}
    found = set()
    for pid in table:
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                if wanted.encode() in file.read().split(b"\0"):
                    found.add(pid)
        except OSError:
            continue  # not ours, or gone
    return found


def _ps(*arguments: str) -> List[str]:
    listing = subprocess.run(
        ("ps",) + arguments, stdout=subprocess.PIPE, check=False, env={"PATH": "/bin:/usr/bin"}
    )
    return listing.stdout.decode("utf-8", "replace").splitlines()

"""The job's own directory on this machine.

Its path does not contain the attempt, because programs store absolute paths in their checkpoints. Only the attempt that holds the lock
uses it; the lock file next to it names its machine (docs/decisions/0058-one-path-for-all-attempts.md).
"""

import fcntl
import os
import time
from typing import Optional

from ..paths import remove_tree
from . import processes

_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_NAME_BYTES_MAX = 1024


class InUse(Exception):
    """Another attempt of the job still runs on this machine."""


def take(job_root: str, machine: str, wait_seconds: float = _WAIT_SECONDS) -> int:
    """Takes the directory for the machine of this attempt, and removes what an earlier attempt has left in it. Returns the descriptor of the lock, which
    holds as long as it is open here or in a process that inherited it. Raises `InUse`, and `OSError` when the disk refuses."""
    os.makedirs(os.path.dirname(job_root), exist_ok=True)
    until = time.monotonic() + wait_seconds
    lock = _open(job_root)
    while True:
        try:
            _wait_for(lock, until)
            if _is_in_place(lock, job_root):
                break
        except BaseException:
            os.close(lock)
            raise
        # The machine of an earlier attempt was removed meanwhile, with this file.
        os.close(lock)
        lock = _open(job_root)
    try:
        before = _owner(lock)
        if before != machine:
            # A name without its deployment may also be that of another deployment's machine, which must not be ended here.
            if before is not None and ("." in before or "." not in machine):
                # The attempt is over, but a process of it that escaped its runner could still write here.
                processes.end_all(before, [], [])
            remove_tree(job_root)
            os.ftruncate(lock, 0)
            os.pwrite(lock, machine.encode("utf-8"), 0)
        return lock
    except BaseException:
        os.close(lock)
        raise


def _open(job_root: str) -> int:
    return os.open(job_root + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def _is_in_place(lock: int, job_root: str) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.lstat(job_root + ".lock"))
    except FileNotFoundError:
        return False


def _wait_for(lock: int, until: float) -> None:
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise InUse("the attempt %s of this job still runs on this machine" % (_owner(lock) or "before"))
        time.sleep(_LOOK_SECONDS)


def _owner(lock: int) -> Optional[str]:
    return os.pread(lock, _NAME_BYTES_MAX, 0).decode("utf-8", "replace") or None

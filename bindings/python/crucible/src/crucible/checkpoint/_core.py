"""Shared by the helpers of all libraries: when to save, how to save atomically, and which checkpoint to resume from."""

from __future__ import annotations

import enum
import os
import re
import shutil
import time
from typing import Callable, List, NoReturn, Optional, Pattern

from . import _job

# Exit code after a stop, as after SIGTERM. With 0, a program that has done its last step but not the work after it would count as done.
STOPPED_EXIT_CODE = 143
_EVERY_SECONDS_DEFAULT = 600.0


class Decision(enum.IntFlag):
    """What to do after a step."""

    CONTINUE = 0
    SAVE = 1
    STOP = 2


class Schedule:
    """When to save: after a number of steps, after a number of seconds, and when Crucible asks for it."""

    def __init__(
        self,
        every_steps: Optional[int] = None,
        every_seconds: Optional[float] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without either, the job's `checkpoint.every` counts, or ten minutes. Raises ValueError unless both are above 0."""
        for name, value in (("every_steps", every_steps), ("every_seconds", every_seconds)):
            if value is not None and not value > 0:
                raise ValueError("%s must be above 0, but is %r" % (name, value))
        if every_steps is None and every_seconds is None:
            every_seconds = _seconds_of_job()
        self._every_steps = every_steps
        self._every_seconds = every_seconds
        self._clock = clock
        self._step = 0
        self._at = clock()

    def begin(self, step: int) -> None:
        """The training begins after `step` steps, or has saved them."""
        self._step = step
        self._at = self._clock()

    def decide(self, step: int) -> Decision:
        """Asked after each step, in one process of a training only."""
        if _job.should_stop():
            return Decision.SAVE | Decision.STOP
        # A requested save is checked first: reading it consumes it, and a save that is due would satisfy it, too.
        return Decision.SAVE if _job.should_save() or self._is_due(step) else Decision.CONTINUE

    def _is_due(self, step: int) -> bool:
        if self._every_steps is not None and step - self._step >= self._every_steps:
            return True
        return self._every_seconds is not None and self._clock() - self._at >= self._every_seconds


def _seconds_of_job() -> float:
    try:
        seconds = float(os.environ.get("CRUCIBLE_CHECKPOINT_EVERY_SECONDS", ""))
    except ValueError:
        return _EVERY_SECONDS_DEFAULT
    return seconds if seconds > 0 else _EVERY_SECONDS_DEFAULT


def stop() -> NoReturn:
    """Ends the program once it has saved. Raises SystemExit, so that `finally` and `atexit` are run."""
    raise SystemExit(STOPPED_EXIT_CODE)


class Folder:
    """The entries `step-<12 digits><suffix>` of the checkpoint folder, each a file or a folder that holds one checkpoint."""

    def __init__(self, suffix: str, keep: int = 2) -> None:
        """`keep` is how many stay on this machine; Crucible keeps its own number in the store. Raises ValueError if it is below 1."""
        if keep < 1:
            raise ValueError("keep must be at least 1, but is %r" % keep)
        self.path = _job.checkpoint_dir()
        self._suffix = suffix
        self._keep = keep

    def save(self, step: int, write: Callable[[str], None]) -> str:
        """Calls `write` with a temporary path, renames what it wrote into place and declares it. Returns the final path.

        An exception of `write` is passed on, and no part of the checkpoint remains.
        """
        path = self.path_of(step)
        temporary = self.temporary_of(step)
        _remove(temporary)
        try:
            write(temporary)
            self.publish(step)
        except BaseException:
            _remove(temporary)
            raise
        return path

    def publish(self, step: int) -> None:
        """Renames a checkpoint that is complete under its temporary path, declares it and removes old ones."""
        path, temporary = self.path_of(step), self.temporary_of(step)
        _sync_tree(temporary)
        # A folder cannot replace another one.
        if os.path.isdir(path):
            _remove(path)
        os.replace(temporary, path)
        _sync(self.path)
        _job.checkpoint_saved(path, step)
        self._remove_old(path)

    def path_of(self, step: int) -> str:
        return os.path.join(self.path, "step-%012d%s" % (step, self._suffix))

    def temporary_of(self, step: int) -> str:
        return self.path_of(step) + ".tmp"

    def newest(self) -> Optional[str]:
        """The checkpoint to resume from: the one that Crucible restored; outside Crucible the newest one of this folder."""
        return to_resume_from(re.compile(r"step-(\d+)" + re.escape(self._suffix)), self.path)

    def _remove_old(self, newest: str) -> None:
        names = _numbered(self.path, re.compile(r"step-(\d+)" + re.escape(self._suffix)))
        # A resumed training may have fewer steps than an earlier one, whose later checkpoints belong to another run.
        older = [name for name in names if name != os.path.basename(newest)]
        for name in older[: max(0, len(older) - (self._keep - 1))]:
            _remove(os.path.join(self.path, name))


def to_resume_from(name: Pattern[str], folder: str) -> Optional[str]:
    """The restored checkpoint if there is one; otherwise, outside Crucible, the newest entry of `folder` that matches."""
    restored = _job.resume_path()
    if restored is None:
        if os.environ.get("CRUCIBLE_JOB_ID"):
            return None
        restored = folder
    elif name.fullmatch(os.path.basename(os.path.normpath(restored))):
        return restored
    if not os.path.isdir(restored):
        raise ValueError(
            "the restored checkpoint %s was not saved by this helper: expected a name such as %s" % (restored, name.pattern)
        )
    names = _numbered(restored, name)
    return os.path.join(restored, names[-1]) if names else None


def _numbered(folder: str, name: Pattern[str]) -> List[str]:
    """The entries that match, in the order of their numbers."""
    found = [(match, each) for each in os.listdir(folder) for match in [name.fullmatch(each)] if match is not None]
    return [each for match, each in sorted(found, key=lambda pair: int(pair[0].group(1)))]


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _sync_tree(path: str) -> None:
    for folder, _, files in os.walk(path) if os.path.isdir(path) else ():
        for file in files:
            _sync(os.path.join(folder, file))
    _sync(path)


def _sync(path: str) -> None:
    """A rename must not reach the disk before the content."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems cannot
    finally:
        os.close(descriptor)

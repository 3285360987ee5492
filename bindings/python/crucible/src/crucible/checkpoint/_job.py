"""The functions of `crucible_job`, with types.

The runner puts its own `crucible_job` on the path of each job. Jobs use that module, because the runner reads the files that it writes.
Programs outside Crucible use `_crucible_job` of this package.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Optional, Union


def _load() -> Any:
    try:
        return import_module("crucible_job")
    except ImportError:
        return import_module("._crucible_job", __package__)


_job: Any = _load()

Path = Union[str, "os.PathLike[str]"]


def progress(step: int, total: Optional[int] = None, loss: Optional[float] = None) -> None:
    """Reports steps done, total steps and the newest loss. It is cheap enough to call at every step."""
    _job.progress(step, total, loss)


def should_stop() -> bool:
    """Returns True when the machine will soon be taken away: save a checkpoint and exit.

    From the first call on, SIGTERM no longer ends the program, unless it has a handler of its own.
    """
    return bool(_job.should_stop())


def should_save() -> bool:
    """Returns True once per request to save an extra checkpoint. The training continues.

    Each process gets the request independently: ask in one process and broadcast the answer to the others.
    """
    return bool(_job.should_save())


def checkpoint_saved(path: Path, step: int) -> None:
    """Declares that `path`, a file or folder in `checkpoint_dir()`, is a complete checkpoint after `step` steps.

    From the first call on only declared checkpoints count. Raises ValueError for a path outside `checkpoint_dir()`.
    """
    _job.checkpoint_saved(os.fspath(path), step)


def resume_path() -> Optional[str]:
    """Path of the checkpoint to resume from, or None for a fresh start, and outside Crucible."""
    path = _job.resume_path()
    return None if path is None else str(path)


def checkpoint_dir() -> str:
    """Returns the folder for checkpoints and creates it if needed. Outside Crucible it is ./checkpoints."""
    return str(_job.checkpoint_dir())


def output_dir() -> str:
    """Returns the folder for results and creates it if needed. Outside Crucible it is ./output."""
    return str(_job.output_dir())

"""Optional helper for programs that run as Crucible jobs. Copy it or import it: outside Crucible it does no harm.

import crucible_job as job

for step in range(start, steps):
    ...
    job.progress(step + 1, steps, loss)
    if job.should_save() or job.should_stop():
        save(os.path.join(job.checkpoint_dir(), "model.pt"))
        job.checkpoint_saved("model.pt", step + 1)
    if job.should_stop():
        break
"""

import atexit
import json
import math
import os
import signal
import threading
import time
from typing import Any, Dict, Optional

_PROGRESS_SECONDS = 0.1

_written_at: Optional[float] = None
_pending: Optional[Dict[str, Any]] = None
_is_listening = False
_saves_seen: Optional[int] = None


def progress(step: int, total: Optional[int] = None, loss: Optional[float] = None) -> None:
    """Reports the training progress: steps done, total steps and the newest loss. It is cheap enough to call at every step."""
    global _pending, _written_at
    if _control() is None:
        return
    loss = None if loss is None else float(loss)
    _pending = {
        "step": int(step),
        "total": None if total is None else int(total),
        "loss": loss if loss is not None and math.isfinite(loss) else None,
    }
    now = time.monotonic()
    if _written_at is None or now - _written_at >= _PROGRESS_SECONDS:
        _written_at = now
        _write_progress()


def should_stop() -> bool:
    """Returns True when the machine will soon be taken away: save a checkpoint and exit.

    SIGTERM arrives at the same time. From the first call on, SIGTERM no longer ends a program that uses this function, because the
    program stops on its own. An existing SIGTERM handler stays installed.
    """
    global _is_listening
    control = _control()
    if control is not None and not _is_listening:
        _is_listening = True
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        ):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return control is not None and os.path.exists(os.path.join(control, "stop.json"))


def should_save() -> bool:
    """Returns True once per request to save an extra checkpoint, because the machine may be interrupted soon. The training continues.

    Each process of a training gets the signal independently and at a different step: ask in one process and broadcast the answer to the
    others.
    """
    global _saves_seen
    control = _control()
    if control is None:
        return False
    try:
        stamp = os.stat(os.path.join(control, "save.json")).st_mtime_ns
    except OSError:
        return False
    is_new = stamp != _saves_seen
    _saves_seen = stamp
    return is_new


def checkpoint_saved(path: str, step: int) -> None:
    """Declares that `path`, a file or a folder in `checkpoint_dir()`, is a complete checkpoint after `step` steps.

    After the first call only declared checkpoints count. Raises ValueError when the path is outside `checkpoint_dir()`.
    """
    control = _control()
    if control is None:
        return
    base = os.path.realpath(checkpoint_dir())
    full = os.path.realpath(os.path.join(base, path))
    if full != base and not full.startswith(base + os.sep):
        raise ValueError("the checkpoint %s is not in %s, the folder that is kept" % (path, base))
    declared = {"path": os.path.relpath(full, base).replace(os.sep, "/"), "step": int(step)}
    _write(os.path.join(control, "saved", "%d.json" % step), declared)


def resume_path() -> Optional[str]:
    """Path of the checkpoint to resume from, or None for a fresh start."""
    return os.environ.get("CRUCIBLE_RESUME_FROM")


def checkpoint_dir() -> str:
    """Returns the folder for checkpoints and creates it if needed. Outside Crucible it is ./checkpoints."""
    return _folder("CRUCIBLE_CHECKPOINT_DIR", "checkpoints")


def output_dir() -> str:
    """Returns the folder for results and creates it if needed. Crucible keeps everything in it. Outside Crucible it is ./output."""
    return _folder("CRUCIBLE_OUTPUT_DIR", "output")


def _folder(variable: str, default: str) -> str:
    path = os.environ.get(variable) or os.path.join(".", default)
    os.makedirs(path, exist_ok=True)
    return path


def _control() -> Optional[str]:
    return os.environ.get("CRUCIBLE_CONTROL_DIR")


@atexit.register
def _write_progress() -> None:
    global _pending
    control = _control()
    if _pending is not None and control is not None:
        pending, _pending = _pending, None
        try:
            _write(os.path.join(control, "progress.json"), pending)
        except OSError:
            pass  # reporting progress must never fail a training


def _write(path: str, document: Dict[str, Any]) -> None:
    part = "%s.%d.part" % (path, os.getpid())
    with open(part, "w") as file:
        json.dump(document, file)
    os.replace(part, path)

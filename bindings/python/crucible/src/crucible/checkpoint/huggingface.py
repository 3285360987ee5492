"""Saving and resuming for the Trainer of Hugging Face Transformers.

    from crucible.checkpoint.huggingface import CrucibleCallback, checkpoint_dir, last_checkpoint

    arguments = TrainingArguments(output_dir=checkpoint_dir(), save_steps=500, ...)
    trainer = Trainer(..., args=arguments, callbacks=[CrucibleCallback()])
    trainer.train(resume_from_checkpoint=last_checkpoint())

The Trainer saves and restores everything itself. The callback makes it save in time, tells Crucible that a checkpoint is complete, and
ends the program once it has saved because the machine is taken away.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Optional

from . import _distributed, _job
from ._core import Decision, Schedule, stop, to_resume_from
from ._job import checkpoint_dir
from ._library import library

if TYPE_CHECKING:

    class _TrainerCallback: ...

else:
    with library("transformers", "transformers"):
        from transformers import TrainerCallback as _TrainerCallback

_NAME = re.compile(r"checkpoint-(\d+)")


class CrucibleCallback(_TrainerCallback):
    """Sets `should_save` and `should_training_stop` when Crucible asks for it, and reports the progress."""

    def __init__(self, *, every_seconds: Optional[float] = None) -> None:
        """In addition to what `save_strategy` says, saves every `every_seconds` seconds; without it as often as the job's `checkpoint.every` says,
        or every ten minutes. Raises ValueError for a number that is not above 0."""
        self._schedule = Schedule(None, every_seconds)
        self._loss: Optional[float] = None
        self._is_stopping = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The training begins or resumes."""
        _job.should_stop()  # from now on SIGTERM waits for the end of a step
        self._schedule.begin(int(state.global_step))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Remembers the newest loss."""
        self._loss = (logs or {}).get("loss", self._loss)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reports the progress, and asks the Trainer to save and stop if it is time."""
        asked = Decision.CONTINUE
        if _distributed.is_main():
            _job.progress(int(state.global_step), int(state.max_steps), self._loss)
            asked = self._schedule.decide(int(state.global_step))
        decision = Decision(_distributed.agreed(int(asked)))
        if decision & Decision.SAVE:
            control.should_save = True
        if decision & Decision.STOP:
            self._is_stopping = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Declares the checkpoint that the Trainer has just written."""
        step = int(state.global_step)
        self._schedule.begin(step)
        path = os.path.join(args.output_dir, "checkpoint-%d" % step)
        # Other folders are not kept; Crucible's own warning reports that.
        if state.is_world_process_zero and _is_inside(path, checkpoint_dir()):
            _job.checkpoint_saved(path, step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ends the program if the machine is taken away. Raises SystemExit: the code after `train()` must run on the next machine."""
        if self._is_stopping:
            stop()


def last_checkpoint() -> Optional[str]:
    """The folder for `resume_from_checkpoint` of `train`, or None for a fresh start."""
    return to_resume_from(_NAME, checkpoint_dir())


def _is_inside(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)


__all__ = ["CrucibleCallback", "checkpoint_dir", "last_checkpoint"]

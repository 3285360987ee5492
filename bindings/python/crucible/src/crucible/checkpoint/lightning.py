"""Saving and resuming for trainings with Lightning 2.

    from crucible.checkpoint.lightning import CrucibleCheckpoint

    checkpoint = CrucibleCheckpoint()
    trainer = Trainer(max_epochs=3, callbacks=[checkpoint], enable_checkpointing=False)
    trainer.fit(model, loader, ckpt_path=checkpoint.resume_path())

A checkpoint is Lightning's own, with the random states, which Lightning leaves out. In the middle of an epoch Lightning itself resumes at the
right step, but reads the batches of that epoch from its beginning unless the loader has a state of its own.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Dict, Optional

from . import _job
from ._core import Decision, Folder, Schedule, stop
from ._library import library
from ._random import random_states, set_random_states

if TYPE_CHECKING:

    class _Callback: ...

elif importlib.util.find_spec("lightning") is not None:
    from lightning.pytorch.callbacks import Callback as _Callback
else:
    with library("pytorch_lightning", "lightning` or `pip install pytorch-lightning"):
        from pytorch_lightning.callbacks import Callback as _Callback


class CrucibleCheckpoint(_Callback):
    """Saves in time, and when Crucible asks for it; then it ends the program with SystemExit."""

    def __init__(
        self,
        *,
        every_steps: Optional[int] = None,
        every_seconds: Optional[float] = None,
        keep: int = 2,
    ) -> None:
        """Saves every `every_steps` optimizer steps or `every_seconds` seconds; without either as often as the job's `checkpoint.every`
        says, or every ten minutes. `keep` is how many checkpoints stay on this machine. Raises ValueError for a number that is not above 0.
        """
        self._schedule = Schedule(every_steps, every_seconds)
        self._folder = Folder(".ckpt", keep)
        self._random: Optional[Dict[str, Any]] = None
        self._seen = 0

    def resume_path(self) -> Optional[str]:
        """The checkpoint for `ckpt_path` of `fit`, or None for a fresh start."""
        return self._folder.newest()

    def state_dict(self) -> Dict[str, Any]:
        """For Lightning, which puts it into the checkpoint."""
        return {"random": random_states()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """For Lightning, which calls it with what `state_dict` returned."""
        self._random = state_dict["random"]

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The training begins or resumes."""
        _job.should_stop()  # from now on SIGTERM waits for the end of a step
        self._seen = int(trainer.global_step)
        self._schedule.begin(self._seen)
        if self._random is not None:
            # The state is set here, because the validation before the training uses random numbers too.
            set_random_states(self._random)
            self._random = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Reports the progress; saves and stops if it is time."""
        step = int(trainer.global_step)
        if step == self._seen:
            return  # gradients are still being collected
        self._seen = step
        decision = self._decide(trainer, step)
        if decision & Decision.SAVE:
            self._save(trainer, step)
        if decision & Decision.STOP:
            stop()

    def _decide(self, trainer: Any, step: int) -> Decision:
        asked = Decision.CONTINUE
        if trainer.is_global_zero:
            _job.progress(step, _whole(trainer.estimated_stepping_batches), _loss_of(trainer))
            asked = self._schedule.decide(step)
        return asked if trainer.world_size == 1 else Decision(int(trainer.strategy.broadcast(int(asked))))

    def _save(self, trainer: Any, step: int) -> None:
        # All processes take part; the one with rank 0 writes and renames.
        trainer.save_checkpoint(self._folder.temporary_of(step))
        if trainer.is_global_zero:
            self._folder.publish(step)
        trainer.strategy.barrier("crucible")
        self._schedule.begin(step)


def _whole(total: Any) -> Optional[int]:
    """None for a training without a known end."""
    return int(total) if 0 < total < float("inf") else None


def _loss_of(trainer: Any) -> Optional[float]:
    """The loss that the program has logged for the progress bar or the loggers; fetching another would make a GPU wait."""
    for name in ("loss", "train_loss", "train/loss"):
        value = trainer.callback_metrics.get(name)
        if value is not None:
            return float(value)
    return None


__all__ = ["CrucibleCheckpoint"]

"""Saving and resuming for `fit` of Keras 3, with any backend.

    from crucible.checkpoint.keras import CrucibleCallback

    model.compile(...)
    crucible = CrucibleCallback(model)
    model.fit(x, y, epochs=20, initial_epoch=crucible.initial_epoch, callbacks=[crucible])

It saves weights, optimizer and random states after each epoch, and in the middle of an epoch when Crucible asks for it. `fit` can begin
only with a whole epoch, so an epoch that was interrupted is repeated from its beginning with the weights that it had reached.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import _job
from ._core import Decision, Folder, Schedule, stop
from ._library import library
from ._random import random_states, set_random_states

if TYPE_CHECKING:

    class _Callback:
        model: Any
        params: Dict[str, Any]

else:
    with library("keras", "keras"):
        from keras.callbacks import Callback as _Callback

_WEIGHTS = "model.weights.h5"
_STATE = "state.json"


class CrucibleCallback(_Callback):
    """Restores a compiled model when it is made, and saves it while it is trained."""

    def __init__(self, model: Any, *, every_seconds: Optional[float] = None, keep: int = 2) -> None:
        """`model` must be compiled and built, and is restored at once if there is a checkpoint.

        Saves after each epoch; with `every_seconds` also that often within epochs. `keep` is how many checkpoints stay on this machine.
        Raises ValueError for a number that is not above 0, and for a model without weights or without an optimizer.
        """
        super().__init__()
        if getattr(model, "optimizer", None) is None or not model.built:
            raise ValueError("compile and build the model first: give its first layer an Input, or call model.build(shape)")
        self._within_epochs = every_seconds is not None
        self._schedule = Schedule(None, every_seconds)
        self._folder = Folder("", keep)
        self._epoch = 0
        self._step = 0
        self._random: Optional[Dict[str, Any]] = None
        self._restore(model)

    @property
    def initial_epoch(self) -> int:
        """How many epochs are done: for `fit`, whose `epochs` stays the number of all."""
        return self._epoch

    @property
    def steps_done(self) -> int:
        """How many batches were trained on until the restored checkpoint."""
        return self._step

    def _restore(self, model: Any) -> None:
        path = self._folder.newest()
        if path is None:
            return
        # Without the optimizer's variables, its state cannot be loaded.
        model.optimizer.build(model.trainable_variables)
        model.load_weights(os.path.join(path, _WEIGHTS))
        with open(os.path.join(path, _STATE)) as file:
            state = json.load(file)
        self._epoch, self._step, self._random = int(state["epoch"]), int(state["step"]), state["random"]
        for variable, value in zip(_seeds_of(model), state["seeds"]):
            variable.assign(value)

    def on_train_begin(self, logs: Optional[Dict[str, Any]] = None) -> None:
        """The training begins or resumes."""
        _job.should_stop()  # from now on SIGTERM waits for the end of a step
        self._schedule.begin(self._step)

    def on_epoch_begin(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """The epoch counts as not done until it ends."""
        self._epoch = epoch
        if self._random is not None:
            set_random_states(self._random)
            self._random = None

    def on_train_batch_end(self, batch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Reports the progress; saves and stops if it is time."""
        self._step += 1
        _job.progress(self._step, self._total(batch), (logs or {}).get("loss"))
        asked = self._schedule.decide(self._step)
        if asked & Decision.STOP or (asked & Decision.SAVE and self._within_epochs):
            self._save()
        if asked & Decision.STOP:
            stop()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        """Saves the whole epoch."""
        self._epoch = epoch + 1
        self._save()

    def _total(self, batch: int) -> Optional[int]:
        """All steps: those done, those left of this epoch, and those of the epochs after it."""
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        if not steps or not epochs:
            return None
        return self._step + (int(steps) - batch - 1) + int(steps) * (int(epochs) - self._epoch - 1)

    def _save(self) -> None:
        # Keras does not use the generators of PyTorch.
        states = {name: state for name, state in random_states().items() if name in ("python", "numpy")}
        seeds = [[int(number) for number in _numpy(variable)] for variable in _seeds_of(self.model)]
        document = {"epoch": self._epoch, "step": self._step, "random": states, "seeds": seeds}

        def write(path: str) -> None:
            os.mkdir(path)
            self.model.save_weights(os.path.join(path, _WEIGHTS))
            with open(os.path.join(path, _STATE), "w") as file:
                json.dump(document, file)

        self._folder.save(self._step, write)
        self._schedule.begin(self._step)


def _seeds_of(model: Any) -> List[Any]:
    """The states of the generators in the layers, such as those of Dropout, which are not weights."""
    return [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]


def _numpy(variable: Any) -> Any:
    value = variable.value
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


__all__ = ["CrucibleCallback"]

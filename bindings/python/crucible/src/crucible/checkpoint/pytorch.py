"""Saving and resuming for training loops in PyTorch.

    from crucible.checkpoint.pytorch import Checkpoint

    checkpoint = Checkpoint(model=model, optimizer=optimizer, scheduler=scheduler)
    checkpoint.restore()
    for step, (x, y) in checkpoint.batches(loader, epochs=3):
        loss = train_on(x, y)
        checkpoint.step(step, loss=loss)

A resumed training continues with the same weights, optimizer, random numbers and batches, so that on a CPU it ends with the same
weights as one that was never interrupted. Under `torch.distributed` the process with rank 0 saves, and all agree after each step. Models
whose weights are spread over several processes (FSDP, tensor parallelism) need `torch.distributed.checkpoint` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, Optional, Protocol, Sized, Tuple, Union

from . import _distributed, _job
from ._core import Decision, Folder, Schedule, stop
from ._library import library
from ._random import random_states, set_random_states

if TYPE_CHECKING:
    torch: Any
else:
    with library("torch", "torch"):
        import torch

_FORMAT = 1


class Stateful(Protocol):
    """Whatever has a state that can be saved: models, optimizers, schedulers, scalers, samplers."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any, /) -> Any: ...


class Checkpoint:
    """The state of one training: saves it in time, and restores it at the start."""

    def __init__(
        self,
        *,
        model: Stateful,
        optimizer: Optional[Stateful] = None,
        scheduler: Optional[Stateful] = None,
        scaler: Optional[Stateful] = None,
        others: Optional[Mapping[str, Stateful]] = None,
        every_steps: Optional[int] = None,
        every_seconds: Optional[float] = None,
        keep: int = 2,
    ) -> None:
        """Saves every `every_steps` steps or `every_seconds` seconds; without either as often as the job's `checkpoint.every` says, or
        every ten minutes. Crucible's notice always saves. `others` are further objects by a name of their own, such as a second model.
        `keep` is how many checkpoints stay on this machine.

        Raises ValueError for a number that is not above 0, and for a model that is spread over several processes.
        """
        parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
        self._parts: Dict[str, Stateful] = {name: part for name, part in parts.items() if part is not None}
        for name, part in (others or {}).items():
            if name in parts:
                raise ValueError("others must not use the name %r, which is an argument" % name)
            self._parts[name] = part
        self._parts = {name: _unwrapped(name, part) for name, part in self._parts.items()}
        self._schedule = Schedule(every_steps, every_seconds)
        self._folder = Folder(".pt", keep)
        self._step = 0
        self._total: Optional[int] = None
        self._loader: Optional[Dict[str, Any]] = None
        """The place of `batches`: its epoch, batches done in it, and the random states at the start of the epoch."""
        self._to_skip: Optional[Dict[str, Any]] = None
        self._random: Optional[Dict[str, Any]] = None
        """The random states after the restored step, until `batches` is there again."""

    def restore(self) -> int:
        """Loads the newest checkpoint. Returns how many steps are done: 0 for a fresh start.

        Call it once everything is on its device, before the first step. Raises ValueError for a checkpoint with other parts.
        """
        _job.should_stop()  # from now on SIGTERM waits for the end of a step
        path = self._folder.newest()
        if path is not None:
            # The file is trusted like the program's own code: unlike with `weights_only`, every state that could be saved can be restored.
            self._load(torch.load(path, map_location="cpu", weights_only=False), path)
        self._schedule.begin(self._step)
        return self._step

    def batches(self, loader: Iterable[Any], *, epochs: int = 1) -> Iterator[Tuple[int, Any]]:
        """Yields `(step, batch)` over all epochs that are left, the step counted from 1.

        It begins after the last batch that `step` was called for: the epoch starts with the random numbers of its first start, and the
        batches done are read and left out. A sampler with `set_epoch` gets the epoch. Use it once, after `restore`.
        """
        length = len(loader) if isinstance(loader, Sized) else None
        self._total = None if length is None else epochs * length
        place, self._to_skip = self._to_skip, None
        step = self._step
        for epoch in range(0 if place is None else place["epoch"], epochs):
            set_epoch = getattr(getattr(loader, "sampler", None), "set_epoch", None)
            if set_epoch is not None:
                set_epoch(epoch)
            done = 0 if place is None else place["done"]
            if place is not None:
                set_random_states(place["random"][self._rank_of(place["random"])])
            self._loader = {"epoch": epoch, "done": 0, "random": _distributed.gathered(random_states())}
            for number, batch in enumerate(loader, 1):
                self._loader["done"] = number
                if number <= done:
                    continue
                self._go_on()
                step += 1
                yield step, batch
            # The checkpoint may be of the end of an epoch.
            self._go_on()
            place = None
        self._loader = None

    def _go_on(self) -> None:
        """The batches are where they were: the random numbers are set to where they were then."""
        if self._random is not None:
            set_random_states(self._random)
            self._random = None

    def step(self, step: int, total: Optional[int] = None, loss: Union[float, Any, None] = None) -> None:
        """Call it at the end of each step, with how many steps are done. `total` is how many there will be, `loss` the newest one.

        Reports the progress, and saves when it is time. When the machine is about to be taken away, it saves and raises SystemExit. A loss
        on a GPU is fetched from there, which waits for it: pass it every few steps.
        """
        self._step = step
        if _distributed.is_main():
            _job.progress(step, self._total if total is None else total, _number(loss))
        asked = self._schedule.decide(step) if _distributed.is_main() else Decision.CONTINUE
        decision = Decision(_distributed.agreed(int(asked)))
        if decision & Decision.SAVE:
            self.save()
        if decision & Decision.STOP:
            stop()

    def save(self) -> None:
        """Saves now, as after the last `step`. Under `torch.distributed` all processes must call it."""
        states = _distributed.gathered(random_states())
        if _distributed.is_main():
            document = {
                "format": _FORMAT,
                "step": self._step,
                "parts": {name: part.state_dict() for name, part in self._parts.items()},
                "random": states,
                "loader": self._loader,
            }
            self._folder.save(self._step, lambda path: _write(document, path))
        _distributed.wait_for_all()
        self._schedule.begin(self._step)

    def _load(self, document: Any, path: str) -> None:
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError("%s was not saved by this helper, or by a later version of it" % path)
        saved, wanted = set(document["parts"]), set(self._parts)
        if saved != wanted:
            raise ValueError(
                "%s has the parts %s, but the program has %s" % (path, ", ".join(sorted(saved)), ", ".join(sorted(wanted)))
            )
        for name, part in self._parts.items():
            part.load_state_dict(document["parts"][name])
        self._step = int(document["step"])
        self._to_skip = document["loader"]
        states = document["random"]
        own = states[self._rank_of(states)]
        set_random_states(own)
        self._random = own if self._to_skip is not None else None

    @staticmethod
    def _rank_of(states: Any) -> int:
        """With more processes than before, the new ones take the states of the others in turn."""
        return _distributed.rank() % len(states)


def _number(loss: Union[float, Any, None]) -> Optional[float]:
    return None if loss is None else float(loss.detach() if hasattr(loss, "detach") else loss)


def _write(document: Dict[str, Any], path: str) -> None:
    with open(path, "wb") as file:
        torch.save(document, file)


def _unwrapped(name: str, part: Stateful) -> Stateful:
    """Without the wrapper for several processes: the checkpoint then fits any number of them."""
    kind = type(part).__name__
    if kind in ("FullyShardedDataParallel", "FSDP") or kind.startswith("FSDP"):
        raise ValueError("%s is spread over several processes: save it with torch.distributed.checkpoint" % name)
    if kind in ("DistributedDataParallel", "DataParallel"):
        inner: Stateful = getattr(part, "module")
        return inner
    return part

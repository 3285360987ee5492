"""Checkpoint folders of Hugging Face's Trainer, which writes `trainer_state.json` after model, optimizer, scheduler and random state."""

from typing import Optional

from .base import Folder, FolderVerdict

_STATE = "trainer_state.json"
# Files that only the Trainer writes, before `trainer_state.json`.
_BEFORE = ("training_args.bin", "scheduler.pt", "optimizer.pt", "rng_state.pth", "rng_state_0.pth")


def folder_check(folder: Folder) -> Optional[FolderVerdict]:
    if _STATE in folder.sizes:
        step = folder.json(_STATE).get("global_step")
        return FolderVerdict(True, "%s is there" % folder.at(_STATE), folder.paths(), step if isinstance(step, int) else None)
    if sum(name in folder.sizes for name in _BEFORE) >= 2:
        return FolderVerdict(False, "%s does not exist yet" % folder.at(_STATE), folder.paths())
    return None

"""Chooses the checkpoint for the start of the command, and the next one if the command cannot resume from it."""

import os
from typing import Optional, Set

from .attempt import Attempt
from .checkpoint.restore import StoredCheckpoints, Restorer
from .endings import Ending
from .keys import CheckpointId
from .paths import remove_tree

# A command that fails later than this after its start, without any progress report, did not fail because of its checkpoint.
_STEP_BACK_WITHIN_MS = 10 * 60_000


class Resuming:
    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._context = attempt.context
        self._checkpointing = attempt.checkpointing
        self._tried: Set[CheckpointId] = set()
        """Checkpoints that the command failed on."""
        self._may_start_over = True
        """True if none of them was certainly whole: then possibly no save ever was."""
        self._names_before: Optional[Set[str]] = None
        """The names that the bundle has put into the checkpoint directory."""

    def restore(self) -> StoredCheckpoints:
        """Raises `GaveUp` when the store does not answer in time and `OSError` when the disk refuses a write."""
        context, checkpointing, order = self._context, self._checkpointing, self._attempt.order
        self._attempt.enter("restoring")
        checkpointing.prepare()
        self._clear(checkpointing.directory)
        is_start = context.memory.is_first_start and not self._tried
        restorer = Restorer(context.store, context.keys, order["jobId"], self._attempt.stopping.patience, is_start)
        found: StoredCheckpoints = restorer.restore(
            order["attempt"],
            checkpointing.directory,
            context.paths.restoring,
            context.clock,
            context.remark,
            order["checkpoint"]["quietMs"],
            self._tried,
            checkpointing.restores.begin,
            context.options.user,
        )
        checkpointing.note_restored(found.restored)
        return found

    def _clear(self, directory: str) -> None:
        """Removes the files of the last checkpoint and of the command before another checkpoint is restored."""
        names = set(os.listdir(directory))
        if self._names_before is None:
            self._names_before = names
        for name in names - self._names_before:
            remove_tree(os.path.join(directory, name))

    def steps_back(self, ending: Ending, lasted_ms: int) -> bool:
        """Whether the command failed before its first new step, so that its checkpoint may be the cause."""
        checkpointing, restored = self._checkpointing, self._checkpointing.restored
        if ending.outcome != "failed" or ending.reason != "workload" or restored is None:
            return False
        if self._context.progress.first_step_at_ms is not None or checkpointing.restores.has_gone_on:
            return False
        if lasted_ms > _STEP_BACK_WITHIN_MS:
            return False
        checkpointing.restores.end("failed", ending.message)
        self._tried.add(restored.checkpoint)
        self._may_start_over = self._may_start_over and not restored.is_whole
        self._context.remark(
            "the command failed right after resuming from checkpoint %s: using the previous checkpoint"
            % restored.checkpoint.name
        )
        checkpointing.uploads.give_up()
        return True

    def may_run(self, found: StoredCheckpoints) -> bool:
        """Whether the command may be run again. Without a checkpoint it may when none of the checkpoints that it failed on was complete."""
        if found.restored is not None or self._may_start_over:
            return True
        self._context.remark("no checkpoint is left to resume from")
        return False

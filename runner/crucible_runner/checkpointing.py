"""The checkpoint that the command starts with, and those that it makes."""

import os
from typing import Callable, List, Optional

from .checkpoint.history import RestoreBook
from .checkpoint.overdue import Overdue
from .checkpoint.restore import StoredCheckpoints, Restored
from .checkpoint.scan import Filter
from .checkpoint.scanner import Rules, Scanner
from .checkpoint.sending import Settings
from .checkpoint.uploads import Checkpoints
from .context import Context
from .endings import Failed
from .globs import remarks_about
from .paths import checkpoint_directory, make_folders
from .walls import Walls


class Checkpointing:
    """Each start of the command has its own scanner, uploads and warnings; they are None before the first."""

    def __init__(self, context: Context, order: dict) -> None:
        self._context = context
        self._order = order
        paths = context.paths
        self.directory = checkpoint_directory(paths.work, paths.checkpoints, order["checkpoint"]["directory"])
        self.restores = RestoreBook(context.store, context.keys, order["attemptId"], context.clock, context.remark)
        self.restored: Optional[Restored] = None
        """The checkpoint that the command was started with."""
        self.scanner: Optional[Scanner] = None
        self.uploads: Optional[Checkpoints] = None
        self._overdue: Optional[Overdue] = None
        checkpoint = order["checkpoint"]
        for remark in remarks_about(pattern for name in ("include", "exclude", "complete") for pattern in checkpoint.get(name, ())):
            context.remark(remark)

    def walls(self, *more: str) -> Walls:
        """Links out of the job's directories are not followed, with or without a user of its own: their targets are inputs, or not the job's."""
        return Walls((*self._context.paths.of_job, *more))

    def prepare(self) -> None:
        """Runs before the command starts, and again before the command restarts with another checkpoint. Raises `Failed`."""
        context, checkpoint = self._context, self._order["checkpoint"]
        paths, user = context.paths, context.options.user
        walls = self.walls(paths.held)
        # Checked before the directory is created: the command may have put a link into its path.
        if not walls.holds(self.directory):
            raise Failed("setup", "the checkpoint directory is a link that points outside the job's directories")
        made = make_folders(self.directory)
        if user is not None:
            for path in made:
                os.chown(path, user, user, follow_symlinks=False)
        wanted = Filter(checkpoint.get("include", ()), checkpoint.get("exclude", ()), walls)
        rules = Rules(checkpoint["quietMs"], checkpoint.get("complete", ()), wanted)
        self.scanner = Scanner(paths, self.directory, rules, context.clock, context.progress)
        settings = Settings(
            self._order["jobId"],
            self._order["attempt"],
            self.directory,
            paths.staging,
            checkpoint["everyMs"],
        )
        self.uploads = Checkpoints(settings, self.scanner, context.store, context.keys, self._on_new)
        self._overdue = Overdue(self.uploads, self.scanner, self.directory, paths.work, context.clock)

    def note_restored(self, restored: Optional[Restored]) -> None:
        self.restored = restored

    def begin(self, found: StoredCheckpoints, pids: Callable[[], List[int]]) -> None:
        """Runs before the command can write anything: the present files are not a new checkpoint. `pids` names the command's processes."""
        context, checkpoint = self._context, self._order["checkpoint"]
        self.uploads.begin(found, context.clock, context.remark, pids)
        self._overdue.begin(checkpoint["quietMs"], checkpoint["everyMs"], context.remark)

    def end_warnings(self) -> None:
        """The command has ended."""
        self._overdue.end()

    def note_left_out(self) -> None:
        """The last scan is over, and the log is not."""
        if self._overdue is not None:
            self._overdue.look_left_out()

    def upload_ms(self) -> int:
        """Returns the duration of the last upload."""
        return self.uploads.upload_ms if self.uploads is not None else 0

    def hurry(self) -> None:
        if self.uploads is not None:
            self.uploads.hurry()

    def saving(self) -> Optional[dict]:
        return self.uploads.saving() if self.uploads is not None else None

    def facts(self) -> dict:
        """Returns the fields of beats and results about checkpoints."""
        facts: dict = {"checkpoint": self._newest(), "restoredFrom": self._restored()}
        if self.restored is not None:
            facts["restoredBecause"] = self.restored.why
        state = self.uploads.newest_state if self.uploads is not None else None
        if state is not None:
            facts["checkpointState"] = state
        warning = self._overdue.warning if self._overdue is not None else None
        if warning is not None:
            facts["warning"] = warning
        return facts

    def _newest(self) -> Optional[dict]:
        if self.uploads is not None and self.uploads.newest is not None:
            return self.uploads.newest.document(self.uploads.is_newest_step_known)
        return self._restored()

    def _restored(self) -> Optional[dict]:
        restored = self.restored
        return restored.checkpoint.document(restored.is_step_known) if restored is not None else None

    def _on_new(self) -> None:
        """Records that the command continued from its checkpoint, unless it counts its steps from the beginning again."""
        step, restored = self._context.progress.step(), self.restored
        if restored is None or not restored.is_step_known or step is None or step > restored.checkpoint.step:
            self.restores.end("went-on")

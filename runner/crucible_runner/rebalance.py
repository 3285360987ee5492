"""The answer to a rebalance recommendation of the provider."""

from typing import Optional

from .checkpointing import Checkpointing
from .context import Context
from .timekeeping import Timekeeping
from .documents import dump
from .paths import write_whole

_ANSWERS = {
    "save": "saving a checkpoint and continuing",
    "move": "moving to another machine",
    "ignore": "going on",
}


class Rebalance:
    """A recommendation is not an interruption notice: the machine may stay for days."""

    def __init__(self, context: Context, order: dict, timekeeping: Timekeeping, checkpointing: Checkpointing) -> None:
        self._context = context
        self._order = order
        self._timekeeping = timekeeping
        self._checkpointing = checkpointing
        self.at_ms: Optional[int] = None
        """The time of the recommendation; None without one."""

    def on_recommendation(self, at_ms: int) -> None:
        answer = self._order.get("onRebalance", "save")
        self.at_ms = at_ms
        words = "the provider may take this machine back soon (a rebalance recommendation): %s"
        self._context.remark(words % _ANSWERS[answer])
        self._timekeeping.send_soon()
        if answer == "move":
            self._timekeeping.ask_to_stop("migrated", self._order["drainMs"])
        elif answer == "save":
            self._ask_for_checkpoint(at_ms)

    def _ask_for_checkpoint(self, at_ms: int) -> None:
        """Uploads the newest saved checkpoint at once, regardless of the pace, and asks a command that uses the helper to save a new one."""
        self._checkpointing.hurry()
        try:
            write_whole(self._context.paths.save, dump({"atMs": at_ms}))
        except OSError as error:
            self._context.remark("save.json cannot be written for the command: %s" % error)

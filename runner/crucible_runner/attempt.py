"""One attempt with its order, and everything that runs in parallel to its stages."""

import itertools
import os
import threading
from typing import Callable

from .artifacts import GIB_MAX, Keeper
from .checkpointing import Checkpointing
from .context import Context
from .control.beats import seq_of
from .timekeeping import Timekeeping
from .keys import parse_range
from .logs.shipper import Shipper
from .process.gpus import Gpus
from .rebalance import Rebalance
from .stopping import Stopping
from .store.retry import persist
from .tracking import Tracking

# Attempts without a machine have no beat.
_BEATS_READ_MAX = 20


class Attempt:
    def __init__(self, context: Context, order: dict) -> None:
        """Raises `OSError` when the disk refuses a write."""
        options, store, keys, clock = context.options, context.store, context.keys, context.clock
        self.context = context
        self.order = order
        self.checkpointing = Checkpointing(context, order)
        self.timekeeping = Timekeeping(context.post, context.remark, self._on_lost_timekeeper)
        self.stopping = Stopping(context, order, self.timekeeping)
        self.rebalance = Rebalance(context, order, self.timekeeping, self.checkpointing)
        self.tracking = Tracking(options.job, options.attempt, clock, context.remark, self.timekeeping.send_soon)
        self.gpus = Gpus()
        self.shipper = Shipper(context.book, store, keys, context.trouble("sending log lines"))
        walls, gib_max = self.checkpointing.walls(), order.get("artifactGiBMax", GIB_MAX)
        self.keeper = Keeper(store, keys, clock, context.remark, walls, gib_max)

    def start(self, beat_facts: Callable[[], dict]) -> None:
        """Continues after an earlier runner, then starts all threads. `beat_facts` returns the fields of a beat that the timekeeper does not
        know. Raises `GaveUp` when the store does not answer in time."""
        earlier_seq = self._continue_after_earlier_runner()
        self.context.pass_on_remarks()
        self.shipper.start()
        self.gpus.start()
        self.timekeeping.on_recommendation(self.rebalance.on_recommendation)
        self.timekeeping.start(self.order["beatMs"], earlier_seq, beat_facts, self.checkpointing.upload_ms)
        threading.Thread(target=self._retry_restores, name="restores", daemon=True).start()

    def enter(self, phase: str) -> None:
        self.context.phases.enter(phase)
        self.timekeeping.send_soon()

    def _retry_restores(self) -> None:
        pause = threading.Event()
        while not pause.wait(self.order["beatMs"] / 1000):
            self.checkpointing.restores.retry()

    def _on_lost_timekeeper(self) -> None:
        """Without its timekeeper, nothing would stop this attempt in time. The guard has noticed too, unless it is dead."""
        self.context.duties.take_over(self.context.clock)
        os._exit(1)

    def _continue_after_earlier_runner(self) -> int:
        """Returns the number of the newest beat of an earlier runner in this directory, or 0."""
        context = self.context
        store, keys = context.store, context.keys
        is_hopeless, trouble = self.stopping.is_hopeless, context.trouble_at_start("looking for an earlier runner")
        names = persist(lambda: store.list(keys.logs), is_hopeless, trouble)
        ranges = [parse_range(name[len(keys.logs) :]) for name in names]
        context.book.begin_after(max((found[1] for found in ranges if found is not None), default=0))
        beat = persist(lambda: store.get(keys.beat), is_hopeless, trouble)
        attempt = context.options.attempt
        earlier = range(attempt - 1, max(0, attempt - 1 - _BEATS_READ_MAX), -1)
        get = lambda each: persist(lambda: store.get(keys.beat_of(each)), is_hopeless, trouble)  # noqa: E731
        self.tracking.recall(itertools.chain([beat], map(get, earlier)))
        return 0 if beat is None else seq_of(beat)

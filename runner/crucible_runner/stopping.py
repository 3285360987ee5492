"""When and why the attempt must end: its lease, its limits, requests, and notices of the provider."""

from typing import Callable, Optional, Tuple

from .clock import machine_age_ms
from .context import Context
from .control.lease import Lease
from .control.limits import Limits, Spent
from .control.stop import Stop
from .control.watch import Hint, Watch, watch_notice
from .documents import DRAIN, dump, parse
from .notices import open_hint, open_source
from .paths import read_plain
from .seals import unseal_grant
from .store.retry import Patience


class Stopping:
    def __init__(self, context: Context, order: dict, upload_ms: Callable[[], int]) -> None:
        """`upload_ms` returns the duration of the last checkpoint upload. Raises `OSError` when the disk refuses a write."""
        clock, memory = context.clock, context.memory
        self._context = context
        self._order = order
        began_ms = memory.began_ms(order, machine_age_ms())
        self.lease = Lease(memory.lease_until_ms or memory.started_ms + order["leaseMs"])
        self.limits = Limits(order["limits"], memory.spent or Spent(began_ms, 0))
        self._save_ends()
        self.stop = Stop(clock, order, self.limits, self.lease, self._drain_stored_here, upload_ms)
        if "runMsMax" in order:
            self.stop.on_run_limit(clock.wall_ms() - (clock.mono_ms() - began_ms) + order["runMsMax"])
        context.signals.subscribe(self.stop.on_signal)
        left_ms = memory.left_to_start_ms(order, began_ms)
        self.is_late = memory.is_first_start and left_ms < 0
        """The machine has started too late for its command."""
        # A restarted runner already met this deadline at its first start; only the lease limits it now.
        self._hopeless_at_ms = clock.mono_ms() + left_ms if memory.is_first_start else None
        self.watch = Watch(context.store, context.keys, context.remark, self._use_grant)
        self.watch.begin(self.stop, self.lease, self.limits, self._on_moved)

    @property
    def patience(self) -> Patience:
        return Patience(self.is_stopped, self.is_hopeless)

    def is_stopped(self) -> bool:
        return self.stop.poll() is not None

    def is_hopeless(self) -> bool:
        """Whether the attempt is stopped, or too late to start its command."""
        is_too_late = self._hopeless_at_ms is not None and self._context.clock.mono_ms() > self._hopeless_at_ms
        return is_too_late or self.is_stopped()

    def end_ms(self) -> float:
        """Returns when the machine must be off (monotonic), which only a drain decides."""
        drain = self.stop.poll()
        return float("inf") if drain is None else drain.window_end_ms + self._order["powerOffMs"]

    def watch_notice(self, on_rebalance: Callable[[int], None]) -> None:
        """Starts to ask the provider whether it will take the machine back."""
        context, notice = self._context, self._order["notice"]
        if context.options.notice_file is not None:
            notice = {"kind": "file", "path": context.options.notice_file}
        if notice["kind"] == "file":
            context.post.tell({"notice": notice["path"]})
        if notice["kind"] != "none":
            poll = open_hint(notice)
            hint = poll and Hint(poll, on_rebalance)
            watch_notice(open_source(notice), self.stop, context.remark, context.clock, hint)

    def _drain_stored_here(self) -> Optional[Tuple[str, int]]:
        try:
            drain = parse(DRAIN, read_plain(self._context.paths.drain)[0])
            return drain["reason"], drain["windowMs"]
        except (OSError, ValueError):
            return None  # A system shutdown sends a signal without a reason.

    def _on_moved(self) -> None:
        try:
            self._save_ends()
        except OSError:
            pass  # A restarted runner then has the shorter lease, which is the safe side.

    def _save_ends(self) -> None:
        clock = self._context.clock
        hard_stop = self.limits.hard_stop(clock.mono_ms(), clock.wall_ms())
        # The guard ends the machine in the runner's place: late enough for a result, early enough to power off.
        off_ms = None if hard_stop is None else hard_stop.at_ms - self._order["powerOffMs"] // 2
        self._context.memory.save(self.lease.lapses_at_ms, off_ms, self.limits.spent)

    def _use_grant(self, sealed: dict) -> None:
        """Raises `ValueError` or `OSError` with the reason when the grant cannot be used."""
        self._context.store.take_grant(unseal_grant(dump(sealed), self._context.options.secret_key_file))

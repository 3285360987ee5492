"""When and why the attempt must end, as far as the runner itself decides; the rest its timekeeper tells it."""

import signal

from .clock import machine_age_ms
from .context import Context
from .timekeeping import Timekeeping
from .documents import dump
from .process import processes
from .seals import unseal_grant
from .store.retry import Patience


class Stopping:
    def __init__(self, context: Context, order: dict, timekeeping: Timekeeping) -> None:
        """Raises `OSError` when the disk refuses a write."""
        clock, memory = context.clock, context.memory
        self._context = context
        self.stop = timekeeping
        timekeeping.begin(order, memory, self._use_grant)
        context.signals.subscribe(self._pass_signal_on)
        left_ms = memory.left_to_start_ms(order, memory.began_ms(order, machine_age_ms()))
        self.is_late = memory.is_first_start and left_ms < 0
        """The machine has started too late for its command."""
        # A restarted runner already met this deadline at its first start; only the lease limits it now.
        self._hopeless_at_ms = clock.mono_ms() + left_ms if memory.is_first_start else None

    @property
    def patience(self) -> Patience:
        return Patience(self.is_stopped, self.is_hopeless)

    def is_stopped(self) -> bool:
        return self.stop.poll() is not None

    def is_hopeless(self) -> bool:
        """Whether the attempt is stopped, or too late to start its command."""
        is_too_late = self._hopeless_at_ms is not None and self._context.clock.mono_ms() > self._hopeless_at_ms
        return is_too_late or self.is_stopped()

    def _pass_signal_on(self) -> None:
        """Runs in a signal handler."""
        processes.send(self._context.post.timekeeper, signal.SIGTERM)

    def _use_grant(self, sealed: dict) -> None:
        """Raises `ValueError` or `OSError` with the reason when the grant cannot be used."""
        self._context.store.take_grant(unseal_grant(dump(sealed), self._context.options.secret_key_file))

"""The life of an attempt, from its order to its result."""

import sys
import time

from .attempt import Attempt
from .clock import Clock
from .context import Context
from .control.claim import ClaimedElsewhere
from .timekeeper import BEGIN_PATIENCE_MS
from .deadman import Deadman
from .documents import ORDER, dump, parse
from .endings import Ending
from .process import processes
from .process.guard import Options, Post
from .last_words import REFUSED_WORDS, leave_last_words
from .report import beat_facts, refusal
from .shapes import DocumentError
from .stages import Stages, failure_of_runner
from .store.retry import GaveUp, Refused, persist

_ABSENT_PATIENCE_MS = 15_000
_ABSENT_SCAN_SECONDS = 0.2
_REFUSAL_PATIENCE_MS = 60_000
# Clocks that differ by more than this were not kept by a clock service.
_SET_MS = 10 * 60_000


def run(options: Options, post: Post) -> int:
    """Runs the attempt to its end. Returns the exit code, which the control plane ignores."""
    try:
        context = Context(options, post, Clock())
    except (ValueError, OSError) as error:
        print("the runner cannot start: %s" % error, file=sys.stderr)
        return 2
    context.signals.listen()
    try:
        return Life(context).live()
    finally:
        context.duties.do()


class Life:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._until_ms = context.clock.mono_ms() + BEGIN_PATIENCE_MS

    def live(self) -> int:
        context = self._context
        deadman = Deadman(context.clock, context.duties, self._until_ms)
        if not context.memory.is_first_start:
            processes.end_all(context.options.machine, [], context.post.keep)
        try:
            body = self._read_order()
            if self._has_result():
                print("there is nothing to do: the attempt has a result", file=sys.stderr)
                return 0
            context.claim(self._is_starting_over)
            attempt = Attempt(context, self._dated(parse(ORDER, body)))
            deadman.follow(attempt.timekeeping.end_ms)
            attempt.start(lambda: beat_facts(attempt))
        except ClaimedElsewhere as error:
            print("there is nothing to do: %s" % error, file=sys.stderr)
            return 0
        except DocumentError as error:
            return self._refuse(Ending("failed", "runner", "The order is invalid: %s." % error))
        except Refused as error:
            leave_last_words(context, REFUSED_WORDS + str(error))
            return 1
        except GaveUp as error:
            print("the attempt cannot begin: %s" % error, file=sys.stderr)
            return 1
        except OSError as error:
            return self._refuse(failure_of_runner(error))
        Stages(attempt).run()
        return 0

    def _read_order(self) -> bytes:
        """Raises `GaveUp` when the order is absent or unreachable."""
        context, trouble = self._context, self._context.trouble_at_start("reading the order")
        absent_until_ms = context.clock.mono_ms() + _ABSENT_PATIENCE_MS
        while True:
            body = persist(lambda: context.store.get(context.keys.order), self._is_starting_over, trouble)
            if body is not None:
                return body
            if self._is_starting_over() or context.clock.mono_ms() > absent_until_ms:
                raise GaveUp("the store has no document at %s" % context.keys.order)
            time.sleep(_ABSENT_SCAN_SECONDS)

    def _dated(self, order: dict) -> dict:
        """Dates the order by the store's clock if one of the other two clocks was set wrong: it was written when it was issued."""
        context = self._context
        trouble = context.trouble_at_start("asking for the date of the order")
        age_ms = persist(lambda: context.store.age_ms(context.keys.order), self._is_starting_over, trouble)
        if age_ms is None:
            return order
        issued_at_ms = context.clock.wall_ms() - max(0, age_ms)
        is_certain = abs(issued_at_ms - order["issuedAtMs"]) < _SET_MS
        return order if is_certain else dict(order, issuedAtMs=issued_at_ms)

    def _has_result(self) -> bool:
        context, trouble = self._context, self._context.trouble_at_start("looking for a result")
        return (
            persist(lambda: context.store.get(context.keys.result), self._is_starting_over, trouble)
            is not None
        )

    def _is_starting_over(self) -> bool:
        """Without an order there is neither a lease nor a limit; this is the limit."""
        return self._context.signals.is_received or self._context.clock.mono_ms() > self._until_ms

    def _refuse(self, ending: Ending) -> int:
        """Ends an attempt that cannot begin."""
        context = self._context
        print(ending.message, file=sys.stderr)
        body = dump(refusal(context, ending))
        until_ms = context.clock.mono_ms() + _REFUSAL_PATIENCE_MS
        persist(
            lambda: context.store.put_if_absent(context.keys.result, body),
            lambda: context.clock.mono_ms() > until_ms,
            context.trouble("putting the result"),
        )
        return 1

"""The timekeeper: a process next to the runner that owns all that must not wait for work on a job's data.

It sends the beats, reads the control plane's documents and the provider's notices, and decides when the attempt must stop. The runner
reports facts to it and learns from it when to stop. If the runner does not answer, whatever the cause, beats go on with its last facts, and
the timekeeper ends the workload and the machine in time.
"""

import os
import select
import signal
import sys
import threading
import time
from typing import Callable, List, NamedTuple, Optional, Tuple

from .clock import Clock, machine_age_ms
from .control.beats import Beats
from .dates import Dates
from .control.lease import Lease
from .control.limits import Limits, Spent
from .control.memory import Memory, boot_id
from .control.stop import Drain, Stop
from .control.watch import Hint, Watch, watch_notice
from .deadman import OVERDUE_MS, LastDuties
from .documents import DRAIN, dump, parse
from .keys import Keys
from .line import Outbox
from .notices import open_hint, open_source
from .paths import Paths, read_plain
from .process import processes
from .process.container import remove_container
from .process.guard import Options, Post
from .seals import unseal_grant
from .store.base import Store
from .store.opening import open_store
from .store.retry import Trouble

_LOOK_SECONDS = 0.1
_ASK_MS = 1_000
# A runner that has left a question unanswered for this long cannot stop its command in time.
SILENT_MS = 5_000
# A runner that can end itself has done so by then; the same limit for both would let chance decide who does.
_OVERDUE_MS = OVERDUE_MS + SILENT_MS
# Facts are this old only if the runner is held up: it reports them every second.
_STALE_MS = 3_000
# Time after which a machine that has not begun an attempt ends.
BEGIN_PATIENCE_MS = 60 * 60_000


class _Machine(NamedTuple):
    """What an attempt needs in addition to its order."""

    clock: Clock
    memory: Memory
    store: Store


class _Attempt:
    """The attempt from the moment when its order is known."""

    def __init__(self, options: Options, order: dict, machine: _Machine, remark: Callable[[str], None]) -> None:
        """Raises `OSError` when the disk refuses a write."""
        clock, memory = machine.clock, machine.memory
        self._order = order
        self._options = options
        self._memory = memory
        self._clock = clock
        self._remark = remark
        self._paths = Paths(options.root, options.job_root, options.user is not None)
        self._upload_ms = 0
        self._facts: dict = {}
        self._facts_at_ms = clock.mono_ms()
        self.has_looked = False
        """Whether `drain.json` was read since the start."""
        began_ms = memory.began_ms(order, machine_age_ms())
        dates = Dates(clock)
        machine.store.on_date(dates.on_store_date)
        self.lease = Lease(memory.lease_until_ms or memory.started_ms + order["leaseMs"])
        self.limits = Limits(order["limits"], memory.spent or Spent(began_ms, 0), dates)
        self._save_ends()
        self.stop = Stop(clock, order, self.limits, self.lease, dates, self._drain_stored_here, lambda: self._upload_ms)
        if "runMsMax" in order:
            self.stop.on_run_limit(began_ms + order["runMsMax"])
        self.store = machine.store
        self._keys = Keys(options.job, options.attempt)
        self.beats = Beats(self.store, self._keys, self.lease, clock)

    def start_watch(self, use_grant: Callable[[dict], None]) -> None:
        watch = Watch(self.store, self._keys, self._remark, use_grant)
        watch.begin(self.stop, self.lease, self.limits, self._on_moved)
        watch.start(self._order["beatMs"], self._clock, self._on_look)

    def start_notices(self, tell_guard: Callable[[dict], None], on_recommendation: Callable[[int], None]) -> None:
        """Starts to ask the provider whether it will take the machine back."""
        notice = self._order["notice"]
        if self._options.notice_file is not None:
            notice = {"kind": "file", "path": self._options.notice_file}
        if notice["kind"] == "file":
            tell_guard({"notice": notice["path"]})
        if notice["kind"] != "none":
            poll = open_hint(notice)
            hint = poll and Hint(poll, on_recommendation)
            watch_notice(open_source(notice), self.stop, self._remark, self._clock, hint)

    def start_beats(self, earlier_seq: int) -> None:
        self.beats.go_on_after(earlier_seq)
        self.beats.start(self._order["beatMs"], self._beat, Trouble("sending beats", self._remark, self._clock))

    def take_facts(self, facts: dict, upload_ms: int) -> None:
        self._facts, self._upload_ms = facts, upload_ms
        self._facts_at_ms = self._clock.mono_ms()

    def _beat(self) -> dict:
        """Returns all fields of a beat except its number."""
        mono_ms, wall_ms = self._clock.mono_ms(), self._clock.wall_ms()
        beat = dict(
            self._facts,
            limitsSeq=self.limits.seq,
            leaseSeq=self.lease.seq,
            noNoticeAtMs=self.stop.no_notice_at_ms,
            clockMs=wall_ms,
            uptimeMs=max(0, mono_ms - self._memory.started_ms),
        )
        age_ms = mono_ms - self._facts_at_ms
        if age_ms > _STALE_MS:
            beat["stalledSinceMs"] = max(0, wall_ms - age_ms)
        return beat

    def state(self, drain: Optional[Drain]) -> dict:
        """Returns what the runner must learn; instants are monotonic."""
        return {
            "drain": drain,
            "endMs": self.end_ms(drain),
            "noNoticeAtMs": self.stop.no_notice_at_ms,
            "hasLooked": self.has_looked,
        }

    def end_ms(self, drain: Optional[Drain]) -> int:
        """Returns when the machine must be off: without a drain, when the last one that is certain to come would be over."""
        power_off_ms = self._order["powerOffMs"]
        if drain is not None:
            return drain.window_end_ms + power_off_ms
        lease_ms = self.lease.lapses_at_ms + self._order["drainMs"] + power_off_ms
        hard_stop = self.limits.hard_stop()
        return lease_ms if hard_stop is None else min(lease_ms, hard_stop.at_ms)

    def silent_end_ms(self, drain: Drain) -> int:
        """Returns when a machine whose runner does not answer ends: late enough for a result of a runner that answers again, and early
        enough to power off."""
        return drain.window_end_ms + self._order["powerOffMs"] // 2

    def _on_look(self) -> None:
        self.has_looked = True

    def _drain_stored_here(self) -> Optional[Tuple[str, int]]:
        try:
            drain = parse(DRAIN, read_plain(self._paths.drain)[0])
            return drain["reason"], drain["windowMs"]
        except (OSError, ValueError):
            return None  # A system shutdown sends a signal without a reason.

    def _on_moved(self) -> None:
        try:
            self._save_ends()
        except OSError:
            pass  # A restarted runner then has the shorter lease, which is the safe side.

    def _save_ends(self) -> None:
        hard_stop = self.limits.hard_stop()
        # The machine's timer ends the machine in the runner's place: late enough for a result, early enough to power off.
        off_ms = None if hard_stop is None else hard_stop.at_ms - self._order["powerOffMs"] // 2
        self._memory.save(self.lease.lapses_at_ms, off_ms, self.limits.spent)


class Timekeeper:
    def __init__(self, options: Options, post: Post, clock: Clock) -> None:
        self._options = options
        self._post = post
        self._clock = clock
        self._line = post.line
        self._outbox = Outbox(post.line)
        self._duties = LastDuties(options, post, post.tell_guard)
        self._begin_until_ms = clock.mono_ms() + BEGIN_PATIENCE_MS
        self._store: Optional[Store] = None
        self._attempt: Optional[_Attempt] = None
        self._runner = 0
        self._is_signalled = False
        self._told: Optional[tuple] = None
        self._asked_ms: Optional[int] = None
        self._told_ms = 0
        self._has_killed = False
        self._tells = {
            "begin": self._begin,
            "start": self._start,
            "facts": self._take_facts,
            "drain": lambda drain: self._attempt.stop.on_document(drain["reason"], drain["windowMs"]),
            "container": self._duties.remember_container,
            "foreign": lambda _: self._duties.mark_foreign(),
            "end": self._end_beats,
            "here": lambda _: None,
        }

    def _open_store(self) -> Optional[Store]:
        """Before the order comes, while the runner does the same."""
        try:
            return open_store(self._options.store, self._options.grant_file, self._options.secret_key_file)
        except (OSError, ValueError):
            return None  # The runner finds the same error, and reports it.

    def run(self) -> None:
        """Returns only when the guard is dead and its duties are done."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._store = self._open_store()
        while True:
            ready, _, _ = select.select([self._line], [], [], _LOOK_SECONDS)
            if ready:
                notes = self._line.receive()
                if notes is None:
                    return self._outlive_runner()
                self._obey(notes)
            self._look()

    def _on_signal(self, *_: object) -> None:
        self._is_signalled = True
        if self._attempt is not None:
            self._attempt.stop.on_signal()

    def _obey(self, notes: List[dict]) -> None:
        for note in notes:
            for name, value in note.items():
                self._tells[name](value)
        if notes:
            self._asked_ms = None

    def _begin(self, begin: dict) -> None:
        self._runner = begin["runner"]
        try:
            if self._store is None:
                raise OSError(0, "the store cannot be opened")
            memory = Memory(Paths(self._options.root).memory, self._options.attempt_id, self._clock, boot_id())
            memory.began_at(*begin["started"])
            machine = _Machine(self._clock, memory, self._store)
            self._attempt = _Attempt(self._options, begin["order"], machine, self._remark)
        except Exception as error:  # whatever the error is: the runner reports it in the result
            number = error.errno if isinstance(error, OSError) and error.errno is not None else 0
            return self._outbox.put({"refused": [number, str(error)]})
        if self._is_signalled:
            self._attempt.stop.on_signal()
        self._outbox.put({"begun": True})

    def _start(self, start: dict) -> None:
        attempt = self._attempt
        attempt.start_watch(self._use_grant)
        attempt.start_notices(self._post.tell_guard, lambda since_ms: self._outbox.put({"recommendedAtMs": since_ms}))
        attempt.take_facts(start["facts"], 0)
        attempt.start_beats(start["earlierSeq"])

    def _take_facts(self, told: dict) -> None:
        self._attempt.take_facts(told["facts"], told["uploadMs"])
        if told["isSoon"]:
            self._attempt.beats.send_soon()

    def _end_beats(self, _: object) -> None:
        self._attempt.beats.end(lambda: self._outbox.put({"ended": True}))

    def _remark(self, text: str) -> None:
        self._outbox.put({"remark": text})

    def _use_grant(self, sealed: dict) -> None:
        """Raises `ValueError` or `OSError` with the reason when the grant cannot be used."""
        self._attempt.store.take_grant(unseal_grant(dump(sealed), self._options.secret_key_file))
        self._outbox.put({"grant": sealed})

    def _look(self) -> None:
        attempt, now_ms = self._attempt, self._clock.mono_ms()
        if attempt is None:
            if now_ms > self._begin_until_ms + _OVERDUE_MS:
                self._end("the attempt did not begin in time")
        else:
            drain = attempt.stop.poll()
            self._ask(attempt.state(drain), now_ms)
            self._enforce(drain, now_ms)
        try:
            self._outbox.flush()
        except OSError:
            pass  # The next receipt shows the end of the runner.

    def _ask(self, state: dict, now_ms: int) -> None:
        """Each state is answered; one that the runner has not yet read is not followed by others."""
        news = (state["drain"], state["hasLooked"], state["noNoticeAtMs"])
        is_due = news != self._told or now_ms - self._told_ms >= _ASK_MS
        if self._asked_ms is None and is_due:
            self._outbox.put({"state": state})
            self._told, self._asked_ms, self._told_ms = news, now_ms, now_ms

    def _enforce(self, drain: Optional[Drain], now_ms: int) -> None:
        attempt = self._attempt
        if now_ms > attempt.end_ms(drain) + _OVERDUE_MS:
            self._end("the runner hangs and is overdue")
        is_silent = self._asked_ms is not None and now_ms - self._asked_ms > SILENT_MS
        if drain is None or not is_silent or now_ms < drain.window_end_ms:
            return
        if not self._has_killed:
            self._has_killed = True
            print("the runner does not answer: killing the command, because its time to stop has passed", file=sys.stderr, flush=True)
            threading.Thread(target=self._kill_workload, name="kill", daemon=True).start()
        if now_ms >= attempt.silent_end_ms(drain):
            self._end("the runner does not answer, and its time is over")

    def _kill_workload(self) -> None:
        if self._duties.container is not None:
            remove_container(self._duties.container)
        guard = self._post.guard
        roots = [guard] if os.getppid() == guard else [self._runner]
        processes.end_all(self._options.machine, roots, [guard, self._runner])

    def _end(self, words: str) -> None:
        """Ends runner, workload and machine: through the guard, or without it when it is dead or does not answer."""
        print("%s: ending the machine" % words, file=sys.stderr, flush=True)
        self._post.tell_guard({"over": True})
        self._duties.take_over(self._clock)
        os._exit(1)

    def _outlive_runner(self) -> None:
        """The guard ends this process after the runner. Without a guard, or with one that is stopped, its duties are done here."""
        while os.getppid() == self._post.guard and not processes.is_stopped(self._post.guard):
            time.sleep(_LOOK_SECONDS)
        self._duties.do()


def keep_time(options: Options, post: Post) -> int:
    """Runs the timekeeper to its end. Returns the exit code, which nothing reads."""
    Timekeeper(options, post, Clock()).run()
    return 0

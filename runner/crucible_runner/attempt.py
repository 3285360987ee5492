"""One attempt on this machine: the state that all its stages share."""

import itertools
import os
import signal
import time
import zipfile
from typing import Callable, Optional, Tuple

from . import PROGRAM
from .artifacts import Keeper
from .checkpoint.history import RestoreBook
from .checkpoint.scanner import Scanner, Rules
from .checkpoint.overdue import Overdue
from .checkpoint.restore import Restored
from .checkpoint.scan import Filter
from .checkpoint.sending import Settings
from .checkpoint.uploads import Checkpoints
from .clock import CLOCK_SLACK_MS, Clock, machine_age_ms
from .control.beats import Beats
from .control.claim import ClaimedElsewhere, claim, machine_id, send_name
from .control.lease import Lease
from .control.limits import Limits, Spent
from .control.memory import Memory, boot_id
from .control.phases import Phases
from .control.stop import Stop
from .control.watch import Hint, Watch, watch_notice
from .documents import DRAIN, dump, parse
from .endings import Failed
from .keys import Keys, parse_range
from .logs.book import LogBook
from .logs.shipper import Shipper
from .notices import open_hint, open_source
from .paths import Paths, checkpoint_directory, make_folders, read_plain, write_whole
from .process.gpus import Gpus
from .process.guard import Options, Post
from .progress import Progress
from .seals import unseal_grant
from .store.base import Store
from .store.opening import open_store
from .store.retry import Patience, Trouble, persist
from .tracking import Tracking
from .walls import NO_WALLS, Walls

_HELPERS = "helpers/"
# Attempts without a machine have no beat.
_BEATS_READ_MAX = 20
_ANSWERS = {
    "save": "saving a checkpoint, and going on",
    "move": "going to another machine",
    "ignore": "going on",
}


class Attempt:
    """The parts that live as long as the attempt. `begin` needs the order; everything before it works without the order."""

    def __init__(self, options: Options, post: Post, clock: Clock) -> None:
        """Raises `ValueError` for invalid arguments and `OSError` when the disk refuses a write."""
        self.options = options
        self.post = post
        self.clock = clock
        self.paths = Paths(options.root, options.job_root)
        self.memory = Memory(self.paths.memory, options.attempt_id, clock, boot_id())
        self.store: Store = open_store(options.store, options.grant_file, options.secret_key_file)
        self.keys = Keys(options.job, options.attempt)
        self.paths.make()
        self.book = LogBook(self.paths.logs, clock)
        self.phases = Phases(clock)
        self.progress = Progress(self.paths.progress, clock)
        self.tracking = Tracking(options.job, options.attempt, clock, self.remark)
        self.gpus = Gpus()
        self.is_signalled = False
        self.stop: Optional[Stop] = None
        self.checkpoints: Optional[Checkpoints] = None
        self.restored: Optional[Restored] = None
        """The checkpoint that the command was started with."""
        self.keeper: Optional[Keeper] = None
        """Uploads the artifacts; set when their stage begins."""
        self.overdue: Optional[Overdue] = None
        self.rebalance_at_ms: Optional[int] = None
        """The time of the provider's rebalance recommendation, if any."""
        self.container: Optional[str] = None
        """Name of a container that may have to be ended."""
        self.is_foreign = False
        """The attempt belongs to another machine: resources under its name must not be ended here."""
        self._log = open(self.paths.log, "a", encoding="utf-8", errors="backslashreplace")

    def remark(self, text: str) -> None:
        """Writes a line about the attempt into its log and into the machine's own log."""
        self.book.remark(text)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self._log.write("%s %s\n" % (stamp, self.book.redactor.clean_text(text)))
            self._log.flush()
        except OSError:
            pass  # the disk is full; people read the other log

    def trouble(self, doing: str) -> Trouble:
        return Trouble(doing, self.remark, self.clock)

    def on_signal(self, *_: object) -> None:
        self.is_signalled = True
        if self.stop is not None:
            self.stop.on_signal()

    def listen_to_signals(self) -> None:
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def claim(self, is_over: Callable[[], bool]) -> None:
        """Must run before the runner writes anything into the store. Raises `ClaimedElsewhere` and `GaveUp`."""
        machine, send = machine_id(self.paths.machine_id), send_name(self.paths.send_name)
        trouble = self.trouble("claiming the attempt")
        try:
            persist(lambda: claim(self.store, self.keys.claim, machine, send), is_over, trouble)
        except ClaimedElsewhere:
            self.is_foreign = True
            self.post.tell({"foreign": True})
            raise

    def begin(self, order: dict) -> None:
        """Takes the order and starts everything that runs in parallel to the stages."""
        self.order = order
        started_ms, clock = self.memory.started_ms, self.clock
        self.lease = Lease(self.memory.lease_until_ms or started_ms + order["leaseMs"])
        began_ms = self.memory.began_ms(order, machine_age_ms())
        self.limits = Limits(order["limits"], self.memory.spent or Spent(began_ms, 0))
        self._save_ends()
        self.stop = Stop(clock, order, self.limits, self.lease)
        if "runMsMax" in order:
            self.stop.on_run_limit(clock.wall_ms() - (clock.mono_ms() - began_ms) + order["runMsMax"])
        self.stop.asked_here = self._asked_here
        self.stop.upload_ms = self.upload_ms
        if self.is_signalled:
            self.stop.on_signal()
        left_ms = self.memory.left_to_start_ms(order, began_ms)
        self.is_late = self.memory.is_first_start and left_ms < 0
        # A restarted runner already met this deadline at its first start; only the lease limits it now.
        self._hopeless_at_ms = clock.mono_ms() + left_ms if self.memory.is_first_start else None
        self.directory = checkpoint_directory(
            self.paths.work, self.paths.checkpoints, order["checkpoint"]["directory"]
        )
        self._go_on_after_runner_before()
        self.restores = RestoreBook(self.store, self.keys, self.options.attempt_id, self.clock, self.remark)
        self.shipper = Shipper(self.book, self.store, self.keys, self.trouble("sending log lines"))
        self.shipper.start()
        self.gpus.start()
        self.beats.start(order["beatMs"], self._beat, self.trouble("sending beats"))
        self.watch = Watch(self.store, self.keys, self.remark)
        self.watch.begin(self.stop, self.lease, self.limits, self._moved)
        self.watch.take_grant = self._take_grant
        self._watch_notice()

    def begin_checkpoints(self) -> None:
        """Runs before the command starts, and again before the command restarts with another checkpoint."""
        checkpoint = self.order["checkpoint"]
        walls = self.walls(self.paths.held)
        # Checked before the directory is created: the command may have put a link into its path.
        if not walls.holds(self.directory):
            raise Failed("setup", "the checkpoint directory is a link that leads out of the job's directories")
        made = make_folders(self.directory)
        if self.options.user is not None:
            for path in made:
                os.chown(path, self.options.user, self.options.user, follow_symlinks=False)
        wanted = Filter(checkpoint.get("include", ()), checkpoint.get("exclude", ()), walls)
        rules = Rules(checkpoint["quietMs"], checkpoint.get("complete", ()), wanted)
        self.scanner = Scanner(self.paths, self.directory, rules, self.clock, self.progress)
        settings = Settings(
            self.order["jobId"],
            self.order["attempt"],
            self.directory,
            self.paths.staging,
            checkpoint["everyMs"],
        )
        self.checkpoints = Checkpoints(settings, self.scanner, self.store, self.keys)
        self.checkpoints.on_new = self._note_new_checkpoint
        self.overdue = Overdue(self.checkpoints, self.scanner, self.directory, self.paths.work, self.clock)

    def walls(self, *more: str) -> Walls:
        """Without a container or a user of its own, a job can read every file that the runner can read."""
        is_apart = self.order["image"] is not None or self.options.user is not None
        return Walls((*self.paths.of_job, *more)) if is_apart else NO_WALLS

    def _note_new_checkpoint(self) -> None:
        """Records that the command continued from its checkpoint, unless it counts its steps from the beginning again."""
        step, restored = self.progress.step(), self.restored
        if restored is None or not restored.is_step_known or step is None or step > restored.checkpoint.step:
            self.restores.end("went-on")

    @property
    def patience(self) -> Patience:
        return Patience(self.is_stopped, self.is_hopeless)

    def is_stopped(self) -> bool:
        return self.stop is not None and self.stop.poll() is not None

    def is_hopeless(self) -> bool:
        is_too_late = self._hopeless_at_ms is not None and self.clock.mono_ms() > self._hopeless_at_ms
        return is_too_late or self.is_stopped()

    def enter(self, phase: str) -> None:
        self.phases.enter(phase)
        self.beats.send_soon()

    def upload_ms(self) -> int:
        """Returns the duration of the last checkpoint upload."""
        return self.checkpoints.upload_ms if self.checkpoints is not None else 0

    def newest_checkpoint(self) -> Optional[dict]:
        if self.checkpoints is not None and self.checkpoints.newest is not None:
            return self.checkpoints.newest.document(self.checkpoints.is_newest_step_known)
        return self._restored_checkpoint()

    def _restored_checkpoint(self) -> Optional[dict]:
        restored = self.restored
        return restored.checkpoint.document(restored.is_step_known) if restored is not None else None

    def checkpoint_facts(self) -> dict:
        """Returns the fields of beats and results about checkpoints and trackers."""
        facts: dict = {**self.tracking.facts(), "checkpoint": self.newest_checkpoint(), "restoredFrom": self._restored_checkpoint()}
        if self.restored is not None:
            facts["restoredBecause"] = self.restored.why
        state = self.checkpoints.newest_state if self.checkpoints is not None else None
        if state is not None:
            facts["checkpointState"] = state
        warning = self.overdue.warning if self.overdue is not None else None
        if warning is not None:
            facts["warning"] = warning
        return facts

    def _asked_here(self) -> Optional[Tuple[str, int]]:
        try:
            drain = parse(DRAIN, read_plain(self.paths.drain)[0])
            return drain["reason"], drain["windowMs"]
        except (OSError, ValueError):
            return None  # a signal without a reason, as in a system shutdown

    def _go_on_after_runner_before(self) -> None:
        trouble = self.trouble("looking for a runner before this one")
        names = persist(lambda: self.store.list(self.keys.logs), self.is_hopeless, trouble)
        ranges = [parse_range(name[len(self.keys.logs) :]) for name in names]
        self.book.begin_after(max((found[1] for found in ranges if found is not None), default=0))
        self.beats = Beats(self.store, self.keys, self.lease, self.clock)
        beat = persist(lambda: self.store.get(self.keys.beat), self.is_hopeless, trouble)
        if beat is not None:
            self.beats.go_on_after(beat)
        earlier = range(self.options.attempt - 1, max(0, self.options.attempt - 1 - _BEATS_READ_MAX), -1)
        get = lambda each: persist(lambda: self.store.get(self.keys.beat_of(each)), self.is_hopeless, trouble)  # noqa: E731
        self.tracking.recall(itertools.chain([beat], map(get, earlier)))
        self.tracking.on_new = self.beats.send_soon

    def _watch_notice(self) -> None:
        notice = self.order["notice"]
        if self.options.notice_file is not None:
            notice = {"kind": "file", "path": self.options.notice_file}
        if notice["kind"] == "file":
            self.post.tell({"notice": notice["path"]})
        if notice["kind"] != "none":
            poll = open_hint(notice)
            hint = poll and Hint(poll, self._on_rebalance)
            watch_notice(open_source(notice), self.stop, self.remark, self.clock, hint)

    def _on_rebalance(self, at_ms: int) -> None:
        """Handles a rebalance recommendation. It is not an interruption notice: the machine may stay for days."""
        answer = self.order.get("onRebalance", "save")
        self.rebalance_at_ms = at_ms
        self.remark("the provider may take this machine back soon (a rebalance recommendation): %s" % _ANSWERS[answer])
        self.beats.send_soon()
        if answer == "move":
            self.stop.on_document("migrated", self.order["drainMs"])
        elif answer == "save":
            self._ask_for_checkpoint(at_ms)

    def _ask_for_checkpoint(self, at_ms: int) -> None:
        """Uploads the newest saved checkpoint at once, regardless of the pace, and asks a command that uses the helper to save a new one."""
        if self.checkpoints is not None:
            self.checkpoints.hurry()
        try:
            write_whole(self.paths.save, dump({"atMs": at_ms}))
        except OSError as error:
            self.remark("the helper cannot be told to save: %s" % error)

    def _moved(self) -> None:
        try:
            self._save_ends()
        except OSError:
            pass  # a restarted runner then has the shorter lease, which is the safe side

    def _save_ends(self) -> None:
        hard_stop = self.limits.hard_stop(self.clock.mono_ms(), self.clock.wall_ms())
        # The guard ends the machine in the runner's place: late enough for a result, early enough to power off.
        off_ms = None if hard_stop is None else hard_stop.at_ms - self.order["powerOffMs"] // 2
        self.memory.save(self.lease.lapses_at_ms, off_ms, self.limits.spent)

    def _take_grant(self, sealed: dict) -> None:
        """Raises `ValueError` or `OSError` with the reason when the grant cannot be used."""
        self.store.take_grant(unseal_grant(dump(sealed), self.options.secret_key_file))

    def times(self) -> dict:
        """Returns the instants that show how long each part of a recovery took, as beats and results report them."""
        return {
            "firstStepAtMs": self.progress.first_step_at_ms,
            "firstStep": self.progress.first_step,
            "noNoticeAtMs": self.stop.no_notice_at_ms if self.stop is not None else None,
        }

    def _beat(self) -> dict:
        clock = self.clock
        beat = {
            "attemptId": self.options.attempt_id,
            "phase": self.phases.now,
            "progress": self.progress.document(),
            "gpus": self.gpus.now,
            **self.checkpoint_facts(),
            "limitsSeq": self.limits.seq,
            "leaseSeq": self.lease.seq,
            "logLines": self.book.lines,
            "clockMs": clock.wall_ms(),
            "uptimeMs": max(0, clock.mono_ms() - self.memory.started_ms),
            "phases": self.phases.document(),
        }
        hint = {} if self.rebalance_at_ms is None else {"rebalanceAtMs": self.rebalance_at_ms}
        saving = self._saving()
        return dict(beat, **self.times(), **hint, **({} if saving is None else {"saving": saving}))

    def _saving(self) -> Optional[dict]:
        if self.keeper is not None:
            return self.keeper.saving.document()
        return self.checkpoints.saving() if self.checkpoints is not None else None


def install_helper(paths: Paths) -> None:
    """Installs `crucible_job.py` and `crucible.checkpoint`, which are packed in the runner, where the workload can import them."""
    if not zipfile.is_zipfile(PROGRAM):
        return  # In a checkout they are in `bindings/python/crucible`.
    with zipfile.ZipFile(PROGRAM) as program:
        for name in program.namelist():
            if name.startswith(_HELPERS) and name.endswith(".py"):
                # `crucible` has no `__init__.py` here: an installed package of that name comes first, wherever it is.
                path = os.path.join(paths.helper, *name[len(_HELPERS) :].split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_whole(path, program.read(name))

"""The parts of the runner that work without an order."""

import os
import time

from .clock import Clock
from .control.claim import ClaimedElsewhere, claim, machine_id, send_name
from .control.memory import Memory, boot_id
from .control.phases import Phases
from .control.signals import Signals
from .deadman import LastDuties
from .keys import Keys
from .logs.book import LogBook
from .paths import Paths
from .process.guard import Options, Post
from .progress import Progress
from .store.base import Store
from .store.opening import open_store
from .store.retry import Trouble, persist
from .store.transfer import IsOver


class Context:
    def __init__(self, options: Options, post: Post, clock: Clock) -> None:
        """Raises `ValueError` for invalid arguments and `OSError` when the disk refuses a write."""
        self.options = options
        self.post = post
        self.clock = clock
        self.paths = Paths(options.root, options.job_root, options.user is not None)
        self.memory = Memory(self.paths.memory, options.attempt_id, clock, boot_id())
        self.store: Store = open_store(options.store, options.grant_file, options.secret_key_file)
        self.keys = Keys(options.job, options.attempt)
        self.paths.make()
        self.book = LogBook(self.paths.logs, clock)
        self.phases = Phases(clock)
        self.progress = Progress(self.paths.progress, clock)
        self.signals = Signals()
        self.duties = LastDuties(options, post, post.tell)
        self._log = open(self.paths.log, "a", encoding="utf-8", errors="backslashreplace")

    def remark(self, text: str) -> None:
        """Writes a line about the attempt into its log and into the machine's own log."""
        self.book.remark(text)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self._log.write("%s %s\n" % (stamp, self.book.redactor.clean_text(text)))
            self._log.flush()
        except OSError:
            pass  # The disk is full; people read the attempt's log.

    def pass_on_remarks(self) -> None:
        """Writes what the program that started the runner has left for people, once."""
        try:
            with open(self.paths.remarks, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            os.unlink(self.paths.remarks)
        except OSError:
            return  # there is nothing to say
        for line in lines:
            self.remark(line)

    def trouble(self, doing: str) -> Trouble:
        return Trouble(doing, self.remark, self.clock)

    def trouble_at_start(self, doing: str) -> Trouble:
        """For requests before the workload: those of a restarted runner have the patience of a workload that was running."""
        return Trouble(doing, self.remark, self.clock, self.memory.is_first_start)

    def claim(self, is_over: IsOver) -> None:
        """Must run before the runner writes any document of the attempt. Raises `ClaimedElsewhere` and `GaveUp`."""
        machine, send = machine_id(self.paths.machine_id), send_name(self.paths.send_name)
        trouble = self.trouble_at_start("claiming the attempt")
        try:
            persist(lambda: claim(self.store, self.keys.claim, machine, send), is_over, trouble)
        except ClaimedElsewhere:
            self.duties.mark_foreign()
            raise
        # One of them may be deleted by hand.
        self.store.bind((self.keys.claim, self.keys.order))

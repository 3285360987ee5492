"""A job: its state, its files, and the operations on it."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Callable, Generic, Mapping, Optional, Sequence, Tuple, TypeVar, Union, cast

from truffle.cli import Document, Program

from . import checks, html, live
from .calls import Follow, HasProgram, Run, Steps, Stream, operation, options
from .documents import read, read_all
from .errors import JobFailed
from .records import (
    Artifact,
    Checkpoint,
    DownloadedCheckpoint,
    Event,
    Logs,
    WhatIf,
    Why,
    checkpoint_of,
    log_lines,
    why_of,
)
from .requirements import Dollars, amount
from .status import Changes, Status, status_of
from .submission import PathLike

T = TypeVar("T")

#: Lines of the log that `JobFailed` has.
LOG_LINES = 20

#: More artifacts than a job can have: the command would list them in pages.
ARTIFACTS_MAX = 1_000_000_000


class Job(HasProgram, Generic[T]):
    """A job. Its methods wait; each has a second form for asyncio: ``job.cancel()`` or ``await job.cancel.aio()``.

    Attributes:
        id: The id.
        name: The name in lists.
        last: The newest `Status` that this object has seen; None before the first.
        warnings: What `MLPlatform.submit` warned of.
        inferred: Settings that it has read from the program, each with its place.
    """

    def __init__(
        self,
        program: Program,
        id: str,
        *,
        name: str = "",
        last: Optional[Status] = None,
        warnings: Tuple[str, ...] = (),
        inferred: Tuple[Mapping[str, Any], ...] = (),
        is_function: bool = False,
        key: Optional[str] = None,
    ) -> None:
        self._program = program
        self.id = id
        self._name = name
        self.last = last
        self.warnings = warnings
        self.inferred = inferred
        self._is_function = is_function
        # Signs the result of a function.
        self._key = key

    @property
    def name(self) -> str:
        """The name in lists. Asks once, if it is not known yet."""
        return self._name or self.status().name

    @property
    def state(self) -> str:
        """The state now. Asks every time; ``job.last.state`` does not."""
        return self.status().state or html.UNKNOWN

    @operation
    def status(self) -> Steps[Status]:
        """Everything about the job now. Raises `NotFoundError` for an unknown job."""
        return self._seen((yield Run(("show", self.id))))

    def monitor(self) -> Stream[Status]:
        """The status after every change until the job is over; the last one is its end. Use it with ``for`` or ``async for``.

        The first values report every move to another backend so far. A move and the return from it have a value each, even when both
        happen between two changes, so that ``backend_changed`` misses none.
        """

        def reader() -> Callable[[Document], Any]:
            changes = Changes()

            def read_document(document: Document) -> Any:
                for status in changes.of(document):
                    self._remember(status)
                    yield status

            return read_document

        return Stream(self._program, ("show", self.id, "--watch"), reader)

    @operation
    def wait(self, timeout_s: Optional[float] = None) -> Steps[Status]:
        """Waits until the job is over and returns its end, whatever that is. Raises `TimeoutError` after ``timeout_s`` seconds.

        While the store or the workflow does not answer, a warning of the logger ``crucible`` says so, as for `monitor`.
        """
        limit = checks.time_limit(timeout_s)
        if self.last is not None and self.last.is_over and self.last.attempts:
            return self.last
        return (yield from self._wait(limit))

    @operation
    def result(self, timeout_s: Optional[float] = None, trust_pickle: bool = False) -> Steps[T]:
        """Waits for the end of the job. Returns the return value of a function job, and for other jobs the `Status`.

        Raises `JobFailed` if the job ends without success: of a function with the traceback of its exception. Read are values that
        cannot run a program: plain data, your own dataclasses, named tuples and enumerations, arrays of NumPy, tensors, and tables of
        pandas and Arrow. Anything else is a pickle, which can run any program on this computer: it raises `ResultError`, unless
        ``trust_pickle=True``. Use that only if you trust the job, every program that it ran, and everyone who can write to the object
        store.
        """
        status = yield from self._wait(checks.time_limit(timeout_s))
        from .functions.results import fetch_result, read_result

        kept = yield from fetch_result(self)
        if self._is_function or kept is not None:
            value: T = yield from read_result(self, status, kept, key=self._key, is_trusted=trust_pickle)
            return value
        if status.state != "succeeded":
            raise (yield from self._failure(status))
        return cast(T, status)

    @checks.checked
    def logs(self, follow: bool = False, attempt: Optional[int] = None, tail: Optional[int] = None) -> Logs:
        """The log across all attempts, each line once and in order: ``for line in job.logs()``, or ``print(job.logs())``.

        Args:
            follow: Continue with new lines until the job is over.
            attempt: Only this attempt.
            tail: Begin with this many of the last lines.
        """
        words = ("logs", self.id, *options({"follow": follow, "attempt": attempt, "tail": tail}))
        return Logs(self._program, words, lambda: log_lines)

    @operation
    def cancel(self, now: bool = False) -> Steps[str]:
        """Asks the job to save and stop; ``now`` allows it seconds instead of minutes. Its checkpoints are kept. Returns what happens."""
        return _message((yield Run(("cancel", self.id, *options({"now": now})))))

    @operation
    def migrate(self, to: Optional[str] = None) -> Steps[str]:
        """Moves the running job: it saves, stops, and resumes on another machine, on ``to`` (``ec2:on-demand``) or the best other place."""
        return _message((yield Run(("migrate", self.id, *options({"to": to})))))

    @operation
    def extend(
        self, deadline: Union[str, timedelta, datetime, None] = None, budget: Optional[Dollars] = None
    ) -> Steps[str]:
        """Gives the job a new deadline (``"12h"`` from now), a new total budget in dollars, or both."""
        words = options({"deadline": amount(deadline), "budget": amount(budget)})
        return _message((yield Run(("extend", self.id, *words))))

    @operation
    def retry(self) -> Steps[str]:
        """Retries now instead of later, after trouble or while the job waits."""
        return _message((yield Run(("retry", self.id))))

    @operation
    def interrupt(self, notice: Optional[str] = None, without_notice: bool = False) -> Steps[str]:
        """Interrupts the job's spot machine, as a provider would, to test recovery. Works for spot machines of this host and of the
        small cloud. Returns the id of the attempt."""
        words = options({"notice": notice, "without_notice": without_notice})
        return str((yield Run(("interrupt", self.id, *words)))["attemptId"])

    @operation
    def artifacts(
        self,
        download: Optional[PathLike] = None,
        attempt: Optional[int] = None,
        only: Optional[Sequence[str]] = None,
        force: bool = False,
    ) -> Steps[Tuple[Artifact, ...]]:
        """The files that the job has kept.

        Args:
            download: A folder to download them to; each then has its ``local_path``.
            attempt: Only those of this attempt.
            only: Only these paths, and the files in these folders.
            force: Replace other files of the same names.
        """
        folder = None if download is None else os.path.abspath(os.fspath(download))
        chosen = {"download": folder, "attempt": attempt, "only": list(only or ()), "force": force}
        words = options({**chosen, "limit": ARTIFACTS_MAX})
        found = read_all(Artifact, (yield Run(("artifacts", self.id, *words)))["artifacts"])
        if folder is None:
            return found
        return tuple(replace(one, local_path=os.path.join(folder, *one.path.split("/"))) for one in found)

    @operation
    def checkpoints(self) -> Steps[Tuple[Checkpoint, ...]]:
        """The checkpoints, newest first, with the evidence that they are complete."""
        return tuple(checkpoint_of(one) for one in (yield Run(("checkpoints", self.id)))["checkpoints"])

    @operation
    def verify_checkpoints(self, checkpoint: Optional[str] = None) -> Steps[Tuple[Checkpoint, ...]]:
        """Reads every file of one checkpoint, or of all, and compares its digest: see ``is_good`` of each."""
        words = ("checkpoints", self.id, "verify", *([] if checkpoint is None else [checks.job(checkpoint, "checkpoint")]))
        return tuple(checkpoint_of(one) for one in (yield Run(words))["checkpoints"])

    @operation
    def download_checkpoint(self, to: Optional[PathLike] = None, step: Optional[int] = None) -> Steps[DownloadedCheckpoint]:
        """Downloads the newest good checkpoint, or that of a step, into a new folder, and verifies it."""
        words = ["--download" if step is None else "--download=%d" % step]
        document = yield Run(("checkpoints", self.id, *words, *options({"to": None if to is None else os.path.abspath(os.fspath(to))})))
        return read(DownloadedCheckpoint, {**document, "checkpoint": document["checkpoint"]})

    @operation
    def why(self, decision: Optional[int] = None) -> Steps[Why]:
        """Why the job is where it is: every decision, or one, with the alternatives and the changes that would have altered it."""
        return why_of((yield Run(("why", self.id, *options({"decision": decision})))))

    @operation
    def what_if(self, *changes: str, decision: Optional[int] = None) -> Steps[WhatIf]:
        """Decides again from changed inputs, such as ``"price.spot=+50%"``; nothing happens to the job."""
        words = options({"what_if": list(changes), "decision": decision})
        document = (yield Run(("why", self.id, *words)))["whatIf"]
        return read(WhatIf, {**document, "document": document})

    @operation
    def events(self) -> Steps[Tuple[Event, ...]]:
        """What happened, in order."""
        return read_all(Event, (yield Run(("events", self.id)))["events"])

    @operation
    def show(self, timeout_s: Optional[float] = None) -> Steps[None]:
        """Shows the job until it is over, in a notebook as a card that changes in place, elsewhere as a line for each change.
        Interrupting the kernel, or Ctrl-C, leaves the job running."""
        limit = checks.time_limit(timeout_s)
        card = live.Card()
        changes = Changes()

        def on_document(document: Document) -> None:
            for status in changes.of(document):
                card.update(self._remember(status))

        yield Follow(("show", self.id, "--watch"), on_document, limit)

    def _wait(self, timeout_s: Optional[float]) -> Steps[Status]:
        return self._seen((yield Follow(("show", self.id, "--watch"), self._note, timeout_s)))

    def _failure(self, status: Status) -> Steps[JobFailed]:
        """The error for a job that ended without success, with the end of its log."""
        lines = (yield Run(("logs", self.id, "--tail=%d" % LOG_LINES)))["lines"]
        text = "\n".join(line["m"] for line in lines)
        then, hint = status.continuation, None
        if then is not None:
            fresh = ", fresh=True" if then.step is None else ""
            hint = "Continue it with platform.submit(from_job=%r%s), or `%s`." % (self.id, fresh, then.command)
        return JobFailed(
            "%s %s (%s): %s" % (self.id, status.state, status.reason, status.message),
            hint=hint,
            details={"status": status, "log": text},
        )

    def _note(self, document: Document) -> None:
        was_live = self.last is None or self.last.is_live
        is_live = self._seen(document).is_live
        if is_live != was_live:
            logging.getLogger("crucible").warning("%s: %s", self.id, html.LIVE_AGAIN if is_live else html.NOT_LIVE)

    def _seen(self, document: Mapping[str, Any]) -> Status:
        return self._remember(status_of(document))

    def _remember(self, status: Status) -> Status:
        self.last = status
        self._name = status.name
        return status

    def __repr__(self) -> str:
        if self.last is None:
            return "<Job %s>" % self.id
        return "<Job %s %s, %s, %s>" % (self.id, self.last.state, html.percent(self.last.percent), html.usd(self.last.cost))

    def _repr_html_(self) -> str:
        return html.card(self.status())


def _message(document: Document) -> str:
    return str(document["message"])

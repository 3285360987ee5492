"""The status of a job at one moment, as ``crucible show`` reports it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Iterator, Mapping, Optional, Tuple

from . import html
from .documents import read
from .plain import plain

#: One dollar in micro-dollars, Crucible's unit.
MICRO = 1_000_000

#: States in which a job is over.
FINAL_STATES = ("succeeded", "failed", "cancelled")


def dollars(micro_usd: Optional[int]) -> Optional[float]:
    """Micro-dollars as dollars; None stays None."""
    return None if micro_usd is None else micro_usd / MICRO


def instant(at_ms: Optional[int]) -> Optional[datetime]:
    """Milliseconds since 1970 as a time in UTC; None stays None."""
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, timezone.utc)


@dataclass(frozen=True)
class Training:
    """How far the training is, as its output or the helper reports it. Each is None while unknown."""

    step: Optional[float] = None
    steps_total: Optional[float] = None
    loss: Optional[float] = None
    epoch: Optional[float] = None
    epochs_total: Optional[float] = None
    batch: Optional[float] = None
    batches_total: Optional[float] = None
    percent: Optional[float] = None


@dataclass(frozen=True)
class Cost:
    """Money in whole micro-dollars, exact; the properties are dollars.

    Attributes:
        spent_micro_usd: Of all attempts, the running one included; None if unknown.
        estimated_remaining_micro_usd: Until the job is done; None if unknown.
        remaining_basis: The basis of the estimate: ``pace``, ``forecast`` or ``assumed``.
        budget_micro_usd: The limit; None without one.
    """

    spent_micro_usd: Optional[int] = None
    estimated_remaining_micro_usd: Optional[int] = None
    remaining_basis: Optional[str] = None
    budget_micro_usd: Optional[int] = None

    @property
    def spent(self) -> Optional[float]:
        return dollars(self.spent_micro_usd)

    @property
    def estimated_remaining(self) -> Optional[float]:
        return dollars(self.estimated_remaining_micro_usd)

    @property
    def budget(self) -> Optional[float]:
        return dollars(self.budget_micro_usd)


@dataclass(frozen=True)
class Machine:
    """The machine that was launched, which may differ from the request."""

    capacity_type: str
    type: str
    place: str
    price_micro_usd_per_hour: int

    @property
    def price_per_hour(self) -> float:
        """In dollars."""
        return self.price_micro_usd_per_hour / MICRO


@dataclass(frozen=True)
class Saved:
    """A checkpoint in short: its id, and its step, which may count saves instead."""

    id: str
    step: int
    attempt: int


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a job in short. ``state`` is ``complete`` once the newest is proven complete."""

    newest: Optional[Saved] = None
    state: Optional[str] = None
    count: int = 0


@dataclass(frozen=True)
class LinePlace:
    """The place of a waiting job in its line: ``position`` 1 is the next one. ``pool`` names the machines that it waits for."""

    position: int
    pool: str


@dataclass(frozen=True)
class Attempt:
    """One placement of a job on a machine.

    Attributes:
        backend: The place as a job file names it, such as ``ec2:spot``.
        capacity_type: As requested.
        realised: As launched; None before.
        steps_lost: Steps done that were in no checkpoint when it ended.
    """

    number: int
    backend: str
    capacity_type: str
    realised: Optional[Machine]
    place: Optional[str]
    state: str
    reason: str
    phase: Optional[str]
    launched_at_ms: Optional[int]
    ended_at_ms: Optional[int]
    cost_micro_usd: Optional[int]
    restored_from: Optional[Saved]
    restored_because: Optional[str]
    checkpoint: Optional[Saved]
    checkpoint_state: Optional[str]
    progress: Optional[Training]
    steps_lost: Optional[int]

    @property
    def cost(self) -> Optional[float]:
        """In dollars; None if unknown."""
        return dollars(self.cost_micro_usd)


@dataclass(frozen=True)
class Continuation:
    """How to continue a job that ended before it was done."""

    command: str
    step: Optional[int]


@dataclass(frozen=True, repr=False)
class Status:
    """A job at one moment.

    Attributes:
        state: As `states <https://github.com/scttfrdmn/crucible>`_ explains: ``pending``, ``provisioning``, ``running``,
            ``recovering``, ``stopping``, ``succeeded``, ``failed``, ``cancelled``. None in a list while the store, which knows it, does not
            answer.
        message: One sentence for a person.
        phase: What its machine does now, such as ``fetching``, ``running``, ``finishing``; None without a machine that reports.
        retrying: What its machine tries again; None if nothing has failed for some seconds.
        backend: Where it runs now, or ran last, as a job file names it: ``ec2:spot``, ``local:on-demand``. None before its first place.
        progress: Percent of the whole training, 0.0 while unknown; 100.0 once it succeeded. ``percent`` is None while unknown, and
            ``training`` has the exact figures.
        cost: Dollars spent so far; None if unknown.
        cost_micro_usd: The same, exact.
        backend_changed: In a status of `Job.monitor`, whether the job moved to another backend since the status before.
        previous_backend: Where it was before, if it moved.
        attempt: Number of the attempt that ``backend`` belongs to; 0 before the first, None in a list while the store does not answer.
        attempts: Oldest first; at most the newest fifty. Empty in lists of jobs.
        waiting: Place in the line of a job that waits for a machine; None for others.
        is_live: False if the workflow does not answer, and the values come from the record.
        document: Everything that the command line says.
    """

    id: str
    name: str
    owner: str
    state: Optional[str]
    reason: Optional[str]
    message: str
    backend: Optional[str]
    progress: float
    cost: Optional[float]
    cost_micro_usd: Optional[int]
    costs: Cost
    backend_changed: bool = False
    previous_backend: Optional[str] = None
    attempt: Optional[int] = 0
    machine: Optional[Machine] = None
    training: Optional[Training] = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    attempts: Tuple[Attempt, ...] = ()
    submitted_at_ms: int = 0
    ended_at_ms: Optional[int] = None
    deadline_at_ms: Optional[int] = None
    phase: Optional[str] = None
    retrying: Optional[str] = None
    warning: Optional[str] = None
    trouble: Optional[str] = None
    placement_reasons: Tuple[str, ...] = ()
    ui_url: Optional[str] = None
    is_live: bool = True
    waiting: Optional[LinePlace] = None
    continuation: Optional[Continuation] = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state in FINAL_STATES

    @property
    def percent(self) -> Optional[float]:
        """Percent of the whole training; None while it is unknown."""
        if self.state == "succeeded":
            return 100.0
        return None if self.training is None else self.training.percent

    @property
    def submitted_at(self) -> Optional[datetime]:
        return instant(self.submitted_at_ms)

    @property
    def ended_at(self) -> Optional[datetime]:
        return instant(self.ended_at_ms)

    @property
    def deadline_at(self) -> Optional[datetime]:
        return instant(self.deadline_at_ms)

    def __repr__(self) -> str:
        return "<Status of %s>" % self

    def _repr_html_(self) -> str:
        return html.card(self)

    def __str__(self) -> str:
        where = "" if self.backend is None else " on %s" % self.backend
        message = (self.message or self.reason or "reason unknown") if self.is_live else html.NOT_LIVE
        state = self.state or html.UNKNOWN
        return plain("%s %s%s, %s, %s: %s" % (self.id, state, where, html.percent(self.percent), html.usd(self.cost), message))


def place_of(document: Mapping[str, Any]) -> str:
    """The place of an attempt or placement as a job file names it, from the launched machine, or from the request before the launch."""
    realised = document.get("realised") or document
    return "%s:%s" % (document["backend"], realised["capacityType"])


def status_of(document: Mapping[str, Any]) -> Status:
    """A status from a document of ``crucible show``, or from an entry of ``crucible list``."""
    placement, costs = document.get("placement"), read(Cost, document.get("cost") or {})
    training = None if document.get("progress") is None else read(Training, document["progress"])
    known = (None if training is None else training.percent) or 0.0
    attempts = [{**one, "backend": place_of(one)} for one in document.get("attempts") or ()]
    warning, trouble = document.get("warning") or {}, document.get("trouble") or {}
    return read(
        Status,
        {
            **document,
            "message": document.get("message") or "",
            "backend": None if placement is None else place_of(placement),
            "progress": 100.0 if document["state"] == "succeeded" else float(known),
            "cost": costs.spent,
            "costMicroUsd": costs.spent_micro_usd,
            "costs": document.get("cost") or {},
            "training": document.get("progress"),
            "machine": None if placement is None else placement.get("realised"),
            "attempt": document.get("attemptsTotal", 0),
            "attempts": attempts,
            "warning": warning.get("text"),
            "trouble": trouble.get("message"),
            "retrying": (document.get("retrying") or {}).get("text"),
            "checkpoints": document.get("checkpoints") or {},
            "document": document,
        },
    )


class Changes:
    """Finds every change of backend in the statuses of a job, also one that happened between two of them."""

    def __init__(self) -> None:
        self._backend: Optional[str] = None
        self._number = 0

    def of(self, document: Mapping[str, Any]) -> Iterator[Status]:
        """The statuses to report for a document: one for each backend that the job left again meanwhile, then the present one."""
        status = status_of(document)
        passed = [one for one in status.attempts[:-1] if one.number > self._number]
        for attempt in passed:
            self._number = attempt.number
            if self._backend is None:
                self._backend = attempt.backend
            elif attempt.backend != self._backend:
                yield self._moved(replace(status, backend=attempt.backend, machine=attempt.realised, attempt=attempt.number))
        self._number = max(self._number, (status.attempt or 0) - 1)
        yield self._moved(status)

    def _moved(self, status: Status) -> Status:
        before = self._backend
        if status.backend is None or status.backend == before:
            return status
        self._backend = status.backend
        return status if before is None else replace(status, backend_changed=True, previous_backend=before)

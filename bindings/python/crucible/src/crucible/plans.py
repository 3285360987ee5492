"""Where a job could run: offers with their cost and time, and why others are left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Tuple, Union, overload

from . import html
from .documents import read_all
from .status import MICRO


@dataclass(frozen=True)
class Range:
    """A median with the 90 % range around it."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Recommendation:
    """A place where a job could run.

    Attributes:
        rank: 1 for the best.
        backend: As a job file names it, such as ``ec2:spot``.
        type: The provider's name of the machine.
        place: Region, zone or host.
        availability: ``available``, or ``unknown`` until launch.
        price_per_hour: Dollars.
        cost: Dollars until the job is done; ``cost_micro_usd`` is the exact median.
        hours: Hours until the job is done.
        interruptions: Mean number of interruptions.
        reasons: What speaks for it, in words.
        risks: What speaks against it.
        deadline_chance: From 0 to 1; None without a deadline.
        budget_chance: From 0 to 1; None without a budget.
        document: Everything that the command line says.
    """

    rank: int
    backend: str
    type: str
    place: str
    machine: Mapping[str, Any]
    availability: str
    price_per_hour: float
    price_micro_usd_per_hour: int
    cost: Range
    cost_micro_usd: int
    hours: Range
    interruptions: float
    reasons: Tuple[str, ...]
    risks: Tuple[str, ...]
    deadline_chance: Optional[float] = None
    budget_chance: Optional[float] = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def pros(self) -> Tuple[str, ...]:
        """The reasons."""
        return self.reasons

    @property
    def cons(self) -> Tuple[str, ...]:
        """The risks."""
        return self.risks


@dataclass(frozen=True)
class Rejection:
    """Why offers were left out: ``why`` is ``unfit``, ``quota`` or ``unavailable``."""

    code: str
    why: str
    reason: str
    count: int
    offer_keys: Tuple[str, ...]


@dataclass(frozen=True)
class Relaxation:
    """Gain of one change of the job."""

    wish: str
    change: str
    offer_key: str
    cost_micro_usd: int
    duration_ms: int
    sentence: str


@dataclass(frozen=True, repr=False)
class Plan(Sequence[Recommendation]):
    """Ranked recommendations, the best first, and why other offers are left out. Empty if no place fits now.

    Attributes:
        warnings: What could go wrong with this job, and every note of the plan, such as an assumed GPU, in sentences.
        inferred: Settings that were read from the program.
        is_duration_assumed: Whether the job names no duration, so that one was assumed.
        silent_backends: Backends that did not answer, with the reason.
    """

    recommendations: Tuple[Recommendation, ...]
    rejections: Tuple[Rejection, ...] = ()
    relaxations: Tuple[Relaxation, ...] = ()
    warnings: Tuple[str, ...] = ()
    inferred: Tuple[Any, ...] = ()
    is_duration_assumed: bool = False
    silent_backends: Tuple[Mapping[str, Any], ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @overload
    def __getitem__(self, at: int) -> Recommendation: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Recommendation]: ...

    def __getitem__(self, at: Union[int, slice]) -> Union[Recommendation, Sequence[Recommendation]]:
        return self.recommendations[at]

    def __len__(self) -> int:
        return len(self.recommendations)

    def __repr__(self) -> str:
        return "<Plan of %d place%s%s>" % (len(self), "" if len(self) == 1 else "s", ", the best %s" % self[0].backend if len(self) else "")

    def __str__(self) -> str:
        rows = [
            "%d. %s %s %s: $%.2f (%.2f to %.2f), %.1f h" % (one.rank, one.backend, one.type, one.place, one.cost.median, one.cost.low, one.cost.high, one.hours.median)
            for one in self
        ]
        return "\n".join(rows or ["No place fits this job now.", *("%s: %s" % (one.code, one.reason) for one in self.rejections)])

    def _repr_html_(self) -> str:
        return html.plan(self)


def plan_of(document: Mapping[str, Any]) -> Plan:
    """From a document of ``crucible plan``."""
    return Plan(
        recommendations=tuple(_recommendation(at, one) for at, one in enumerate(document["placements"], start=1)),
        rejections=read_all(Rejection, document["rejections"]),
        relaxations=read_all(Relaxation, document["relaxations"]),
        warnings=tuple(document["warnings"]) + tuple(document.get("notes", ())),
        inferred=tuple(document["inferred"]),
        is_duration_assumed=document["isDurationAssumed"],
        silent_backends=tuple(document["silentBackends"]),
        document=document,
    )


def _recommendation(rank: int, document: Mapping[str, Any]) -> Recommendation:
    offer, forecast = document["offer"], document["forecast"]
    cost, finish, chances = forecast["cost"], forecast["finish"], forecast["chances"]
    hour = 3_600_000
    return Recommendation(
        rank=rank,
        backend="%s:%s" % (offer["backend"], offer["capacityType"]),
        type=offer["type"],
        place=offer["place"],
        machine=offer["shape"],
        availability=offer["availability"],
        price_per_hour=offer["priceMicroUsdPerHour"] / MICRO,
        price_micro_usd_per_hour=offer["priceMicroUsdPerHour"],
        cost=Range(cost["lowMicroUsd"] / MICRO, document["costMicroUsd"] / MICRO, cost["highMicroUsd"] / MICRO),
        cost_micro_usd=document["costMicroUsd"],
        hours=Range(finish["lowMs"] / hour, document["durationMs"] / hour, finish["highMs"] / hour),
        interruptions=forecast["interruptions"],
        reasons=tuple(document["reasons"]),
        risks=tuple(document["risks"]),
        deadline_chance=chances.get("deadline"),
        budget_chance=chances.get("budget"),
        document=document,
    )

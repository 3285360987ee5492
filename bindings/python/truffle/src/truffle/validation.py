"""The answers of `Truffle.validate` and `Truffle.advise`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Optional, Tuple

from . import errors
from .html import table
from .results import Unanswered
from .rows import instant


class Answer(str, Enum):
    """Whether a run has its capacity."""

    YES = "yes"
    #: A way exists, but a condition must be met or accepted first.
    CONDITIONS = "conditions"
    NO = "no"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class RunOption:
    """A way to get the machines of a run."""

    #: Kind of option: ``capacity-block`` or ``odcr`` (own ones), ``offering`` (a block for sale) or ``on-demand``.
    kind: str
    #: Id of the reservation or the offering; None on demand.
    id: Optional[str]
    region: str
    availability_zone: str
    #: Instances that a launch can get at `start_date`; None on demand, which is unknown until the launch.
    available_capacity: Optional[int]
    #: Earliest start, ISO 8601 in UTC.
    start_date: Optional[str]
    #: The machines stay until then; None without end.
    usable_until: Optional[str]
    #: US dollars for the run; None if unknown, 0 if it is already paid.
    expected_cost: Optional[float]
    #: US dollars per hour in which one machine works for the run; None if unknown.
    price_per_useful_hour: Optional[float]
    #: Hours of the run that are left when the machines are ended; 0 if it fits.
    short_hours: float
    ultra_cluster_placement: bool
    efa_interfaces: int
    #: Conditions that must be met or accepted.
    conditions: Tuple[str, ...]
    #: Obstacles that make it impossible.
    obstacles: Tuple[str, ...]
    is_usable: bool
    #: Command to run; None for on demand.
    command: Optional[str]
    #: AWS's own command that buys the offering; None for other kinds.
    purchase_command: Optional[str]

    @property
    def starts_at(self) -> Optional[datetime]:
        """`start_date` as an aware `datetime`."""
        return instant(self.start_date)

    @property
    def usable_until_at(self) -> Optional[datetime]:
        """`usable_until` as an aware `datetime`."""
        return instant(self.usable_until)


@dataclass(frozen=True)
class RunQuota:
    """The quota that counts a run in a Region."""

    region: str
    quota_code: str
    limit_vcpus: Optional[int]
    used_vcpus: Optional[int]
    vcpus_per_machine: int


@dataclass(frozen=True)
class Wanted:
    """The run that was asked about."""

    instance_type: str
    count: int
    days: float
    #: Requested start; None for as soon as possible.
    start_date: Optional[str]


@dataclass(frozen=True)
class Validation:
    """Whether a run has its capacity. True only for yes without conditions: ``if tf.validate(...): start()``."""

    answer: Answer
    wanted: Wanted
    #: Ways that are possible, the best first.
    options: Tuple[RunOption, ...]
    #: Ways that are not possible, each with its `obstacles`.
    rejected: Tuple[RunOption, ...]
    #: The missing requirements, in sentences.
    missing: Tuple[str, ...]
    quotas: Tuple[RunQuota, ...]
    #: Next command.
    next_command: str
    unanswered: Tuple[Unanswered, ...]
    notes: Tuple[str, ...]

    def __bool__(self) -> bool:
        return self.answer is Answer.YES

    @property
    def best(self) -> Optional[RunOption]:
        """The best way, or None."""
        return self.options[0] if self.options else None

    @property
    def conditions(self) -> Tuple[str, ...]:
        """Conditions of the best way."""
        return self.best.conditions if self.best is not None else ()

    def require(self, conditions: bool = False) -> RunOption:
        """Returns the best way, or raises an error that names the missing requirements.

        Args:
            conditions: Whether a yes with conditions is enough.

        Raises:
            errors.CapacityError: The answer is no.
            errors.ConditionalError: The answer is yes with conditions, and ``conditions`` is False.
        """
        wanted = "%d x %s for %g days" % (self.wanted.count, self.wanted.instance_type, self.wanted.days)
        hint = "Next: `%s`" % self.next_command if self.next_command else None
        if self.best is None or self.answer is Answer.NO:
            raise errors.CapacityError("No capacity for %s. %s" % (wanted, " ".join(self.missing)), hint=hint)
        if self.answer is Answer.CONDITIONS and not conditions:
            raise errors.ConditionalError("Capacity for %s has conditions: %s" % (wanted, " ".join(self.conditions)), hint=hint)
        return self.best

    def _repr_html_(self) -> str:
        title = "%s: %d x %s for %g days" % (self.answer, self.wanted.count, self.wanted.instance_type, self.wanted.days)
        next_line = ("Next: %s" % self.next_command,) if self.next_command else ()
        rows = [dataclasses.asdict(one) for one in self.options + self.rejected]
        return table(rows, self.missing + next_line + self.notes, title)


@dataclass(frozen=True)
class Advice:
    """The kind of capacity that fits a use case."""

    use_case: str
    #: ``capacity-block``, ``odcr``, ``spot`` or ``on-demand``.
    reservation_type: str
    reasons: Tuple[str, ...]
    #: Next commands.
    commands: Tuple[str, ...]
    #: Common misconceptions about it.
    corrections: Tuple[str, ...]
    #: Pages of AWS.
    sources: Tuple[str, ...]

    def _repr_html_(self) -> str:
        return table([dataclasses.asdict(self)], (), self.use_case)

"""Lists of results, with what belongs to the whole answer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, Iterable, List, Mapping, Optional, Protocol, Tuple, Type, TypeVar

from . import errors
from .cli import UPGRADE
from .html import table



class Dataclass(Protocol):
    """The type of every dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Any]]


T = TypeVar("T", bound=Dataclass)
Row = TypeVar("Row", bound=Dataclass)


def read(row_type: Type[T], row: Mapping[str, Any]) -> T:
    """A row of a document as its dataclass. Fields that only a newer command line knows are left out."""
    fields = [field.name for field in dataclasses.fields(row_type)]
    missing = [name for name in fields if name not in row]
    if missing:
        raise errors.SchemaMismatch("The answer of the command line has no %s." % ", ".join(missing), hint=UPGRADE)
    return row_type(**{name: frozen(row[name]) for name in fields})


def frozen(value: Any) -> Any:
    """Lists become tuples, so that rows can be compared and kept in sets."""
    return tuple(frozen(one) for one in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Unanswered:
    """A Region that did not answer: it failed, took too long or is not enabled for the account."""

    region: str
    #: Code of the error of AWS, or None.
    code: Optional[str]
    message: str
    #: Remedy, or None.
    hint: Optional[str]


@dataclass(frozen=True)
class Summary:
    """Sums over own reservations. Capacity is in instances."""

    total: int
    instance_types: Tuple[str, ...]
    total_capacity: int
    #: Free now: reservations that are not active count with nothing.
    available_capacity: int


class Results(List[Row]):
    """Results of a question: a list, with the notes on the whole answer.

    It is false when nothing was found, which is certain: a question that some Regions did not answer, and the others with nothing,
    raises an error instead.

    Attributes:
        unanswered: Regions without an answer; the list does not know what they have.
        notes: Sentences that help to read the results, such as how old an answer is.
        more: Further fields of the answer.
    """

    def __init__(
        self,
        rows: Iterable[Row] = (),
        unanswered: Tuple[Unanswered, ...] = (),
        notes: Tuple[str, ...] = (),
        more: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(rows)
        self.unanswered = unanswered
        self.notes = notes
        self.more: Mapping[str, Any] = more or {}

    @property
    def is_complete(self) -> bool:
        """Whether every Region has answered."""
        return not self.unanswered

    @property
    def summary(self) -> Optional[Summary]:
        """Sums over own reservations; None for other results."""
        summary = self.more.get("summary")
        return None if summary is None else read(Summary, summary)

    def to_dicts(self) -> List[Dict[str, Any]]:
        """The rows as dictionaries. `pandas.DataFrame` also takes the list itself."""
        return [dataclasses.asdict(row) for row in self]

    def _repr_html_(self) -> str:
        lost = tuple("No answer from %s: %s" % (one.region, one.message) for one in self.unanswered)
        return table(self.to_dicts(), self.notes + lost)


class Quotas(Results[Row]):
    """Quotas, with the commands that ask AWS for more."""

    @property
    def request_commands(self) -> Tuple[str, ...]:
        """Commands that ask for what ``request=`` names; empty without it, and where the quota is large enough."""
        return tuple(self.more.get("request_commands", ()))


class Offerings(Results[Row]):
    """Capacity Blocks for sale, with the gaps of the search."""

    @property
    def days(self) -> float:
        """Length of the blocks, in days: the shortest that AWS sells and that is long enough."""
        days = self.more["days"]
        assert isinstance(days, (int, float))
        return days

    @property
    def not_covered(self) -> Tuple[str, ...]:
        """The gaps of the search, with reasons."""
        return tuple(self.more.get("not_covered", ()))

"""The questions to ``truffle``: how each becomes a command line, and its JSON document an answer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Tuple, Type, TypeVar, get_args

from . import checks, errors
from .cli import ERRORS, EXIT_CODES, UPGRADE, Document, arguments
from .options import Purpose, Sorting
from .reservations import CapacityBlock, CapacityBlockOffering, CapacityReservation, ReservationPlace, ReservationType
from .results import Offerings, Quotas, Results, Row, Unanswered, frozen, read
from .rows import Quota
from .validation import Advice, Answer, RunOption, RunQuota, Validation, Wanted

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question: the words of its command line without the options of every command, and how its document is read."""

    words: Tuple[str, ...]
    regions: Optional[Tuple[str, ...]]
    read: Callable[[Document], T]

    def answer(self, document: Document, exit_code: int) -> T:
        """Reads a document. Raises if nothing was found and Regions are missing: that does not mean "none"."""
        kind = EXIT_CODES.get(exit_code, "failed")
        if kind in ("permission", "unavailable"):
            lost = [read(Unanswered, one) for one in document["unanswered"]]
            raise ERRORS[kind](
                "Nothing was found, and these Regions did not answer: %s" % " ".join("%s: %s" % (one.region, one.message) for one in lost),
                hint=next((one.hint for one in lost if one.hint), None) or "Name Regions that answer with regions=.",
                details={"unanswered": lost},
            )
        try:
            return self.read(document)
        except (KeyError, TypeError, ValueError) as error:
            raise errors.SchemaMismatch("The answer of the command line cannot be read: %r." % error, hint=UPGRADE) from error


def rows_of(document: Document, row_type: Type[Row]) -> List[Row]:
    return [read(row_type, _complete(row)) for row in document["results"]]


def _complete(row: Mapping[str, Any]) -> Mapping[str, Any]:
    # Comparisons with a number must stay possible.
    return {**row, "duration_hours": math.nan} if row.get("duration_hours", 0) is None else row


def results_of(row_type: Type[Row]) -> Callable[[Document], Results[Row]]:
    return lambda document: Results(rows_of(document, row_type), *_common(document))


def quotas_of(document: Document) -> Quotas[Quota]:
    return Quotas(rows_of(document, Quota), *_common(document))


def _offerings(document: Document) -> Offerings[CapacityBlockOffering]:
    return Offerings(rows_of(document, CapacityBlockOffering), *_common(document))


def _common(document: Document) -> Tuple[Tuple[Unanswered, ...], Tuple[str, ...], Dict[str, Any]]:
    known = ("schema", "command", "results", "unanswered", "notes")
    more = {name: frozen(value) for name, value in document.items() if name not in known}
    return tuple(read(Unanswered, one) for one in document["unanswered"]), tuple(document["notes"]), more


#: Checks of the arguments, which are named like the options of the command line, except ``azs`` for ``--az``.
_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("regions", "azs", "family", "instance_types"), checks.names),
    **dict.fromkeys(("architecture", "instance_type"), checks.name),
    **dict.fromkeys(("min_vcpus", "min_az_count", "scores", "min_capacity", "count", "machines", "request"), checks.whole),
    **dict.fromkeys(("max_price", "lookback_hours", "days"), checks.number),
    **dict.fromkeys(("start", "start_after", "start_before", "end_by"), checks.when),
    **dict.fromkeys(("scheduled", "interruptible", "scaling", "guaranteed"), checks.yes_or_no),
    "min_memory": checks.gib,
    "sort": lambda value, what: checks.choice(value, what, get_args(Sorting)),
    "purpose": lambda value, what: checks.choice(value, what, get_args(Purpose)),
}


def question(
    command: str, options: Mapping[str, Any], reader: Callable[[Document], T], given: Tuple[str, ...] = ()
) -> Question[T]:
    """Checks the options, and asks. Options without a check of their own are True or False."""
    own = {name: _CHECKS.get(name, checks.flag)(value, name) for name, value in options.items()}
    regions = own.pop("regions", None)
    azs = own.pop("azs", None)
    return Question((command, *given, *arguments({**own, "az": azs})), regions, reader)


#: Row types of the kinds of reservations, in the order of the command line.
_OWNED: Mapping[ReservationType, Type[Any]] = {
    ReservationType.ODCR: CapacityReservation,
    ReservationType.CAPACITY_BLOCKS: CapacityBlock,
}

#: Arguments of `Truffle.capacity` about blocks for sale, and those about own reservations.
OF_OFFERINGS = ("count", "days", "start_after", "start_before", "end_by", "sort")
OF_OWNED = ("available_only", "active_only", "min_capacity", "all", "topology")


def capacity_question(reservation_type: Any, options: Mapping[str, Any]) -> Question[Results[Any]]:
    kinds = _kinds(reservation_type)
    own = {name: value for name, value in options.items() if value is not None and value is not False}
    if "offerings" in own:
        if ReservationType.ODCR in kinds and reservation_type is not None:
            raise errors.UsageError(
                "offerings=True finds Capacity Blocks and cannot be combined with ReservationType.ODCR.",
                hint="On-demand reservations are created, not bought: `aws ec2 create-capacity-reservation`.",
            )
        _refuse(own, OF_OWNED, "is for own reservations and cannot be combined with offerings=True")
        return question("capacity", {"blocks": True, **own}, _offerings)
    _refuse(own, OF_OFFERINGS, "needs offerings=True; without it, capacity() lists what the account owns")
    if "topology" in own:
        return question("capacity", own, results_of(ReservationPlace))
    words = {"odcr": ReservationType.ODCR in kinds, "blocks": ReservationType.CAPACITY_BLOCKS in kinds}
    return question("capacity", {**words, **own}, _owned)


def _owned(document: Document) -> Results[Any]:
    rows = [read(_OWNED[ReservationType(row["reservation_type"])], _complete(row)) for row in document["results"]]
    return Results(rows, *_common(document))


def _kinds(given: Any) -> Tuple[ReservationType, ...]:
    if given is None:
        return (ReservationType.ODCR,)
    values = (given,) if isinstance(given, str) else tuple(given)
    try:
        kinds = tuple(ReservationType(one) for one in values)
    except ValueError:
        kinds = ()
    if kinds:
        return kinds
    raise errors.UsageError(
        "reservation_type=%r is not a ReservationType." % (given,),
        hint="Pass ReservationType.CAPACITY_BLOCKS, ReservationType.ODCR, or both in a list.",
    )


def _refuse(own: Mapping[str, Any], refused: Tuple[str, ...], why: str) -> None:
    given = next((name for name in refused if name in own), None)
    if given is not None:
        raise errors.UsageError("%s= %s." % (given, why))


def read_validation(document: Document) -> Validation:
    unanswered, notes, _more = _common(document)
    options = rows_of(document, RunOption)
    return Validation(
        answer=Answer(document["verdict"]),
        wanted=read(Wanted, document["wanted"]),
        options=tuple(one for one in options if one.is_usable),
        rejected=tuple(one for one in options if not one.is_usable),
        missing=tuple(document["missing"]),
        quotas=tuple(read(RunQuota, one) for one in document["quotas"]),
        next_command=document["next_command"],
        unanswered=unanswered,
        notes=notes,
    )


def read_advice(document: Document) -> Advice:
    (advice,) = rows_of(document, Advice)
    return advice


def read_version(document: Document) -> str:
    return str(document["version"])


def in_words_of_python(error: errors.UsageError) -> errors.UsageError:
    """An error of the command line whose options are named as arguments: ``--min-vcpus`` is ``min_vcpus=``. Commands keep theirs."""

    def named(text: str) -> str:
        parts = re.split("(`[^`]*`)", text)
        flag = re.compile(r"(?<![\w-])--([a-z][a-z-]*)( <[^>]*>)?")
        return "".join(
            part if part.startswith("`") else flag.sub(lambda one: one.group(1).replace("-", "_") + "=", part) for part in parts
        )

    return errors.UsageError(
        named(error.message), hint=None if error.hint is None else named(error.hint), details=error.details
    )

"""`Truffle`: finds capacity of EC2, and checks it before a costly run.

``async_client.py`` is generated from this module: ``node tools/gen-python-async.mjs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Literal, Optional, Union, overload

from .checks import Names, When
from .finding import Finding
from .options import Purpose, Sorting
from .questions import capacity_question, question, read_advice, read_validation, read_version
from .reservations import CapacityBlock, CapacityBlockOffering, CapacityReservation, ReservationPlace, ReservationType
from .results import Offerings, Results
from .validation import Advice, Validation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OfferingOptions, OwnedOptions


class Truffle(Finding):
    """Finds capacity of EC2. It changes and buys nothing.

    It uses the credentials of the AWS CLI: environment, profile, single sign-on or the role of a machine. It holds no connection, may
    be shared between threads, and need not be closed. `session.Settings` has the arguments of the constructor.

    All methods raise subclasses of `errors.CrucibleError`: `errors.UsageError` for a wrong argument, `errors.PermissionError` without
    credentials or permissions, `errors.UnavailableError` if AWS does not answer, `errors.NotFoundError` for a type that no Region has,
    `errors.ExecutableNotFound` without the command line, `errors.SchemaMismatch` for another version of it.
    """

    @overload
    def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Literal[ReservationType.CAPACITY_BLOCKS],
        **options: Unpack[OwnedOptions],
    ) -> Results[CapacityBlock]: ...

    @overload
    def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Optional[Literal[ReservationType.ODCR]] = ...,
        **options: Unpack[OwnedOptions],
    ) -> Results[CapacityReservation]: ...

    @overload
    def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Optional[Literal[ReservationType.CAPACITY_BLOCKS]] = ...,
        offerings: Literal[True],
        **options: Unpack[OfferingOptions],
    ) -> Offerings[CapacityBlockOffering]: ...

    @overload
    def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        topology: Literal[True],
        azs: Optional[Names] = ...,
    ) -> Results[ReservationPlace]: ...

    @overload
    def capacity(
        self,
        instance_types: Optional[Names],
        regions: Optional[Names],
        reservation_type: Union[ReservationType, str, Iterable[ReservationType], None],
        gpu_only: bool = ...,
        available_only: bool = ...,
        min_capacity: Optional[int] = ...,
    ) -> Results[Any]: ...

    @overload
    def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Union[str, Iterable[ReservationType]],
        **options: Unpack[OwnedOptions],
    ) -> Results[Any]: ...

    def capacity(
        self,
        instance_types: Optional[Names] = None,
        regions: Optional[Names] = None,
        reservation_type: Union[ReservationType, str, Iterable[ReservationType], None] = None,
        gpu_only: bool = False,
        available_only: bool = False,
        min_capacity: Optional[int] = None,
        *,
        azs: Optional[Names] = None,
        active_only: bool = False,
        all: bool = False,
        topology: bool = False,
        offerings: bool = False,
        count: Optional[int] = None,
        days: Optional[float] = None,
        start_after: Optional[When] = None,
        start_before: Optional[When] = None,
        end_by: Optional[When] = None,
        sort: Optional[Sorting] = None,
    ) -> Results[Any]:
        """Lists what the account has reserved, or with ``offerings=True`` the Capacity Blocks that can be bought.

        Args:
            instance_types: Only these types; globs too.
            regions: Regions to ask; by default those of the constructor.
            reservation_type: `ReservationType.ODCR` (the default, rows are `CapacityReservation`),
                `ReservationType.CAPACITY_BLOCKS` (rows are `CapacityBlock`), or both in a list.
            gpu_only: Only types with GPUs or other accelerators.
            available_only: Only with room for a launch now.
            min_capacity: Only with room for so many instances.
            azs: Only these zones.
            active_only: Only active ones, and paid blocks that have not begun.
            all: Also those that have ended.
            topology: How the reserved machines are placed in the network: rows are `ReservationPlace`.
            offerings: What can be bought: rows are `CapacityBlockOffering`. The arguments below need it.
            count: Instances, up to 64; by default 1.
            days: 1 to 14 days or whole weeks up to 182 days; longer rounds up. By default 1.
            start_after: Earliest start.
            start_before: Latest start.
            end_by: Latest end.
            sort: ``"start"`` (the default) or ``"price"``.
        """
        options = {
            **{"instance_types": instance_types, "regions": regions, "gpu_only": gpu_only, "available_only": available_only},
            **{"min_capacity": min_capacity, "azs": azs, "active_only": active_only, "all": all, "topology": topology},
            **{"offerings": offerings, "count": count, "days": days, "start_after": start_after},
            **{"start_before": start_before, "end_by": end_by, "sort": sort},
        }
        return self._ask(capacity_question(reservation_type, options))

    def validate(
        self,
        instance_type: str,
        count: int = 1,
        days: float = 1,
        start: Optional[When] = None,
        *,
        regions: Optional[Names] = None,
        azs: Optional[Names] = None,
    ) -> Validation:
        """Checks capacity before a training run: own blocks and reservations, blocks for sale, quota, subnets, network and cost.

        A "no" of all Regions is an answer and raises nothing; `Validation.require` raises for programs that cannot go on. If Regions are
        missing, a "no" is uncertain: that raises `errors.PermissionError` or `errors.UnavailableError`.

        Args:
            instance_type: Such as ``"p5.48xlarge"``.
            count: Machines.
            days: Days of the run.
            start: When it is to begin; by default as soon as possible.
            regions: Regions to ask; by default those of the constructor.
            azs: Only these zones.
        """
        options = {"instance_type": instance_type, "count": count, "days": days, "start": start, "regions": regions, "azs": azs}
        return self._ask(question("validate", options, read_validation))

    def advise(
        self,
        purpose: Purpose,
        *,
        instance_type: Optional[str] = None,
        machines: Optional[int] = None,
        days: Optional[float] = None,
        scheduled: Optional[bool] = None,
        interruptible: Optional[bool] = None,
        scaling: Optional[bool] = None,
        guaranteed: Optional[bool] = None,
    ) -> Advice:
        """Finds the kind of capacity for a use case. An argument that decides and is missing raises `errors.UsageError`.

        Args:
            purpose: The use case.
            instance_type: By default p5.48xlarge; for inference inf2.xlarge.
            machines: How many.
            days: Training: days of one run.
            scheduled: Training: its dates are known.
            interruptible: It continues from a checkpoint after an interruption.
            scaling: Inference: the number of machines follows the load.
            guaranteed: Development and experiments: a launch must never fail for lack of capacity.
        """
        options = {
            **{"purpose": purpose, "instance_type": instance_type, "machines": machines, "days": days},
            **{"scheduled": scheduled, "interruptible": interruptible, "scaling": scaling, "guaranteed": guaranteed},
        }
        return self._ask(question("advise", options, read_advice))

    def version(self) -> str:
        """The version of the command line."""
        return self._ask(question("version", {}, read_version))

"""Generated from client.py by tools/gen-python-async.mjs; change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Literal, Optional, Union, overload

from .checks import Names, When
from .async_finding import AsyncFinding
from .options import Purpose, Sorting
from .questions import capacity_question, question, read_advice, read_validation, read_version
from .reservations import CapacityBlock, CapacityBlockOffering, CapacityReservation, ReservationPlace, ReservationType
from .results import Offerings, Results
from .validation import Advice, Validation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import OfferingOptions, OwnedOptions


class AsyncTruffle(AsyncFinding):
    """The same for `asyncio`: each method returns a coroutine."""

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Literal[ReservationType.CAPACITY_BLOCKS],
        **options: Unpack[OwnedOptions],
    ) -> Results[CapacityBlock]: ...

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Optional[Literal[ReservationType.ODCR]] = ...,
        **options: Unpack[OwnedOptions],
    ) -> Results[CapacityReservation]: ...

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Optional[Literal[ReservationType.CAPACITY_BLOCKS]] = ...,
        offerings: Literal[True],
        **options: Unpack[OfferingOptions],
    ) -> Offerings[CapacityBlockOffering]: ...

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        topology: Literal[True],
        azs: Optional[Names] = ...,
    ) -> Results[ReservationPlace]: ...

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names],
        regions: Optional[Names],
        reservation_type: Union[ReservationType, str, Iterable[ReservationType], None],
        gpu_only: bool = ...,
        available_only: bool = ...,
        min_capacity: Optional[int] = ...,
    ) -> Results[Any]: ...

    @overload
    async def capacity(
        self,
        instance_types: Optional[Names] = ...,
        regions: Optional[Names] = ...,
        *,
        reservation_type: Union[str, Iterable[ReservationType]],
        **options: Unpack[OwnedOptions],
    ) -> Results[Any]: ...

    async def capacity(
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
        """See the method of `Truffle` with this name."""
        options = {
            **{"instance_types": instance_types, "regions": regions, "gpu_only": gpu_only, "available_only": available_only},
            **{"min_capacity": min_capacity, "azs": azs, "active_only": active_only, "all": all, "topology": topology},
            **{"offerings": offerings, "count": count, "days": days, "start_after": start_after},
            **{"start_before": start_before, "end_by": end_by, "sort": sort},
        }
        return await self._ask(capacity_question(reservation_type, options))

    async def validate(
        self,
        instance_type: str,
        count: int = 1,
        days: float = 1,
        start: Optional[When] = None,
        *,
        regions: Optional[Names] = None,
        azs: Optional[Names] = None,
    ) -> Validation:
        """See the method of `Truffle` with this name."""
        options = {"instance_type": instance_type, "count": count, "days": days, "start": start, "regions": regions, "azs": azs}
        return await self._ask(question("validate", options, read_validation))

    async def advise(
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
        """See the method of `Truffle` with this name."""
        options = {
            **{"purpose": purpose, "instance_type": instance_type, "machines": machines, "days": days},
            **{"scheduled": scheduled, "interruptible": interruptible, "scaling": scaling, "guaranteed": guaranteed},
        }
        return await self._ask(question("advise", options, read_advice))

    async def version(self) -> str:
        """See the method of `Truffle` with this name."""
        return await self._ask(question("version", {}, read_version))

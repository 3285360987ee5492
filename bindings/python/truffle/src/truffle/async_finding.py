"""Generated from finding.py by tools/gen-python-async.mjs; change that."""

from __future__ import annotations

from typing import Any, Literal, Optional, Type, Union, overload

from .checks import Names, flag, names, needed_names
from .questions import question, quotas_of, results_of
from .results import Quotas, Results
from .rows import Accelerator, InstanceFamily, InstanceType, InstanceZones, Quota, Region, SpotPrice
from .session import AsyncSession


class AsyncFinding(AsyncSession):
    """The same for `asyncio`: each method returns a coroutine."""

    async def search(
        self,
        pattern: Names,
        regions: Optional[Names] = None,
        architecture: Optional[str] = None,
        min_vcpus: Optional[int] = None,
        min_memory: Union[int, float, str, None] = None,
        *,
        family: Optional[Names] = None,
        gpu_only: bool = False,
        skip_azs: bool = False,
        show_price: bool = False,
    ) -> Results[InstanceType]:
        """See the method of `Truffle` with this name."""
        options = {
            **{"regions": regions, "architecture": architecture, "min_vcpus": min_vcpus, "min_memory": min_memory},
            **{"family": family, "gpu_only": gpu_only, "skip_azs": skip_azs, "show_price": show_price},
        }
        return await self._ask(question("search", options, results_of(InstanceType), needed_names(pattern, "pattern")))

    @overload
    async def az(
        self, pattern: Names, regions: Optional[Names] = ..., min_az_count: Optional[int] = ..., azs: Optional[Names] = ...,
        *, scores: Optional[int] = ...
    ) -> Results[InstanceZones]: ...

    @overload
    async def az(
        self,
        pattern: Names,
        regions: Optional[Names] = ...,
        min_az_count: Optional[int] = ...,
        azs: Optional[Names] = ...,
        *,
        regions_only: Literal[True],
    ) -> Results[Region]: ...

    async def az(
        self,
        pattern: Names,
        regions: Optional[Names] = None,
        min_az_count: Optional[int] = None,
        azs: Optional[Names] = None,
        *,
        regions_only: bool = False,
        scores: Optional[int] = None,
    ) -> Results[Any]:
        """See the method of `Truffle` with this name."""
        options = {
            "regions": regions,
            "min_az_count": min_az_count,
            "azs": azs,
            "regions_only": regions_only,
            "scores": scores,
        }
        row_type: Type[Any] = Region if regions_only else InstanceZones
        return await self._ask(question("az", options, results_of(row_type), needed_names(pattern, "pattern")))

    async def spot(
        self,
        pattern: Names,
        regions: Optional[Names] = None,
        max_price: Optional[float] = None,
        show_savings: bool = False,
        sort_by_price: bool = False,
        *,
        azs: Optional[Names] = None,
        pick_first: bool = False,
        active_only: bool = False,
        lookback_hours: Optional[float] = None,
        scores: Optional[int] = None,
        interruptions: bool = True,
    ) -> Results[SpotPrice]:
        """See the method of `Truffle` with this name."""
        options = {
            **{"regions": regions, "max_price": max_price, "show_savings": show_savings, "sort_by_price": sort_by_price},
            **{"azs": azs, "pick_first": pick_first, "active_only": active_only, "lookback_hours": lookback_hours},
            **{"scores": scores, "no_interruptions": not flag(interruptions, "interruptions")},
        }
        return await self._ask(question("spot", options, results_of(SpotPrice), needed_names(pattern, "pattern")))

    async def quotas(
        self,
        types: Optional[Names] = None,
        regions: Optional[Names] = None,
        *,
        gpu_only: bool = False,
        request: Optional[int] = None,
    ) -> Quotas[Quota]:
        """See the method of `Truffle` with this name."""
        options = {"regions": regions, "instance_types": types, "gpu_only": gpu_only, "request": request}
        return await self._ask(question("quotas", options, quotas_of))

    @overload
    async def list(
        self, pattern: Optional[Names] = ..., regions: Optional[Names] = ..., *, types: bool = ...
    ) -> Results[InstanceFamily]: ...

    @overload
    async def list(self, *, accelerators: Literal[True]) -> Results[Accelerator]: ...

    async def list(
        self,
        pattern: Optional[Names] = None,
        regions: Optional[Names] = None,
        *,
        types: bool = False,
        accelerators: bool = False,
    ) -> Results[Any]:
        """See the method of `Truffle` with this name."""
        options = {"regions": regions, "types": types, "accelerators": accelerators}
        row_type: Type[Any] = Accelerator if accelerators else InstanceFamily
        return await self._ask(question("list", options, results_of(row_type), names(pattern, "pattern") or ()))

"""Questions about machine types: where they are sold, their prices, and how many the account may run.

``async_finding.py`` is generated from this module: ``node tools/gen-python-async.mjs``.
"""

from __future__ import annotations

from typing import Any, Literal, Optional, Type, Union, overload

from .checks import Names, flag, names, needed_names
from .questions import question, quotas_of, results_of
from .results import Quotas, Results
from .rows import Accelerator, InstanceFamily, InstanceType, InstanceZones, Quota, Region, SpotPrice
from .session import Session


class Finding(Session):
    """Questions about machine types."""

    def search(
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
        """Finds machine types and where they are sold.

        Args:
            pattern: Type, family, glob, regular expression or accelerator: ``"m7i.large"``, ``"g6"``, ``"g6.*"``, ``"^p[45]"``,
                ``"H100"``; or several.
            regions: Regions to ask; by default those of the constructor.
            architecture: ``"x86_64"`` or ``"arm64"``.
            min_vcpus: At least so many vCPUs.
            min_memory: At least so much main memory, in GiB.
            family: Only these families, such as ``"p5"``.
            gpu_only: Only types with GPUs or other accelerators.
            skip_azs: Do not ask for zones.
            show_price: With the price on demand.
        """
        options = {
            **{"regions": regions, "architecture": architecture, "min_vcpus": min_vcpus, "min_memory": min_memory},
            **{"family": family, "gpu_only": gpu_only, "skip_azs": skip_azs, "show_price": show_price},
        }
        return self._ask(question("search", options, results_of(InstanceType), needed_names(pattern, "pattern")))

    @overload
    def az(
        self, pattern: Names, regions: Optional[Names] = ..., min_az_count: Optional[int] = ..., azs: Optional[Names] = ...,
        *, scores: Optional[int] = ...
    ) -> Results[InstanceZones]: ...

    @overload
    def az(
        self,
        pattern: Names,
        regions: Optional[Names] = ...,
        min_az_count: Optional[int] = ...,
        azs: Optional[Names] = ...,
        *,
        regions_only: Literal[True],
    ) -> Results[Region]: ...

    def az(
        self,
        pattern: Names,
        regions: Optional[Names] = None,
        min_az_count: Optional[int] = None,
        azs: Optional[Names] = None,
        *,
        regions_only: bool = False,
        scores: Optional[int] = None,
    ) -> Results[Any]:
        """Finds the zones of machine types.

        Args:
            pattern: As in `search`.
            regions: Regions to ask; by default those of the constructor.
            min_az_count: Only Regions with at least this many zones.
            azs: Only these zones, such as ``["us-east-1a", "us-east-1b"]``.
            regions_only: Only the names of the Regions: rows are `rows.Region`.
            scores: Capacity scores for this many on-demand machines (support plan Unified Operations).
        """
        options = {
            "regions": regions,
            "min_az_count": min_az_count,
            "azs": azs,
            "regions_only": regions_only,
            "scores": scores,
        }
        row_type: Type[Any] = Region if regions_only else InstanceZones
        return self._ask(question("az", options, results_of(row_type), needed_names(pattern, "pattern")))

    def spot(
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
        """Finds spot prices of every zone, their course, and how often AWS interrupts.

        Args:
            pattern: As in `search`.
            regions: Regions to ask; by default those of the constructor.
            max_price: Only up to this price, in US dollars per hour.
            show_savings: With the price on demand and the savings.
            sort_by_price: Cheapest first.
            azs: Only these zones.
            pick_first: Only the first result; with ``sort_by_price`` the cheapest.
            active_only: Only prices that have changed within ``lookback_hours``.
            lookback_hours: Hours of the price course; by default 168, a week, and at most 90 days.
            scores: Placement scores for this number of machines. AWS limits how many different questions it answers in a day.
            interruptions: Read how often AWS interrupts.
        """
        options = {
            **{"regions": regions, "max_price": max_price, "show_savings": show_savings, "sort_by_price": sort_by_price},
            **{"azs": azs, "pick_first": pick_first, "active_only": active_only, "lookback_hours": lookback_hours},
            **{"scores": scores, "no_interruptions": not flag(interruptions, "interruptions")},
        }
        return self._ask(question("spot", options, results_of(SpotPrice), needed_names(pattern, "pattern")))

    def quotas(
        self,
        types: Optional[Names] = None,
        regions: Optional[Names] = None,
        *,
        gpu_only: bool = False,
        request: Optional[int] = None,
    ) -> Quotas[Quota]:
        """Finds how many vCPUs the account may run, by family and market, and what running machines use.

        Args:
            types: Only the quotas of these types or families; by default all.
            regions: Regions to ask; by default those of the constructor.
            gpu_only: Only families with GPUs or other accelerators.
            request: The number of vCPUs that you want: `Quotas.request_commands` has the commands that ask AWS for them.
        """
        options = {"regions": regions, "instance_types": types, "gpu_only": gpu_only, "request": request}
        return self._ask(question("quotas", options, quotas_of))

    @overload
    def list(
        self, pattern: Optional[Names] = ..., regions: Optional[Names] = ..., *, types: bool = ...
    ) -> Results[InstanceFamily]: ...

    @overload
    def list(self, *, accelerators: Literal[True]) -> Results[Accelerator]: ...

    def list(
        self,
        pattern: Optional[Names] = None,
        regions: Optional[Names] = None,
        *,
        types: bool = False,
        accelerators: bool = False,
    ) -> Results[Any]:
        """Lists the instance families of a Region that have accelerators, with memory, network and relative speed.

        Args:
            pattern: Only these types or families; by default all with accelerators.
            regions: Regions to ask; by default that of the environment.
            types: Every type, not only the largest of each family.
            accelerators: The accelerators that Crucible knows, without asking AWS: rows are `rows.Accelerator`.
        """
        options = {"regions": regions, "types": types, "accelerators": accelerators}
        row_type: Type[Any] = Accelerator if accelerators else InstanceFamily
        return self._ask(question("list", options, results_of(row_type), names(pattern, "pattern") or ()))

"""Rows of the answers about machine types. Field names are those of the JSON of ``truffle``; None means unknown or not asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Optional, Tuple


def instant(text: Optional[str]) -> Optional[datetime]:
    """``2027-01-15T11:30:00Z`` as an aware `datetime`."""
    # Python 3.9 does not read the Z.
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass(frozen=True)
class InstanceType:
    """A machine type in one Region."""

    instance_type: str
    region: str
    #: Zones; empty with ``skip_azs=True``.
    availability_zones: Tuple[str, ...]
    vcpus: int
    #: Main memory in MiB.
    memory_mib: int
    #: ``x86_64`` or ``arm64``; both joined by ``/``.
    architecture: str
    #: GPUs or other accelerators; 0 without any.
    gpus: int
    #: Name of the accelerator, such as ``H100``.
    gpu_model: Optional[str]
    #: Memory of each accelerator in MiB.
    gpu_memory_mib: Optional[int]
    #: Network performance in AWS's words, such as ``3200 Gigabit``.
    network_performance: Optional[str]
    efa_interfaces: int
    #: US dollars per hour on demand; only with ``show_price=True``.
    on_demand_price: Optional[float]


@dataclass(frozen=True)
class InstanceZones:
    """Zones of a Region that have a machine type."""

    instance_type: str
    region: str
    availability_zones: Tuple[str, ...]
    #: Ids of the zones in the same order: names mean different places in different accounts. Empty texts without permission.
    availability_zone_ids: Tuple[str, ...]
    az_count: int
    #: ``high``, ``medium``, ``low`` or ``unsupported`` for each zone, on demand; only with ``scores=``, and for accounts that may ask.
    capacity_scores: Optional[Tuple[Optional[str], ...]]


@dataclass(frozen=True)
class Region:
    """A Region that has one of the types."""

    region: str


@dataclass(frozen=True)
class SpotPrice:
    """Spot price of a machine type in one zone. Prices are US dollars per hour."""

    instance_type: str
    region: str
    availability_zone: str
    spot_price: float
    #: On-demand price; only with ``show_savings=True``.
    on_demand_price: Optional[float]
    #: Saved against on demand, in percent; only with ``show_savings=True``.
    savings_percent: Optional[int]
    #: How often AWS interrupted machines of the type in the last month, such as ``<5%``.
    interruption_frequency: Optional[str]
    #: 1 to 10, for the Region; only with ``scores=``.
    placement_score: Optional[int]
    #: ``high``, ``medium``, ``low`` or ``unsupported``, for the zone; only with ``scores=``, and for accounts that may ask.
    capacity_score: Optional[str]
    #: Time of the last change of the price, ISO 8601 in UTC.
    timestamp: Optional[str]
    product_type: str
    lowest_price: float
    highest_price: float
    #: Prices of the last ``lookback_hours``, oldest first, at even distances.
    price_history: Tuple[float, ...]

    @property
    def changed_at(self) -> Optional[datetime]:
        """`timestamp` as an aware `datetime`."""
        return instant(self.timestamp)


@dataclass(frozen=True)
class Quota:
    """How many vCPUs the account may run in a Region, for a family and a market. A quota is a permission, not capacity."""

    region: str
    #: Families that count together, such as ``P``.
    family: str
    #: ``on-demand`` or ``spot``.
    market: str
    quota_code: str
    limit_vcpus: Optional[int]
    used_vcpus: Optional[int]
    available_vcpus: Optional[int]
    #: State of an open request for more.
    request: Optional[str]


@dataclass(frozen=True)
class InstanceFamily:
    """A family with accelerators by its largest type, or a type of it."""

    family: str
    instance_type: str
    region: str
    gpus: int
    gpu_model: Optional[str]
    #: Memory of each accelerator in MiB.
    gpu_memory_mib: Optional[int]
    vcpus: int
    #: Main memory in MiB.
    memory_mib: int
    architecture: str
    network_performance: Optional[str]
    efa_interfaces: int
    #: Speed of one accelerator in training, relative to an A100.
    relative_speed: Optional[float]
    #: US dollars per hour on demand.
    on_demand_price: Optional[float]


@dataclass(frozen=True)
class Accelerator:
    """An accelerator that Crucible knows."""

    accelerator: str
    #: Memory in GB, as vendors count.
    memory_gb: float
    #: Speed in training, relative to an A100.
    relative_speed: Optional[float]
    #: Lower end of the range in which nine of ten trainings are expected.
    speed_low: Optional[float]
    speed_high: Optional[float]
    #: Whether the speed was measured or derived.
    speed_basis: Optional[str]

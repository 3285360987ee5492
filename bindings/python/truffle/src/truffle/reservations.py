"""Reserved capacity and blocks for sale. Field names are those of the JSON of ``truffle``; None means unknown.

Dates are ISO 8601 in UTC, such as ``2027-01-15T11:30:00Z``; properties ending in ``_at`` are the same as aware `datetime`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Mapping, Optional, Tuple

from .rows import instant


class ReservationType(str, Enum):
    """Kinds of reservations that an account can own."""

    #: Capacity Blocks for ML: bought in advance for fixed dates, 1 to 14 days or whole weeks up to 182 days.
    CAPACITY_BLOCKS = "capacity-block"
    #: On-demand capacity reservations: billed for every instance from creation to cancellation, used or not.
    ODCR = "odcr"

    def __str__(self) -> str:
        return str(self.value)


class _Dated:
    start_date: Optional[str]
    end_date: Optional[str]

    @property
    def starts_at(self) -> Optional[datetime]:
        """`start_date` as an aware `datetime`."""
        return instant(self.start_date)

    @property
    def ends_at(self) -> Optional[datetime]:
        """`end_date` as an aware `datetime`; None without end."""
        return instant(self.end_date)


class _Block(_Dated):
    usable_until: Optional[str]

    @property
    def usable_until_at(self) -> Optional[datetime]:
        """`usable_until` as an aware `datetime`: AWS begins to end machines then."""
        return instant(self.usable_until)


@dataclass(frozen=True)
class CapacityReservation(_Dated):
    """An on-demand capacity reservation (ODCR) that the account owns or shares. Capacity is in instances, costs in US dollars per hour."""

    reservation_type: str
    reservation_id: str
    instance_type: str
    region: str
    availability_zone: str
    total_capacity: int
    #: Free for a launch now.
    available_capacity: int
    used_capacity: int
    #: ``active`` ones can be used; see `CapacityReservation.State` of EC2 for the others.
    state: str
    tenancy: str
    platform: str
    ebs_optimized: bool
    #: ``open``: matching machines use it automatically; ``targeted``: they must name it.
    instance_match_criteria: Optional[str]
    #: Its owner may end its machines at any time, so it does not count as room for a run.
    interruptible: bool
    owner_id: Optional[str]
    start_date: Optional[str]
    #: End of the reservation; None until it is cancelled.
    end_date: Optional[str]
    #: On-demand price of one instance.
    on_demand_price: Optional[float]
    #: The price of all its instances, used or not.
    hourly_cost: Optional[float]
    #: Hourly cost of its unused instances.
    idle_hourly_cost: Optional[float]
    tags: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class CapacityBlock(_Block):
    """A Capacity Block that the account owns."""

    reservation_type: str
    capacity_block_id: str
    #: A block is delivered as a capacity reservation, which a launch must name.
    reservation_id: str
    instance_type: str
    instance_count: int
    #: Instances that are free for a launch now; 0 before the start.
    available_capacity: int
    region: str
    availability_zone: str
    start_date: Optional[str]
    end_date: Optional[str]
    #: AWS begins to end machines then: 30 minutes before `end_date`, 60 for UltraServers.
    usable_until: Optional[str]
    #: Hours from start to end; not a number (`math.nan`) if AWS gives no dates.
    duration_hours: float
    #: ``scheduled``: paid, and cannot be used before its start; ``active``: can be used.
    state: str
    #: Always None: EC2 does not report the price that was paid.
    reservation_fee: Optional[float]
    #: AWS places every block in an UltraCluster.
    ultra_cluster_placement: bool
    tenancy: str
    platform: str
    owner_id: Optional[str]
    tags: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class CapacityBlockOffering(_Block):
    """A Capacity Block for sale, to the first buyer. It is paid at once and cannot be cancelled."""

    offering_id: str
    instance_type: str
    instance_count: int
    region: str
    availability_zone: str
    start_date: Optional[str]
    end_date: Optional[str]
    usable_until: Optional[str]
    duration_hours: float
    #: Price of the whole block, in `currency_code`.
    upfront_fee: float
    currency_code: str
    price_per_day: float
    price_per_instance_hour: float
    #: Upfront fee per hour in which one machine works for the wanted days; None if nothing of it fits.
    price_per_useful_hour: Optional[float]
    #: Hours of the wanted days that are left when its machines are ended; 0.5 for a block of just that length.
    short_hours: float
    ultra_cluster_placement: bool
    tenancy: str
    #: The command of Crucible that searches for such a block, asks, buys it once and watches it.
    reserve_command: str
    #: The command of the AWS CLI that buys it.
    purchase_command: str


@dataclass(frozen=True)
class ReservationPlace:
    """Where the machines of a reservation are in the network."""

    reservation_id: str
    instance_type: str
    region: str
    availability_zone: str
    state: str
    #: Nodes from the top of the network down: the more two reservations share, the closer they are. Empty if AWS does not show them.
    network_nodes: Tuple[str, ...]

"""Types of the arguments that the forms of `Truffle.capacity` share."""

from __future__ import annotations

from typing import Literal, Optional, TypedDict

from .checks import Names, When

Purpose = Literal["training", "retraining", "inference", "development", "experiments"]
Sorting = Literal["start", "price"]


class OwnedOptions(TypedDict, total=False):
    """About own reservations."""

    azs: Optional[Names]
    gpu_only: bool
    available_only: bool
    active_only: bool
    min_capacity: Optional[int]
    all: bool


class OfferingOptions(TypedDict, total=False):
    """About blocks for sale."""

    azs: Optional[Names]
    gpu_only: bool
    count: Optional[int]
    days: Optional[float]
    start_after: Optional[When]
    start_before: Optional[When]
    end_by: Optional[When]
    sort: Optional[Sorting]

"""Finds capacity of EC2 for ML, and checks it before a costly run.

    from truffle import ReservationType, Truffle

    tf = Truffle()
    blocks = tf.capacity(instance_types=["p5.48xlarge"], reservation_type=ReservationType.CAPACITY_BLOCKS)

`AsyncTruffle` has the same methods for `asyncio`.
"""

from . import errors
from .async_client import AsyncTruffle
from .client import Truffle
from .errors import (
    CapacityError,
    CommandFailed,
    ConditionalError,
    CrucibleError,
    ExecutableNotFound,
    NotFoundError,
    SchemaMismatch,
    UnavailableError,
    UsageError,
)
from .reservations import (
    CapacityBlock,
    CapacityBlockOffering,
    CapacityReservation,
    ReservationPlace,
    ReservationType,
)
from .results import Offerings, Quotas, Results, Summary, Unanswered
from .rows import Accelerator, InstanceFamily, InstanceType, InstanceZones, Quota, Region, SpotPrice
from .validation import Advice, Answer, RunOption, RunQuota, Validation, Wanted

__all__ = [
    "Accelerator",
    "Advice",
    "Answer",
    "AsyncTruffle",
    "CapacityBlock",
    "CapacityBlockOffering",
    "CapacityError",
    "CapacityReservation",
    "CommandFailed",
    "ConditionalError",
    "CrucibleError",
    "ExecutableNotFound",
    "InstanceFamily",
    "InstanceType",
    "InstanceZones",
    "NotFoundError",
    "Offerings",
    "Quota",
    "Quotas",
    "Region",
    "ReservationPlace",
    "ReservationType",
    "Results",
    "RunOption",
    "RunQuota",
    "SchemaMismatch",
    "SpotPrice",
    "Summary",
    "Truffle",
    "Unanswered",
    "UnavailableError",
    "UsageError",
    "Validation",
    "Wanted",
    "errors",
]


def __getattr__(name: str) -> str:
    # The version is read on demand, because the metadata of packages takes longer than the package.
    if name == "__version__":
        from importlib.metadata import version

        return version("truffle-aws")
    raise AttributeError("module %r has no attribute %r" % (__name__, name))

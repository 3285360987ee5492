"""Derives the interval between a program's saves from the manifests of all attempts. Pure."""

from statistics import median_low
from typing import Dict, List, NamedTuple, Optional, Sequence, Set


class Past(NamedTuple):
    """Saves of earlier attempts, from their manifests in the store."""

    complete: Sequence[dict] = ()
    """Manifests of the newest complete checkpoints, newest first."""
    saves: Sequence[dict] = ()
    """Manifests of every readable checkpoint."""


class Pace(NamedTuple):
    """The save interval derived from earlier saves; fields are None when there were too few."""

    interval_ms: Optional[int] = None
    """The usual time between two saves of one attempt."""
    interval_steps: Optional[int] = None
    """The usual number of steps between two saves, across attempts: sufficient when each attempt saved only once."""

    def usual_ms(self, ms_per_step: Optional[float]) -> Optional[int]:
        """The usual time between two saves, for a program with this step time."""
        if self.interval_ms is not None:
            return self.interval_ms
        if self.interval_steps is None or ms_per_step is None:
            return None
        return int(self.interval_steps * ms_per_step)


def pace_of(manifests: Sequence[dict]) -> Pace:
    """Takes one manifest of each checkpoint, in any order."""
    saved_at_ms: Dict[int, Set[int]] = {}
    steps: Set[int] = set()
    for manifest in manifests:
        # The clocks of two machines differ: only times of one attempt are compared.
        saved_at_ms.setdefault(manifest["attempt"], set()).add(manifest["savedAtMs"])
        if manifest["isStepKnown"]:
            steps.add(manifest["step"])
    times = [pause for instants in saved_at_ms.values() for pause in _pauses(instants)]
    # Checkpoints between two kept ones may have been deleted, so the lower of two middle values is more accurate.
    return Pace(_middle(times), _middle(_pauses(steps)))


def _pauses(numbers: Set[int]) -> List[int]:
    ordered = sorted(numbers)
    return [after - before for before, after in zip(ordered, ordered[1:])]


def _middle(numbers: List[int]) -> Optional[int]:
    return median_low(numbers) if numbers else None

"""Reads how programs fared with the checkpoints that they were given, from `restores.json` of every attempt so far."""

from typing import Dict, Set

from ..documents import RESTORES, parse
from ..keys import CheckpointId, Keys
from ..shapes import DocumentError
from ..store.base import Store


def read_failed(store: Store, keys: Keys, attempt: int) -> Set[CheckpointId]:
    """Returns the checkpoints on which programs failed, and from which none ever continued.

    Reads the earlier attempts and an earlier start of this attempt. Raises `StoreError`.
    """
    outcomes: Dict[str, Set[CheckpointId]] = {"trying": set(), "went-on": set(), "failed": set()}
    for number in range(1, attempt + 1):
        body = store.get(keys.restores_of(number))
        try:
            told = parse(RESTORES, body)["restores"] if body is not None else []
        except DocumentError:
            continue  # An unreadable document proves nothing.
        for each in told:
            checkpoint = each["checkpoint"]
            outcomes[each["outcome"]].add(CheckpointId(checkpoint["step"], checkpoint["attempt"]))
    return outcomes["failed"] - outcomes["went-on"]

"""Which machine works on the attempt: the first that says so, should a provider have made two of one order."""

import os
import re
import uuid

from ..documents import CLAIM, MACHINE_ID, dump, parse
from ..paths import write_whole
from ..shapes import DocumentError
from ..store.base import Store

# Of a machine that was not told what its provider calls it. Nobody takes such a name for a provider's id.
_UNNAMED = "unnamed-"


class ClaimedElsewhere(Exception):
    """The attempt is another machine's."""


def machine_id(path: str) -> str:
    """The provider's id of this machine, written by the backend; otherwise a name made at the first start."""
    try:
        with open(path, encoding="ascii") as file:
            told = file.read().strip()
        if re.fullmatch(MACHINE_ID, told):
            return told
    except (OSError, ValueError):
        pass  # nobody has told it, or a start was cut short before it claimed anything
    made = _UNNAMED + uuid.uuid4().hex
    try:
        # On the disk before it is in the store: a machine that forgot its id would take its own claim for another's.
        write_whole(path, made.encode("ascii"), is_synced=True)
    except OSError:
        pass  # no room: the attempt ends of that at its next step, and may say so only once it has claimed
    return made


def claim(store: Store, key: str, machine: str) -> None:
    """Puts the claim unless there is one. Raises `ClaimedElsewhere` when the one that is there is not this machine's."""
    if store.put_if_absent(key, dump({"machine": machine})):
        return
    # Put by a start before this one, or by this one, whose answer was lost, or for this machine by the control plane.
    # None is ever deleted.
    body = store.get(key)
    try:
        holder = parse(CLAIM, body or b"")["machine"]
    except DocumentError as error:
        raise ClaimedElsewhere("what is at %s cannot be understood: %s" % (key, error)) from error
    if holder != machine:
        raise ClaimedElsewhere("the attempt belongs to machine %s, and this is %s" % (holder, machine))

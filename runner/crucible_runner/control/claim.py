"""Which machine works on the attempt: the first that says so, should a provider have made two of one order."""

import os
import re
import uuid
from typing import Optional

from ..documents import CLAIM, MACHINE_ID, dump, parse
from ..paths import write_whole
from ..shapes import DocumentError
from ..store.base import Store

# Of a machine that was not told what its provider calls it. Nobody takes such a name for a provider's id.
_UNNAMED = "unnamed-"


class ClaimedElsewhere(Exception):
    """The attempt is another machine's."""


def _told(path: str) -> Optional[str]:
    """A name that the backend, or an earlier start, wrote for this machine."""
    try:
        with open(path, encoding="ascii") as file:
            told = file.read().strip()
    except (OSError, ValueError):
        return None  # nobody has told it, or a start was cut short before it claimed anything
    return told if re.fullmatch(MACHINE_ID, told) else None


def machine_id(path: str) -> str:
    """The provider's id of this machine, written by the backend; otherwise a name made at the first start."""
    told = _told(path)
    if told is not None:
        return told
    made = _UNNAMED + uuid.uuid4().hex
    try:
        # On the disk before it is in the store: a machine that forgot its id would take its own claim for another's.
        write_whole(path, made.encode("ascii"), is_synced=True)
    except OSError:
        pass  # no room: the attempt ends of that at its next step, and may say so only once it has claimed
    return made


def send_name(path: str) -> Optional[str]:
    """The name of the send that made this machine, where the backend wrote it. Two machines of one send have the same."""
    return _told(path)


def claim(store: Store, key: str, machine: str, send: Optional[str] = None) -> None:
    """
    Puts the claim unless there is one. Raises `ClaimedElsewhere` when the one that is there is not this machine's: `send` tells the
    control plane which machine it is, and never makes a claim this machine's own.
    """
    if store.put_if_absent(key, dump({"machine": machine} if send is None else {"machine": machine, "send": send})):
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

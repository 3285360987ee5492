"""Decides which machine works on the attempt when a provider made two machines from one order: the first to claim it."""

import re
import uuid
from typing import Optional

from ..documents import CLAIM, MACHINE_ID, dump, parse
from ..paths import write_whole
from ..shapes import DocumentError
from ..store.base import Store

# Prefix of the id of a machine that did not get an id from its provider. No provider id begins with it.
_UNNAMED = "unnamed-"


class ClaimedElsewhere(Exception):
    """The attempt belongs to another machine."""


def _told(path: str) -> Optional[str]:
    """Returns a name that the backend, or an earlier start, wrote for this machine."""
    try:
        with open(path, encoding="ascii") as file:
            told = file.read().strip()
    except (OSError, ValueError):
        return None  # no name was written, or an earlier start was cut short before it claimed anything
    return told if re.fullmatch(MACHINE_ID, told) else None


def machine_id(path: str) -> str:
    """Returns the provider's id of this machine as written by the backend; otherwise a name made at the first start."""
    told = _told(path)
    if told is not None:
        return told
    made = _UNNAMED + uuid.uuid4().hex
    try:
        # The id is synced to disk before it enters the store: a machine that forgot its id would treat its own claim as another machine's.
        write_whole(path, made.encode("ascii"), is_synced=True)
    except OSError:
        pass  # disk full: the attempt fails at its next step, and may report that only after the claim
    return made


def send_name(path: str) -> Optional[str]:
    """Returns the name of the send that made this machine, if the backend wrote it. Two machines of one send have the same name."""
    return _told(path)


def claim(store: Store, key: str, machine: str, send: Optional[str] = None) -> None:
    """Puts the claim unless one exists. Raises `ClaimedElsewhere` when the existing one is not this machine's. `send` lets the control
    plane identify the machine; it never decides whether a claim is this machine's own.
    """
    if store.put_if_absent(key, dump({"machine": machine} if send is None else {"machine": machine, "send": send})):
        return
    # The claim was put by an earlier start, by this start with a lost answer, or by the control plane for this machine. Claims are never
    # deleted.
    body = store.get(key)
    try:
        holder = parse(CLAIM, body or b"")["machine"]
    except DocumentError as error:
        raise ClaimedElsewhere("invalid claim at %s: %s" % (key, error)) from error
    if holder != machine:
        raise ClaimedElsewhere("the attempt belongs to machine %s, but this is %s" % (holder, machine))

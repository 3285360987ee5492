"""What a program tells the judge: one line for each event, in a file outside its checkpoint directory.

The judge believes nothing else about what was saved and what a program found when it began."""

import contextlib
import hashlib
import json
import os
import sys
import time
import traceback
from typing import Iterator, List

_NOTES = os.path.join(os.environ["HABIT_NOTES"], "notes.ndjson")
# Enough to tell files apart; a save may have a thousand of them.
_DIGEST_LENGTH = 16


def note(event: str, **facts: object) -> None:
    # CLOCK_MONOTONIC is one clock for all processes of a machine, the judge's included.
    line = dict(facts, event=event, atMs=time.monotonic_ns() / 1e6)
    line.update(attempt=int(os.environ["CRUCIBLE_ATTEMPT"]), pid=os.getpid())
    handle = os.open(_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps(line) + "\n").encode())
    finally:
        os.close(handle)


def digest(*parts: bytes) -> str:
    """Of a training's state: equal states have equal digests."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(b"%d:" % len(part))
        whole.update(part)
    return whole.hexdigest()[:_DIGEST_LENGTH]


def resumed(step: int, state: str) -> None:
    """The program has loaded a checkpoint and continues from it."""
    note("resumed", step=step, state=state)


def fresh() -> None:
    """The program has found no checkpoint and begins at the beginning."""
    note("fresh")


def step(number: int) -> None:
    note("step", step=number)


def steps_left() -> int:
    """How many steps this start trains: the last attempt of a life has an end, the others go on until they are interrupted."""
    return int(os.environ.get("HABIT_STEPS_LEFT", "0")) or 1_000_000


def finished() -> None:
    note("finished")


@contextlib.contextmanager
def saving(step: int, state: str) -> Iterator[List[str]]:
    """Around a save. Takes the paths of the files without which it is worth nothing; none where they go on changing."""
    note("saving", step=step, state=state)
    files: List[str] = []
    try:
        yield files
    except Exception as error:
        note("save-failed", step=step, words=repr(error))
        raise
    note("saved", step=step, state=state, files=sorted(_file_digest(path) for path in files))


def _file_digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:_DIGEST_LENGTH]


def _crashed(kind, error, trace) -> None:
    words = "".join(traceback.format_exception_only(kind, error)).strip()
    note("crashed", words=words[:300])
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _crashed
note("started")

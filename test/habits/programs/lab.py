"""A pretended training: its state is a function of the step, so that a mixture of two states is found out."""

import os
import random
import time
from typing import ContextManager, Dict, Iterator, List

import witness

SAVE_EVERY = 10
_STEP_SECONDS = 0.14
# Longer than the quiet time that the judge's orders have: a program is free to pause for as long as it likes.
_PAUSE_SECONDS = 0.7
_MODEL_BYTES = 40_000
_has_begun = False


def state_at(step: int) -> Dict[str, object]:
    """What a training has to save after a step."""
    return {"step": step, "model": _weights("model", step), "optimizer": _weights("optimizer", step)}


def _weights(name: str, step: int) -> bytes:
    size = _MODEL_BYTES * (1 if name == "model" else 2)
    return random.Random("%s %d" % (name, step)).getrandbits(8 * size).to_bytes(size, "big")


def digest_of(state: Dict[str, object]) -> str:
    return witness.digest(b"%d" % state["step"], state["model"], state["optimizer"])


def go_on(state: Dict[str, object]) -> int:
    """The program has loaded this and trains on. Returns the step after which it does."""
    global _has_begun
    _has_begun = True
    witness.resumed(state["step"], digest_of(state))
    return state["step"]


def train(start: int) -> Iterator[int]:
    """The steps after `start`. The last attempt of a life has an end; the others go on until they are interrupted."""
    if not _has_begun:
        witness.fresh()
    for step in range(start + 1, start + witness.steps_left() + 1):
        time.sleep(_STEP_SECONDS)
        witness.step(step)
        yield step
    witness.finished()


def loss(step: int) -> float:
    return 4 / (1 + step / 20)


def is_save_due(step: int) -> bool:
    return step % SAVE_EVERY == 0


def saving(step: int) -> "ContextManager[List[str]]":
    return witness.saving(step, digest_of(state_at(step)))


def pause(times: float = 1) -> None:
    """Something takes its time: gathering shards, compressing, copying from a device."""
    time.sleep(_PAUSE_SECONDS * times)


def write_slowly(path: str, data: bytes, mode: str = "wb", seconds: float = 0.6) -> None:
    """Writes a file in pieces, held open all the while."""
    pieces = 6
    size = -(-len(data) // pieces)
    with open(path, mode) as file:
        for start in range(0, len(data), size):
            file.write(data[start : start + size])
            file.flush()
            time.sleep(seconds / pieces)

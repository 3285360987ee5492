"""Small text files that name a checkpoint next to them: `latest`, `last_checkpoint`, TensorFlow's `checkpoint`."""

import os
import posixpath
import re
from functools import lru_cache
from typing import Dict, FrozenSet, Iterable, List

from .names import unit_of

_BYTES_MAX = 4096
# Number of checkpoints that a program may name, for example the best one and the last one.
_NAMED_MAX = 2
# Characters around a path: quotes, as in `model_checkpoint_path: "ckpt-3"` or JSON, and white space.
_WORDS = re.compile(r"[^\s\"'=,:{}\[\]]+")


def read_pointers(directory: str, stamps: Dict[str, tuple]) -> Dict[str, FrozenSet[str]]:
    """Maps the path of each pointer file to the numbered files or folders among `stamps` that it names. The first field of a stamp is the
    size of the file; a file is read again when its stamp changes."""
    units = {unit_of(path) for path in stamps} - {None}
    if not units:
        return {}
    named = {unit.path for unit in units}
    found = {}
    for path, stamp in stamps.items():
        if unit_of(path) is None and 0 < stamp[0] <= _BYTES_MAX:
            targets = _named_by(path, _words(os.path.join(directory, path), stamp), named)
            if len(targets) > _NAMED_MAX:
                # A list of all checkpoints, as TensorFlow writes one, means the newest.
                targets = frozenset([max(targets, key=lambda target: (unit_of(target).name.number, target))])
            if targets:
                found[path] = targets
    return found


def _named_by(pointer: str, words: Iterable[str], units: Iterable[str]) -> FrozenSet[str]:
    """A path may be relative to the pointer's folder or to another folder, and may lack its extension."""
    folder = posixpath.dirname(pointer)
    beside: Dict[str, str] = {}
    for unit in units:
        if posixpath.dirname(unit) == folder:
            name = posixpath.basename(unit)
            for each in (name, posixpath.splitext(name)[0]):
                beside[each] = unit
    found: List[str] = []
    for word in words:
        path = posixpath.normpath(posixpath.join(folder, word))
        name = posixpath.basename(word.rstrip("/"))
        found += [path] if path in units else [beside[name]] if name in beside else []
    return frozenset(found)


@lru_cache(maxsize=4096)
def _words(path: str, _stamp: tuple) -> FrozenSet[str]:
    """Returns the words of a text file; none for a binary file or one that cannot be read now."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW), encoding="utf-8") as file:
            text = file.read(_BYTES_MAX)
    except (OSError, ValueError):
        return frozenset()
    return frozenset() if "\0" in text else frozenset(_WORDS.findall(text))

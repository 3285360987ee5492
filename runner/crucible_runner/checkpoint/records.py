"""Finds files that only grow (logs, metrics, databases). They are not checkpoints, and checkpoints do not wait for them."""

import os
from typing import Callable, Dict, NamedTuple, Optional, Set

from ..walls import NO_WALLS
from .names import is_possible_state, is_record, template
from .scan import FileStamp, Tree

# A text file that has grown alone this often, with pauses or training in between, is not part of a save.
_GROWTHS = 2
# A text file that keeps growing for this many times the quiet time is not part of a save, whether or not the program reports steps.
_GROWING_QUIETS = 10
_PROBE_BYTES = 512

IsText = Callable[[str], bool]


class _Growing(NamedTuple):
    since_ms: int
    changed_ms: int
    step: Optional[int]
    growths: int


class Records:
    """Recognizes records by name, and learns others from scan to scan."""

    def __init__(self, quiet_ms: int) -> None:
        self._quiet_ms = quiet_ms
        self._learned: Set[str] = set()
        self._growing: Dict[str, _Growing] = {}
        self._before: Optional[Tree] = None
        self._is_alone = False

    def __call__(self, path: str) -> bool:
        if self._is_alone and is_possible_state(path):
            return False
        return is_record(path) or template(path) in self._learned

    def learn(self, path: str) -> None:
        """Marks a file as a record: it stays open while the program runs, or is open for appending only."""
        self._learned.add(template(path))

    def observe(self, tree: Tree, is_text: IsText, now_ms: int, step: Optional[int]) -> None:
        """Processes a scan. `is_text` reports whether a file begins as text, `step` is the newest step of the program."""
        files = tree.files
        # A program whose only state is a database or a list of results has no other checkpoint.
        self._is_alone = all(is_record(path) or template(path) in self._learned for path in files)
        before, self._before = self._before, tree
        if before is None:
            return
        changed = [path for path, stamp in files.items() if before.files.get(path) != stamp]
        for path in changed:
            old = before.files.get(path)
            if old is None or files[path].size <= old.size:
                self._growing.pop(path, None)
                if old is not None:
                    self._learned.discard(template(path))
        serious = [path for path in changed if not self(path)]
        if len(serious) == 1 and serious[0] in before.files:
            self._observe_growth(serious[0], tree, is_text, now_ms, step)
        elif serious:
            self._growing.clear()

    def _observe_growth(self, path: str, tree: Tree, is_text: IsText, now_ms: int, step: Optional[int]) -> None:
        if tree.files[path].size <= 0 or not is_text(path) or not self._is_beside_another(tree.files, path, is_text):
            return
        seen = self._growing.get(path) or _Growing(now_ms, now_ms, step, 0)
        has_trained = step is not None and seen.step is not None and step > seen.step
        is_new = has_trained or now_ms - seen.changed_ms >= self._quiet_ms
        seen = _Growing(seen.since_ms, now_ms, step, seen.growths + is_new)
        self._growing[path] = seen
        if seen.growths >= _GROWTHS or now_ms - seen.since_ms >= _GROWING_QUIETS * self._quiet_ms:
            self._learned.add(template(path))

    def _is_beside_another(self, files: Dict[str, FileStamp], path: str, is_text: IsText) -> bool:
        """A text file without a larger or binary file next to it is the program's state."""
        others = [each for each in files if each != path and not self(each)]
        return any(files[each].size >= 2 * files[path].size or not is_text(each) for each in others)


def looks_like_text(path: str) -> bool:
    try:
        with NO_WALLS.opened(path) as descriptor:
            return b"\0" not in os.pread(descriptor, _PROBE_BYTES, 0)
    except OSError:
        return False

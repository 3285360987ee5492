"""What the workload leaves: its output directory and what the order names."""

import glob
import os
from typing import Dict, List, Tuple

from .clock import Clock
from .documents import is_utf8
from .keys import Keys
from .retry import Remark, Trouble, persist
from .store import Store
from .transfer import Changed, IsOver, upload_whole


def find_artifacts(output: str, work: str, patterns: List[str]) -> Tuple[Dict[str, str], List[str]]:
    """The files to keep, by their path among the job's artifacts, and a remark for each pattern that does not work out."""
    found: Dict[str, str] = {}
    remarks = []
    for pattern in patterns:
        if os.path.isabs(pattern) or ".." in pattern.split("/"):
            remarks.append("the output %s is outside the working directory and is not kept" % pattern)
            continue
        matches = sorted(glob.glob(os.path.join(glob.escape(work), pattern), recursive=True))
        if not matches:
            remarks.append("there is no output %s" % pattern)
        for match in matches:
            _add(found, work, match)
    # The output directory comes last: where both have a name, the place made for artifacts wins.
    for name in sorted(os.listdir(output)) if os.path.isdir(output) else []:
        _add(found, output, os.path.join(output, name))
    for name in [name for name in found if not is_utf8(name)]:
        remarks.append("the artifact %s is not kept: rename it, its name is no UTF-8" % os.fsencode(name))
        del found[name]
    return found, remarks


def _add(found: Dict[str, str], base: str, path: str) -> None:
    if os.path.isfile(path):
        found[os.path.relpath(path, base).replace(os.sep, "/")] = path
    elif os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            folders.sort()
            for name in sorted(files):
                _add(found, base, os.path.join(folder, name))


class Keeper:
    """Uploads artifacts. What could not be uploaded before time was over is not in `kept`."""

    def __init__(self, store: Store, keys: Keys, clock: Clock, remark: Remark) -> None:
        self._store = store
        self._keys = keys
        self._remark = remark
        self._trouble = Trouble("uploading an artifact", remark, clock)
        self.kept: List[dict] = []

    def keep(self, found: Dict[str, str], is_over: IsOver) -> None:
        """Raises `GaveUp` when time is over."""
        for name, path in sorted(found.items()):
            key = self._keys.artifact(name)
            try:
                digest = persist(
                    lambda: upload_whole(self._store, key, path, is_over), is_over, self._trouble
                )
                size = os.path.getsize(path)
            except (OSError, Changed, ValueError) as error:
                self._remark("the artifact %s is not kept: %s" % (name, error))
                continue
            self.kept.append({"path": name, "sizeBytes": size, "sha256": digest})

"""Runs of Weights & Biases, as the program's output and the folder `wandb` show them.

The id is not chosen here but learned: a program that starts several runs, in one process or in several, must keep several.
"""

import os
import re
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Set
from urllib.parse import quote

from ..documents import RUN_ID
from .runs import RUNS_MAX, WANDB, TrackedRun

# `run-20261126_101500-3vn0mtn6`: the folder of a run. W&B refuses ids with these characters, except the control characters and quotes.
_FOLDER = r"(?:offline-)?run-\d{8}_\d{6}-(?P<id>[^\s/\\:;,#?%'\"\x00-\x20\x7f]{1,128})"
_NAME = re.compile(_FOLDER)
_PRINTED = re.compile(_FOLDER.encode("ascii"))
_URL_FRONT = re.compile(rb"https?://[A-Za-z0-9.:-]{1,255}/[!-~]{1,512}")
_AFTER_URL = re.compile(rb"[\w.~%-]")
# The longest text in front of `/runs/`.
_URL_BYTES_MAX = 780
_SAVED = b"saved locally in"
# Lines are the program's: a search in a very long one must not keep the runner busy.
_LINE_BYTES_MAX = 4096
_IDS_MAX = 100
_OWN_CHOICES = ("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_SWEEP_ID")


class WandbRuns:
    """Knows all runs of the job, oldest first."""

    def __init__(self, known: Iterable[TrackedRun]) -> None:
        self._urls: Dict[str, Optional[str]] = {run.run_id: run.url for run in known}
        self._folder = ""
        self._may_read: Callable[[str], bool] = lambda _: False
        self._before: Set[str] = set()

    def begin(self, folder: str, may_read: Callable[[str], bool]) -> None:
        """The command is about to start. The runs that `folder` has by now are not its own: the code may have come with them."""
        self._folder, self._may_read = folder, may_read
        self._before = set(self._names())

    def environment(self, own: Mapping[str, str]) -> Dict[str, str]:
        """Returns the variables that continue the job's run: none if it has several, or if the job's own variables decide."""
        if len(self._urls) != 1 or any(own.get(name) for name in _OWN_CHOICES):
            return {}
        (run_id,) = self._urls
        return {"WANDB_RUN_ID": run_id, "WANDB_RESUME": "allow"}

    def see(self, lines: Iterable[bytes]) -> bool:
        """Looks for runs in printed lines. Returns whether a run or its address is new."""
        is_new = False
        for line in lines:
            if b"wandb" not in line:
                continue
            part = line[:_LINE_BYTES_MAX]
            at = part.find(_SAVED)
            found = _PRINTED.search(part, at) if at >= 0 else None
            if found is not None:
                is_new = self._add(found.group("id").decode("utf-8", "replace")) or is_new
            is_new = self._see_url(part) or is_new
        return is_new

    def look(self) -> None:
        """Looks for runs in the folder: a silent program prints nothing."""
        for name in sorted(set(self._names()) - self._before):
            self._add(_NAME.fullmatch(name).group("id"))

    def document(self) -> List[TrackedRun]:
        runs = [TrackedRun(WANDB, run_id, url) for run_id, url in list(self._urls.items())]
        return runs[-RUNS_MAX:]

    def _add(self, run_id: str) -> bool:
        if run_id in self._urls or len(self._urls) >= _IDS_MAX:
            return False
        if "\ufffd" in run_id or re.fullmatch(RUN_ID, run_id) is None:
            return False
        self._urls[run_id] = None
        return True

    def _see_url(self, line: bytes) -> bool:
        """Only the program itself knows the entity and the project for sure."""
        if b"/runs/" not in line:
            return False
        for run_id, known in list(self._urls.items()):
            if known is not None:
                continue
            url = _url_in(line, b"/runs/" + quote(run_id).encode("ascii"))
            if url is not None:
                self._urls[run_id] = url.decode("ascii")
                return True
        return False

    def _names(self) -> List[str]:
        if not self._may_read(self._folder):
            return []
        try:
            return [name for name in os.listdir(self._folder) if _NAME.fullmatch(name)]
        except OSError:
            return []


def folder_of_runs(work: str, own: Mapping[str, str]) -> str:
    """Returns the folder in which W&B keeps the files of runs, unless the program names another one."""
    return os.path.normpath(os.path.join(work, own.get("WANDB_DIR") or ".", "wandb"))


def _url_in(line: bytes, ending: bytes) -> Optional[bytes]:
    """Returns the URL in a line with this ending, which names the run; None without one."""
    at = line.find(ending)
    while at >= 0:
        end = at + len(ending)
        start = line.rfind(b"http", max(0, at - _URL_BYTES_MAX), at)
        if _AFTER_URL.match(line, end) is None and start >= 0 and _URL_FRONT.fullmatch(line, start, at) is not None:
            return line[start:end]
        at = line.find(ending, end)
    return None

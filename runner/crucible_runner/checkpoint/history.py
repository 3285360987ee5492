"""Records how the program fares with each restored checkpoint, in `restores.json` of this attempt."""

import threading
from typing import List, Optional

from ..clock import Clock
from ..documents import dump
from ..keys import Keys
from ..store.base import Store, StoreError
from ..store.retry import Remark, Trouble
from .restore import Candidate


class RestoreBook:
    """Writes `restores.json`. After a store failure it retries with the next change and with every beat."""

    def __init__(self, store: Store, keys: Keys, attempt_id: str, clock: Clock, remark: Remark) -> None:
        self._store = store
        self._keys = keys
        self._attempt_id = attempt_id
        self._clock = clock
        self._trouble = Trouble("recording the outcome of a restored checkpoint", remark, clock)
        self._lock = threading.Lock()
        self._restores: List[dict] = []
        self._is_written = True

    @property
    def has_gone_on(self) -> bool:
        return bool(self._restores) and self._restores[-1]["outcome"] == "went-on"

    def begin(self, candidate: Candidate, why: str) -> None:
        """Records that the candidate is about to be restored."""
        self._restores.append(
            {
                "checkpoint": candidate.checkpoint.document(),
                "revision": candidate.manifest["revision"],
                "state": candidate.state,
                "why": why,
                "atMs": self._clock.wall_ms(),
                "outcome": "trying",
                "message": None,
            }
        )
        self._write()

    def end(self, outcome: str, message: Optional[str] = None) -> None:
        """Records the outcome of the last restore; only the first outcome counts."""
        last = self._restores[-1] if self._restores else None
        if last is not None and last["outcome"] == "trying":
            last["outcome"], last["message"] = outcome, message
            self._write()

    def retry(self) -> None:
        """Runs with every beat."""
        if not self._is_written:
            self._write()

    def _write(self) -> None:
        self._is_written = False
        with self._lock:
            self._put()

    def _put(self) -> None:
        document = {"version": 1, "attemptId": self._attempt_id, "restores": self._restores}
        try:
            self._store.put(self._keys.restores, dump(document))
            self._is_written = True
            self._trouble.passed()
        except StoreError as error:
            self._trouble.happened(error)

"""Progress of saving files into the store, which beats report."""

import threading
from typing import Dict, Iterable, Mapping, Optional, Tuple


class Saving:
    """Progress over several files, each counted once it is settled. The beats thread reads it while others write."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._lock = threading.Lock()
        self._sizes = dict(sizes)
        self._settled: Dict[str, int] = {}
        self._sent = 0
        self._read = 0

    def tell(self, doing: str, done_bytes: int) -> None:
        """Reports the progress of the current file, in the terms of `transfer.Tell`."""
        with self._lock:
            if doing == "uploading":
                self._sent = done_bytes
            else:
                self._read = done_bytes

    def settle(self, name: str, is_kept: bool) -> None:
        """Records whether a file is kept or finally left out."""
        with self._lock:
            self._settled[name] = self._sizes[name] if is_kept else 0
            if not is_kept:
                self._sizes[name] = 0
            self._sent = self._read = 0

    def again(self) -> None:
        """The current file is tried again later."""
        with self._lock:
            self._sent = self._read = 0

    def document(self) -> Optional[dict]:
        """Returns None when everything is done."""
        with self._lock:
            if len(self._settled) == len(self._sizes):
                return None
            done = sum(self._settled.values())
            document = _document("artifacts", (len(self._settled), len(self._sizes)), sum(self._sizes.values()), done + self._sent)
            return dict(document, bytesRead=min(document["bytesTotal"], done + max(self._read, self._sent)))


def of_checkpoint(files: Iterable[Tuple[int, int]]) -> Optional[dict]:
    """Returns the same fields for a checkpoint, from size and sent bytes of each of its files; None without files."""
    known = list(files)
    if not known:
        return None
    done = sum(1 for size, sent in known if sent >= size)
    counts = (done, len(known))
    return _document("checkpoint", counts, sum(size for size, _ in known), sum(sent for _, sent in known))


def _document(what: str, counts: Tuple[int, int], total_bytes: int, done_bytes: int) -> dict:
    files_done, files_total = counts
    return {
        "what": what,
        "filesDone": files_done,
        "filesTotal": files_total,
        # A file may have grown since it was counted.
        "bytesDone": min(total_bytes, done_bytes),
        "bytesTotal": total_bytes,
    }

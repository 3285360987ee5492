"""Takes turns through a file on file systems without hard links (storage/place.ts is the other side)."""

import os
import time

# A turn is one check and one rename; a file that stays this long belongs to a process that was killed.
_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.02


def take_turn(path: str) -> None:
    """Creates the file, whose removal ends the turn; waits while another process holds it. Raises `OSError`."""
    patience = _PATIENCE_SECONDS
    seen = None
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            return
        except FileExistsError:
            pass
        try:
            status = os.stat(path)
            now = (status.st_ino, status.st_ctime_ns)
        except FileNotFoundError:
            now = None
        patience = patience - _PAUSE_SECONDS if now == seen else _PATIENCE_SECONDS
        seen = now
        if patience <= 0:
            try:
                os.unlink(path)
            except OSError:
                pass
        time.sleep(_PAUSE_SECONDS)

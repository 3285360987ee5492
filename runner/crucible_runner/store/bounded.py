"""Runs an action that may hang, such as a request to a server that does not answer."""

import sys
import threading
from typing import Callable, List

from .retry import GaveUp

_LOOK_SECONDS = 0.05


def bounded(action: Callable[[], object], is_over: Callable[[], bool]) -> None:
    """Runs the action in its own thread and waits only until `is_over`: a server may hang instead of failing."""
    errors: List[BaseException] = []

    def run() -> None:
        try:
            action()
        except GaveUp as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="bounded", daemon=True)
    thread.start()
    thread.join(_LOOK_SECONDS)
    while thread.is_alive() and not is_over():
        thread.join(_LOOK_SECONDS)
    for error in errors:
        print(error, file=sys.stderr)

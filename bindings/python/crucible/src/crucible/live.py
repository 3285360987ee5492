"""A view of a job that changes while it runs: a card in notebooks, lines elsewhere. IPython is used only where it is."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional

from . import html
from .status import Status


class Card:
    """Shows statuses of one job, each in the place of the one before."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._line: Optional[str] = None
        self._is_notebook = is_notebook()

    def update(self, status: Status) -> None:
        """Shows a status."""
        if self._is_notebook:
            self._in_notebook(status)
            return
        line = str(status)
        if line != self._line:
            print(line, flush=True)
        self._line = line

    def _in_notebook(self, status: Status) -> None:
        display: Any = importlib.import_module("IPython.display")
        view = display.HTML(html.card(status))
        if self._shown is None:
            self._shown = display.display(view, display_id=True)
        else:
            self._shown.update(view)


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows HTML. A terminal with IPython does not."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")

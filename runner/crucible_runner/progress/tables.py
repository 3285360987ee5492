"""Tables in which programs print a row for each epoch or step: fastai, scikit-learn, spaCy."""

import re
from typing import Dict, Optional

from .numbers import NUMBER, finite
from .reading import Count, Reading

_HEAD = re.compile(rb"^\s*(?:epoch|iter|iteration|itn\.?|step|E)(?:\t|\s{2,})", re.IGNORECASE)
_ROW = re.compile(rb"^\s*\d+(?:\s+\S+)+\s*$")
_FIGURE = re.compile(NUMBER)
_GAP = re.compile(rb"\t+|\s{2,}")
_EPOCHS = (b"epoch", b"e")
_STEPS = (b"iter", b"iteration", b"step", b"#")
_LOSSES = (b"train_loss", b"train loss", b"loss", b"training loss")
_COLUMNS_MAX = 30
_DIGITS_MAX = 12


class Tables:
    """Remembers the heading of the last table. A line that is not a row does not end the table, because other output interrupts tables."""

    def __init__(self) -> None:
        self._columns: Dict[str, int] = {}
        self._width = 0

    def read(self, line: bytes) -> Optional[Reading]:
        if self._width == 0 or not line[:24].lstrip()[:1].isdigit():
            if _HEAD.match(line[:24]) is not None:
                self._begin(line)
            return None
        if len(line) > 512 or _ROW.match(line) is None:
            return None
        cells = line.split()
        if len(cells) != self._width:
            return None
        found = {name: cells[at] for name, at in self._columns.items() if _FIGURE.fullmatch(cells[at])}
        epoch, step, loss = found.get("epoch"), found.get("step"), found.get("loss")
        if not all(cell is None or (cell.isdigit() and len(cell) <= _DIGITS_MAX) for cell in (epoch, step)):
            return None
        return Reading(
            step=Count(int(step)) if step is not None else None,
            is_step_whole=True,
            epoch=float(epoch) if epoch is not None else None,
            is_epoch_over=step is None,
            loss=finite(loss) if loss is not None else None,
        )

    def _begin(self, line: bytes) -> None:
        names = [name.strip().lower() for name in _GAP.split(line.strip()[:512])]
        # A heading contains only names, one of them a loss.
        if len(names) > _COLUMNS_MAX or any(name[:1].isdigit() for name in names):
            return
        if not any(b"loss" in name for name in names):
            return
        self._width = len(names)
        self._columns = {}
        for key, known in (("epoch", _EPOCHS), ("step", _STEPS), ("loss", _LOSSES)):
            for at, name in enumerate(names):
                if name in known:
                    self._columns.setdefault(key, at)

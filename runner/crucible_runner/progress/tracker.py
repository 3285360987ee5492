"""Combines the information of all lines about the training. Pure: no clock, no files, no threads.

Units are never mixed. `step` holds only steps of the whole training; epochs, and the part of an epoch that is done, have separate
fields. An ambiguous count is not reported until later lines resolve it.
"""

from typing import NamedTuple, Optional, Tuple

from .bars import Bar
from .reading import Count, Reading

_NO_STEP, _BAR_STEP, _WORD_STEP = 0, 1, 2


class Progress(NamedTuple):
    step: Optional[int] = None
    steps_total: Optional[int] = None
    epoch: Optional[float] = None
    epochs_total: Optional[int] = None
    batch: Optional[int] = None
    """The finished part of the epoch, or of a bar with an unknown unit."""
    batches_total: Optional[int] = None
    loss: Optional[float] = None
    percent: Optional[float] = None


class Tracker:
    def __init__(self, restored_step: int = 0) -> None:
        self._is_restored = restored_step > 0
        self._step: Optional[Count] = None
        self._source = _NO_STEP
        self._is_step_confirmed = False
        self._is_nested: Optional[bool] = None
        """Whether steps restart with each epoch; None until that is known."""
        self._last_in_epoch: Optional[Tuple[int, int]] = None
        self._epoch: Optional[float] = None
        self._epochs: Optional[int] = None
        self._first_epoch: Optional[int] = None
        self._is_epoch_over = False
        self._is_epoch_counted = False
        self._lone_epoch: Optional[int] = None
        self._lone_epochs = 0
        self._are_lone_lines_repeated = False
        self._inner: Optional[Count] = None
        self._inner_key: Optional[Tuple[bytes, Optional[int]]] = None
        self._is_inner_closed = False
        self._loose: Optional[Bar] = None
        self._loss: Optional[float] = None
        self._percent: Optional[float] = None
        self._percent_of: object = None
        self.has_advanced = False
        """A count of the training has grown: at least one step was done while the output was read."""

    def see(self, reading: Reading) -> None:
        is_own = True
        if reading.epoch is not None:
            self._see_epoch(reading)
        if reading.bar is not None:
            is_own = self._see_bar(reading, reading.bar)
        elif reading.inner is not None:
            self._see_inner(reading.inner, (b"", reading.inner.total))
        if reading.step is not None:
            self._see_step(reading, reading.step)
        if reading.loss is not None and is_own:
            self._loss = reading.loss
        self._count_percent()

    @property
    def progress(self) -> Progress:
        step = self._step
        inner = self._inner
        if inner is None and step is None and self._loose is not None:
            inner = Count(self._loose.done, self._loose.total)
        return Progress(
            step=step.done if step is not None else None,
            steps_total=step.total if step is not None else None,
            epoch=self._epoch,
            epochs_total=self._epochs,
            batch=inner.done if inner is not None else None,
            batches_total=inner.total if inner is not None else None,
            loss=self._loss,
            percent=self._percent,
        )

    @property
    def is_done(self) -> bool:
        """The last step of a known number of steps is done; bars and epochs never count for that."""
        step = self._step
        is_sure = self._source == _WORD_STEP and step is not None and step.total is not None
        return is_sure and step.done >= step.total

    @property
    def _is_fractional(self) -> bool:
        """Fractional epochs such as 1.5, as the Trainer of Transformers prints them: it counts its steps over the whole training."""
        return self._epoch is not None and self._first_epoch is None

    def _see_epoch(self, reading: Reading) -> None:
        number = reading.epoch
        if reading.epochs is not None and number > reading.epochs:
            return
        if number % 1 != 0 or (self._is_fractional and reading.step is None and reading.bar is None):
            self._first_epoch = None
            self._epoch = number
            return
        epoch = int(number)
        if self._epoch is not None and epoch < self._epoch and reading.epochs is None and self._epochs is not None:
            return  # reported in another way, such as counted from 0
        if self._first_epoch is None or self._epoch is None or epoch < self._epoch:
            self._first_epoch = epoch
        if epoch != self._epoch:
            self.has_advanced = self.has_advanced or (self._epoch is not None and epoch > self._epoch)
            self._epoch = epoch
            self._inner, self._inner_key, self._is_inner_closed = None, None, False
            self._is_epoch_over = False
        if reading.epochs is not None:
            self._epochs = reading.epochs
        self._is_epoch_over = self._is_epoch_over or reading.is_epoch_over or self._is_lone_line(reading, epoch)

    def _is_lone_line(self, reading: Reading, epoch: int) -> bool:
        """A line with only epoch and loss ends the epoch in a program that prints one per epoch, which two such lines show."""
        if reading.loss is None or reading.bar or reading.inner or reading.step:
            return False
        if epoch == self._lone_epoch:
            self._are_lone_lines_repeated = True
        elif self._lone_epoch is not None:
            self._lone_epochs += 1
        self._lone_epoch = epoch
        return self._lone_epochs > 0 and not self._are_lone_lines_repeated

    def _see_inner(self, inner: Count, key: Tuple[bytes, Optional[int]]) -> bool:
        """Returns False when the counter is not the followed one of this epoch: the epoch's first counter is followed."""
        before = self._inner
        if before is not None:
            is_end = before.total is not None and before.done >= before.total
            self._is_inner_closed = self._is_inner_closed or (inner.done < before.done and is_end)
            if self._is_inner_closed or key != self._inner_key:
                return False
            self.has_advanced = self.has_advanced or inner.done > before.done
        self._inner, self._inner_key = inner, key
        return True

    def _see_bar(self, reading: Reading, bar: Bar) -> bool:
        """Returns False when the bar is not one of the followed training."""
        count = Count(bar.done, bar.total)
        if reading.epoch is None and bar.is_of_epochs and bar.total is not None:
            return self._see_outer_bar(bar.done, bar.total)
        if reading.epoch is None and bar.is_of_steps and not bar.is_header_needed and bar.total is not None:
            self._set_step(count, _BAR_STEP)
            return True
        if self._epoch is not None and not self._is_fractional:
            return self._see_inner(count, (bar.key, bar.total))
        if bar.is_header_needed:
            return False
        return self._see_loose(bar, reading.loss is not None)

    def _see_outer_bar(self, done: int, total: int) -> bool:
        """A bar that counts finished epochs, so that it begins with 0."""
        if done != self._epoch:
            self._inner, self._inner_key, self._is_inner_closed = None, None, False
            self.has_advanced = self.has_advanced or (self._epoch is not None and done > self._epoch)
        self._epoch, self._epochs, self._first_epoch, self._is_epoch_counted = done, total, 0, True
        return True

    def _see_loose(self, bar: Bar, has_loss: bool) -> bool:
        """A bar whose unit is unknown: it may count the whole training, one epoch, or something else."""
        known = self._loose
        bar = bar._replace(is_named_for_training=bar.is_named_for_training or has_loss)
        if known is not None and (known.key, known.total) != (bar.key, bar.total):
            is_better = bar.is_named_for_training and not known.is_named_for_training
            is_larger = (bar.total or 0) > (known.total or 0)
            if not (is_better or (is_larger and bar.is_named_for_training == known.is_named_for_training)):
                return False
            known = None
        if known is not None:
            bar = bar._replace(is_named_for_training=bar.is_named_for_training or known.is_named_for_training)
            if bar.is_named_for_training and bar.done > known.done:
                self.has_advanced = True
        self._loose = bar
        if self._is_fractional and bar.total is not None:
            self._set_step(Count(bar.done, bar.total), _BAR_STEP)
        return True

    def _see_step(self, reading: Reading, step: Count) -> None:
        is_in_epochs = self._epoch is not None and not self._is_fractional
        if reading.is_step_whole or not is_in_epochs:
            if self._is_nested and not reading.is_step_whole:
                self._see_inner(step, (b"step", step.total))
                return
            self._set_step(step, _WORD_STEP, reading.loss is not None or step.total is not None)
            return
        epoch = int(self._epoch)
        last = self._last_in_epoch
        if last is not None and epoch > last[0] and self._is_nested is None:
            self._is_nested = step.done <= last[1]
        self._last_in_epoch = (epoch, step.done)
        if self._is_nested is False:
            self._set_step(step, _WORD_STEP, True)
            return
        self._see_inner(step, (b"step", step.total))
        self._set_step_of_epoch(step, epoch)

    def _set_step_of_epoch(self, step: Count, epoch: int) -> None:
        """A step next to an epoch, counted over the training or over the epoch, which is the same in the first epoch."""
        before = epoch - self._first_epoch if self._is_base_sure else None
        if before == 0:
            total = step.total if self._epochs == 1 and epoch == 1 else None
            self._set_step(Count(step.done, total), _WORD_STEP, True)
        elif before is not None and self._is_nested and step.total is not None:
            self._set_step(Count(before * step.total + step.done), _WORD_STEP, True)
        else:
            self._step = None

    @property
    def _is_base_sure(self) -> bool:
        """The number of the first epoch is known: it was seen, and no epoch came before it."""
        return self._first_epoch == 0 or (self._first_epoch == 1 and not self._is_restored)

    def _set_step(self, step: Count, source: int, is_confirmed: bool = True) -> None:
        if source < self._source and self._is_step_confirmed:
            return
        known = self._step
        if known is not None and source == self._source:
            # A single number may appear in any sentence: a second, larger one makes it progress.
            is_confirmed = is_confirmed or step.done > known.done
            self.has_advanced = self.has_advanced or step.done > known.done
            if step.done < known.done and known.total is not None and step.total == known.total:
                # The count restarts without a mention of epochs, so the steps were those of a part of the training.
                self._is_nested = True
                self._step, self._source = None, _NO_STEP
                self._see_inner(step, (b"step", step.total))
                return
        self._step = step
        self._is_step_confirmed = is_confirmed or (self._is_step_confirmed and source == self._source)
        self._source = source

    def _count_percent(self) -> None:
        of, percent = self._percent_now()
        if percent is None:
            # Numbered epochs lose nothing while their parts are not reported.
            if of != self._percent_of or of is None:
                self._percent, self._percent_of = None, of
            return
        percent = int(min(percent, 100.0) * 10) / 10
        if of == self._percent_of and self._percent is not None:
            percent = max(percent, self._percent)
        self._percent, self._percent_of = percent, of

    def _percent_now(self) -> Tuple[object, Optional[float]]:
        step = self._step
        if step is not None and step.total:
            return ("step", step.total), 100.0 * step.done / step.total
        if self._epochs is None or self._epoch is None or self._is_fractional or self._epochs < self._epoch:
            return None, None
        base = 0 if self._first_epoch == 0 else 1
        # When epochs count from 0, a total may be their number or the index of the last one; the larger interpretation never overstates
        # progress.
        total = self._epochs + (1 if base == 0 and not self._is_epoch_counted else 0)
        if total <= 0:
            return None, None
        part = 0.0
        inner = self._inner
        if self._is_epoch_over:
            part = 1.0
        elif inner is not None and inner.total and self._is_inner_of_epoch:
            part = min(1.0, inner.done / inner.total)
        return ("epoch", total), 100.0 * (self._epoch - base + part) / total

    @property
    def _is_inner_of_epoch(self) -> bool:
        """The counter next to the epoch restarts with each epoch, or there is only one epoch."""
        return self._inner_key is None or self._inner_key[0] != b"step" or bool(self._is_nested) or self._epochs == 1

"""Interprets one line of training output. Pure: the tracker keeps what earlier lines reported."""

import re
from typing import NamedTuple, Optional

from .bars import Bar, NotTraining, find_bar
from .losses import find_loss
from .numbers import COUNT, DIGITS, EVAL_MARK, NUMBER, OF_TOTAL, finite, whole

# Figures appear within this length; searching a long line blocks the whole process.
BYTES_PER_LINE = 1024

_WORTH_A_LOOK = re.compile(
    rb"step|iter|epoch|loss|xent|learn:|batch|num_updates|\d/[\dU]|\d it \[|it \[|\d of \d|^\[?\d+[\]:]|Train: |avg", re.IGNORECASE
)
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]+")
# Long runs of blanks would take every expression quadratic time.
_BLANKS = re.compile(rb"[ \t]{3,}")

# A line about an earlier attempt of the job says nothing about this one.
_EARLIER = re.compile(
    rb"\b(?:resum(?:e|es|ed|ing)|restor(?:e|es|ed|ing)|roll(?:ed|ing)? ?back|continu(?:e|es|ed|ing)|warm[- ]?start\w*)\b",
    re.IGNORECASE,
)
# Words before a figure that show that it does not count training.
_OTHER_MATTER = re.compile(
    rb"\b(?:load(?:s|ed|ing)?|sav(?:e|es|ed|ing)|skip(?:s|ped|ping)?|download(?:s|ed|ing)?|found|wrote|writing|written|"
    rb"checkpoints?|ckpt|delet(?:e|ed|ing)|remov(?:e|ed|ing)|warm-?up|will|best|profil\w*)\b(?![\w.]*\.py)",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    rb"\b(?:from|until|till|before|every|each|per|max(?:imum)?|min(?:imum)?|total|last|best|of|start(?:s|ed|ing)? at|"
    rb"start(?:s|ed|ing)?|begin(?:s|ning)?|at least|next|previous|stopp?(?:ed|ing)? at|"
    rb"see|in|to|this|that|the|a|an|as|and|or|with|for|by|is|than)[\s:(\[]*$",
    re.IGNORECASE,
)
_BOUNDARY_BYTES = 64
_START = re.compile(rb"\bstart(?:s|ed|ing)?\s*$|\bbegin(?:s|ning)?\s*$", re.IGNORECASE)
# `Step 1/12 : FROM python`, `step 2 of 5: downloading`.
_PROCEDURE = re.compile(rb"[\s:.\-]{0,5}(?:[A-Za-z]{3,}ing\b|[A-Z]{3,} \S)")

_SEPARATORS = rb"(?=[\s:=#(\[\"'])['\"]?\s{0,4}(?:[:=#(\[]\s{0,4}){0,4}['\"]?"
_STEP = re.compile(
    rb"(?<![A-Za-z0-9_\-./])(?:(?:\w+/)?(global[_ -]?)|(?:train(?:ing)?|current|optimizer|completed|learning)[_ -])?"
    rb"(step|iter(?:ation)?)(s?)" + _SEPARATORS + OF_TOTAL,
    re.IGNORECASE,
)
_UPDATES = re.compile(rb"\bnum_updates['\"]?\s{0,4}[:= ]\s{0,4}" + COUNT)
_STEPS_JSON = re.compile(rb"['\"]current_steps['\"]:\s*" + COUNT + rb",\s*['\"]total_steps['\"]:\s*" + COUNT)
_TIMESTEPS = re.compile(rb"\btotal_timesteps\s*\|\s*" + COUNT)
_EPOCH = re.compile(
    rb"(?<![A-Za-z0-9_\-.])epoch(s?)(?:\.{3})?\s{0,4}(?:\(train\))?" + _SEPARATORS
    + rb"(\d{1,9}(?:\.\d+)?)(?![\w%])(?:\s*(?:/|\bof\b)\s*" + COUNT + rb")?",
    re.IGNORECASE,
)
# The counter after the epoch: `][10/5005]`, `] [ 20/200]`, ` [640/60000 (1%)]`, `:    450 / 1891 `, `, 12850/37527;`, ` 0/1279867]`.
_INNER = re.compile(
    rb"[\]\s:,|\-]*(?:\[\s*" + COUNT + rb"\s*/\s*" + COUNT + rb"\s*(?:\(\s*\d+(?:\.\d+)?\s*%\s*\))?\s*\]|"
    + COUNT + rb"\s*/\s*" + COUNT + rb"(?=[\s;,\]]))"
)
_BATCH = re.compile(rb"(?<![A-Za-z0-9_\-])batch" + _SEPARATORS + OF_TOTAL, re.IGNORECASE)
_ESPNET = re.compile(rb"(?<!\w)(" + DIGITS + rb")epoch:train:\d{1,12}-(" + DIGITS + rb")batch")
_TIMM = re.compile(
    rb"\bTrain:\s{1,4}(\d{1,12})(?:/(\d{1,12}))?\s{1,4}(?:\(\s{0,4}\d{1,12}%\)\s{0,4})?\[\s{0,4}(\d{1,12})/(\d{1,12})\s{0,4}"
    rb"(?:\(\s{0,4}\d{1,12}(?:\.\d{1,12})?%\s{0,4}\))?\s{0,4}\]"
)
_YOLO = re.compile(rb"^\s*(" + DIGITS + rb")/(" + DIGITS + rb")\s+[\d.]+[GM]\s")
_TORCHTUNE = re.compile(rb"^(" + DIGITS + rb")\|(" + DIGITS + rb")\|Loss: ")
# Text that programs print when an epoch is over.
_OVER = re.compile(
    rb"\b(?:done|complete[d]?|finished|took|ended)\b|(?<![A-Za-z])(?:val|valid|validation|test|dev|eval)[_ \-/:.]*"
    rb"(?:loss|acc\w*|f1|auc|ppl|error|score)|\b(?:avg\.?|average|mean)[ _](?:train\w* )?loss|\btrain[_ ]loss\b",
    re.IGNORECASE,
)
# Programs that begin a line with the bare step number, each with the text that must follow it.
_LEADING = (
    # XGBoost, LightGBM: `[12]\ttrain-logloss:0.3`, `[10]:    train's l2:0.09`
    re.compile(rb"^\[(\d{1,9})\](?:\t|:?\s+(?=\S+'s ))\S[^\[]*?:\s*(?:" + NUMBER + rb"|nan)"),
    # CatBoost: `12:\tlearn: 0.57`, before 0.7 `12: learn 0.57`
    re.compile(rb"^(\d{1,9}):\s+learn:?\s+(" + NUMBER + rb")"),
    # darknet: `75: 625.195312, 517.632019 avg, 0.000000 rate`
    re.compile(rb"^\s*(\d{1,9}): " + NUMBER + rb", (" + NUMBER + rb") avg"),
    # llama2.c and its kin: `120 | loss 4.8438 | lr 3.0e-04`
    re.compile(rb"^\s*(\d{1,9}) \| loss "),
    # Flax with clu: `logging_writer.py:35] [1000] steps_per_second=1.76`
    re.compile(rb"\] \[(\d{1,9})\] (?:steps_per_second|train_\w+|loss)="),
    # scikit-learn: `building tree 3 of 12`, `[3/100] 1 tree, 31 leaves`
    re.compile(rb"^building tree (" + DIGITS + rb") of \d{1,12}(?!\d)"),
    re.compile(rb"^\[(" + DIGITS + rb")/\d{1,12}\] \d+ trees?, \d+ leaves"),
)
_OF = re.compile(rb"^(?:building tree \d+ of (" + DIGITS + rb")|\[\d+/(" + DIGITS + rb")\] \d+ tree)")
_LEARN = re.compile(rb"^(?:\d+:\s+learn:?\s+|\s*\d+: [^,]+, )(" + NUMBER + rb")")
_TRAIN_METRIC = re.compile(rb"\btrain\w{0,40}(?:-|'s )\w{0,40}loss\s{0,4}:\s{0,4}(" + NUMBER + rb")")


class Count(NamedTuple):
    done: int
    total: Optional[int] = None


class Reading(NamedTuple):
    """The content of a line; each part is None when the line does not contain it."""

    step: Optional[Count] = None
    is_step_whole: bool = False
    """The step certainly counts the whole training: the line says so, or the step precedes its epoch."""
    epoch: Optional[float] = None
    epochs: Optional[int] = None
    is_epoch_over: bool = False
    inner: Optional[Count] = None
    """The finished part of the epoch, in the program's own unit: batches, samples."""
    bar: Optional[Bar] = None
    loss: Optional[float] = None


def read(line: bytes) -> Optional[Reading]:
    """Interprets the line; returns None when it says nothing certain about the training."""
    text = line[:BYTES_PER_LINE]
    if _WORTH_A_LOOK.search(text) is None:
        return None
    text = _BLANKS.sub(b"  ", _CONTROL.sub(b"", text))
    if _EARLIER.search(text) is not None:
        return None
    try:
        bar = find_bar(text)
    except NotTraining:
        return None
    reading = _read_special(text) or _read_words(text, bar)
    return None if reading == Reading() else reading


def _read_special(text: bytes) -> Optional[Reading]:
    for form in _LEADING:
        match = form.search(text)
        if match is not None:
            of = _OF.match(text)
            total = int(next(filter(None, of.groups()))) if of is not None else None
            loss = _LEARN.match(text) or _TRAIN_METRIC.search(text)
            value = finite(loss.group(1)) if loss is not None else find_loss(text)
            return Reading(step=Count(int(match.group(1)), total), is_step_whole=True, loss=value)
    match = _ESPNET.search(text)
    if match is not None:
        inner = Count(int(match.group(2)))
        return Reading(epoch=float(match.group(1)), inner=inner, loss=find_loss(text))
    match = _TIMM.search(text)
    if match is not None:
        epochs = int(match.group(2)) if match.group(2) else None
        inner = Count(int(match.group(3)), int(match.group(4)))
        return Reading(epoch=float(match.group(1)), epochs=epochs, inner=inner, loss=find_loss(text))
    return None


def _read_words(text: bytes, bar: Optional[Bar]) -> Reading:
    loss = find_loss(text)
    epoch, epochs, inner, at = None, None, None, None
    match = _epoch_of(text, bar)
    if match is not None:
        at = match.start()
        epoch, epochs = float(match.group(2)), whole(match.group(3)) if match.group(3) else None
        inner = _inner_of(text, match.end()) if bar is None else None
    if bar is not None:
        special = _YOLO.match(text)
        if special is not None:
            epoch, epochs = float(special.group(1)), int(special.group(2))
        special = _TORCHTUNE.match(text)
        if special is not None:
            step = Count(int(special.group(2)))
            return Reading(step, True, float(special.group(1)), bar=bar, loss=loss)
    step, is_whole, step_at = _step_of(text, loss, bar, epoch)
    if step is None and epoch is None and inner is None and bar is None:
        match = _BATCH.search(text)
        if match is not None and match.group(2) and not _is_other_matter(text[: match.start()]):
            inner = Count(whole(match.group(1)), whole(match.group(2)))
    is_eval = _is_of_evaluation(text, [figure for figure in (at, step_at) if figure is not None], bar)
    if is_eval:
        return Reading()
    if step is not None and at is not None and step_at is not None and step_at < at:
        is_whole = True
    is_over = epoch is not None and bar is None and step is None and inner is None and _OVER.search(text) is not None
    if loss is not None and _is_other_matter(text[: text.lower().find(b"loss")]):
        loss = None
    return Reading(step, is_whole, epoch, epochs, is_over, inner, bar, loss)


def _epoch_of(text: bytes, bar: Optional[Bar]) -> Optional["re.Match[bytes]"]:
    """Returns the epoch; a bar has it in its name, and the program's own figures follow."""
    match = _EPOCH.search(text if bar is None else bar.name)
    if match is None or (match.group(1) and match.group(3) is None):
        return None
    before = text[: match.start()] if bar is None else b""
    if _is_other_matter(before) or (_BOUNDARY.search(before) is not None and _START.search(before) is None):
        return None
    return match


def _inner_of(text: bytes, end: int) -> Optional[Count]:
    match = _INNER.match(text, end)
    if match is not None:
        done, total = match.group(1) or match.group(3), match.group(2) or match.group(4)
        return Count(whole(done), whole(total)) if whole(done) <= whole(total) else None
    match = _BATCH.search(text, end)
    if match is None:
        return None
    return Count(whole(match.group(1)), whole(match.group(2)) if match.group(2) else None)


def _step_of(text: bytes, loss: Optional[float], bar: Optional[Bar], epoch: Optional[float]):
    """Returns the step, whether it certainly counts the whole training, and its position."""
    match = _STEPS_JSON.search(text)
    if match is not None:
        return Count(whole(match.group(1)), whole(match.group(2))), True, match.start()
    for form in (_UPDATES, _TIMESTEPS):
        match = form.search(text)
        if match is not None and bar is None:
            return Count(whole(match.group(1))), True, match.start()
    best = None
    other = _OTHER_MATTER.search(text)
    other_at = other.end() if other is not None else len(text)
    for match in _STEP.finditer(text):
        is_global, plural, done, total = match.group(1), match.group(3), match.group(4), match.group(5)
        if plural and total is None and (loss is None or is_global):
            continue
        if is_global and match.group(2).lower() != b"step":
            continue
        # Only the words directly in front of the figure bound it.
        before = text[max(0, match.start() - _BOUNDARY_BYTES) : match.start()]
        if match.start() >= other_at or _BOUNDARY.search(before) is not None:
            continue
        if total is not None and (whole(done) > whole(total) or _is_procedure(text, match, loss)):
            continue
        if best is None or (is_global and not best[1]):
            count = Count(whole(done), whole(total) if total else None)
            best = (count, bool(is_global), match.start())
    if best is None:
        return None, False, None
    if best[1] or epoch is None or epoch % 1 != 0:
        return best
    return best[0], False, best[2]


def _is_procedure(text: bytes, match: "re.Match[bytes]", loss: Optional[float]) -> bool:
    return loss is None and _PROCEDURE.match(text, match.end()) is not None


def _is_other_matter(before: bytes) -> bool:
    return _OTHER_MATTER.search(before) is not None


def _is_of_evaluation(text: bytes, figures: "list[int]", bar: Optional[Bar]) -> bool:
    """True when the line belongs to a pass over other data, whatever its figures."""
    mark = EVAL_MARK.search(text)
    if mark is None or bar is not None:
        return False
    rest = text[mark.end() :]
    loss_at = re.search(rb"(?<![A-Za-z])loss|\bacc", text, re.IGNORECASE)
    first = min(figures) if figures else len(text)
    return mark.start() < first or loss_at is None or mark.start() < loss_at.start() or rest.lstrip().startswith(b"on ")

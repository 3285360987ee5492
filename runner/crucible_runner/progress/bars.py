"""Progress bars in the formats of tqdm, Keras, fastprogress, rich and others."""

import re
from typing import NamedTuple, Optional

from .numbers import BAR_COUNT, EVAL_WORDS

_N = BAR_COUNT
_FORMS = tuple(
    re.compile(form)
    for form in (
        # tqdm: ` 24%|██▍       | 12/50 [00:01<00:03, 11.9it/s, loss=1.2]`
        rb"\d{1,3}%\s*\|[^|]*\|\s*" + _N + rb"/" + _N + rb"(?:\s+\[| \d+:\d\d)",
        # tqdm without room for a bar, and where another format has put `[12/50]` before it
        rb"\d{1,3}%\s+" + _N + rb"/" + _N + rb"\s+\[",
        rb"\[" + _N + rb"/" + _N + rb"\]\s+\d{1,3}%\s*\|",
        # tqdm without a total: `26it [00:00, 877.95it/s]`
        rb"(?:^|(?<=: ))" + _N + rb"()it \[\d",
        # Keras: ` 12/100 [==>...]`, `12/100 ━━━━`, `100/100 - 2s - loss: 0.3`, `12/Unknown - 3s`
        rb"^\s*" + _N + rb"/(?:" + _N + rb"|Unknown)\s+(?:\[[=>.]+\]|\xe2\x94\x81|-\s+\d+m?s\b)",
        # fastprogress: `|███---| 20.00% [1/5 00:00<00:00 loss 1.0]`
        rb"%\s+\[" + _N + rb"/" + _N + rb"\s+\d+:\d\d",
        # progressbar2: ` 25% (2 of 8) |####   |`
        rb"\d{1,3}%\s+\(" + _N + rb" of " + _N + rb"\)\s+\|",
        # alive-progress: `|████    | 4/20 [20%] in 0s`
        _N + rb"/" + _N + rb" \[\d{1,3}%\] in ",
        # rich, in Lightning's format: `Epoch 0/9 ━━━━ 100/500 0:00:10 • 0:00:40`
        rb"[\xe2\x94\x81\xba\xb8\x95]\s+" + _N + rb"/" + _N + rb"\s+\d+:\d\d:\d\d",
        # a partly written bar of one of the formats above
        rb"(?<![\w./])" + _N + rb"/" + _N + rb" \[",
    )
)
_MIGHT_BE = re.compile(rb"\d(?:/[\dU]| of \d|it \[)")

_NOT_TRAINING = re.compile(
    rb"(?<![A-Za-z0-9])(?:" + EVAL_WORDS + rb"|download\w*|upload\w*|load\w*|fetch\w*|map|filter\w*|token\w*|"
    rb"pre-?process\w*|process\w*|extract\w*|cach\w*|generat\w*|sampl\w*|decod\w*|encod\w*|resolv\w*|convert\w*|"
    rb"writ\w*|sav\w*|creat\w*|read\w*|scan\w*|flatten\w*|cast\w*|concat\w*|group\w*|index\w*|embed\w*|skip\w*|"
    rb"unpack\w*|pack\w*|copy\w*|copying|build\w*|compil\w*|captur\w*|shards?|files?|install\w*|collect\w*|rollouts?|"
    rb"map@?\S*|images\s+(?:labels|instances)|class\s+images|plot\w*|render\w*|score|scoring|quanti\w*|merg\w*|"
    rb"push\w*|prepar\w*|warm-?up|add\w*|running)(?![A-Za-z])",
    re.IGNORECASE,
)
_OTHER_UNIT = re.compile(
    rb"(?:[\d?] ?|s/ ?)(?:examples?|rows?|files?|docs?|[kMGT]?i?B|bytes|urls?|tokens?|shards?|keys?|lines?|chunks?|"
    rb"pages?|requests?)(?:/s|(?=[\],]|$))",
)
_OF_TRAINING = re.compile(rb"train|epoch|step|iter|fit\b|batch|learn|optimi|progress", re.IGNORECASE)
_OF_STEPS = re.compile(rb"(?<![A-Za-z])(?:steps?|iter(?:ation)?s?|progress)(?![A-Za-z])", re.IGNORECASE)
_OF_EPOCHS = re.compile(rb"(?:train\w*\s+)?epochs?$", re.IGNORECASE)
_FIGURES = re.compile(rb"[\d.]+")


class Bar(NamedTuple):
    """A bar that counts training, according to its own text."""

    name: bytes
    done: int
    total: Optional[int]
    is_named_for_training: bool
    is_of_steps: bool
    """Its name shows that it counts steps of the whole training."""
    is_header_needed: bool
    """Keras draws the same bar for training, evaluation and prediction; only the preceding line distinguishes them."""

    @property
    def key(self) -> bytes:
        """Returns a key shared by all versions of one bar and by the same bar of other epochs."""
        return _FIGURES.sub(b"", self.name.partition(b"|")[0]).strip().lower()

    @property
    def is_of_epochs(self) -> bool:
        """Whether it is the outer one of two bars, which counts whole epochs."""
        return _OF_EPOCHS.match(self.name) is not None


class NotTraining(Exception):
    """The bar in the line does not count training."""


def find_bar(text: bytes) -> Optional[Bar]:
    """Returns the bar in a line; None without one. Raises `NotTraining`."""
    if _MIGHT_BE.search(text) is None:
        return None
    for form in _FORMS:
        match = form.search(text)
        if match is not None:
            return _bar(text, match, form is _FORMS[4])
    return None


def _bar(text: bytes, match: "re.Match[bytes]", is_keras: bool) -> Bar:
    name, after = text[: match.start()].strip(b" :|-\t"), text[match.end() :]
    if _NOT_TRAINING.search(name) is not None or _OTHER_UNIT.search(after) is not None:
        raise NotTraining()
    total = int(match.group(2)) if match.group(2) else None
    done = int(match.group(1))
    if total is not None and done > total:
        raise NotTraining()
    is_named = _OF_TRAINING.search(name) is not None
    is_of_steps = _OF_STEPS.search(name) is not None
    return Bar(name, done, total, is_named, is_of_steps, is_keras)

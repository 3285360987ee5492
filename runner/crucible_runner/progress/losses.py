"""Finds the training loss in a line; a validation loss is never used."""

import re
from typing import Optional

from .numbers import EVAL_WORDS, NUMBER, finite

# `loss: 2.31`, `'loss': 2.31`, `loss = 2.31`, `Loss | 2.31`, `loss/train/total: 2.31`, `"loss": "2.31"`.
_LOSS = re.compile(
    rb"(?:loss(?:_step|_epoch|/train/total)?|\bxent)['\"]?\s{0,4}(?:[:=|(]\s{0,4}){0,4}['\"]?(" + NUMBER + rb")(?![\w%])",
    re.IGNORECASE,
)
_WORD_BEFORE = re.compile(rb"(?<![A-Za-z0-9_/\-.'])([A-Za-z0-9_/\-.']*)$")
# Words that may be joined with `loss`: `train_loss`, `total_loss`, `train-logloss`, `train/CrossEntropyLoss`.
_SAME_LOSS = re.compile(
    rb"(?:\w+/)?(?:(?:reduced|total|lm|mlm|train(?:ing)?|tr|avg\.?|average|mean|batch|running|step|epoch|"
    rb"cross[-_]?entropy|nll|learn|global|current|binary|categorical|c|log|mlog|multi|ema|smoothed?)[-_/]?)*$",
    re.IGNORECASE,
)
# Separate words that may precede `loss`: `train loss`, `lm loss`, `Avg. loss`, `training's binary_logloss`.
_SAME_WORD = re.compile(
    rb"(?:train(?:ing)?(?:'s|_loss's)?|lm|total|avg\.?|average|mean|batch|running|current|step|epoch|cross|entropy|"
    rb"cross-entropy|the|and|with|nll|global|info|log)$",
    re.IGNORECASE,
)
_EVAL = re.compile(rb"(?:^|[^A-Za-z])" + EVAL_WORDS + rb"(?:[^A-Za-z]|$)", re.IGNORECASE)
_PHRASE = re.compile(rb"(?<![^,;|()\[\]{}\d:=])[^,;|()\[\]{}\d:=]*$")
_DASH = re.compile(rb"\s-+\s")
# The Trainer of Transformers reports an average of all steps at the end.
_SUMMARY = b"train_runtime"
_WORD = re.compile(rb"(?<![\w.'\-])[\d_.'\-]*([A-Za-z][\w.'\-]*)$")


def find_loss(text: bytes) -> Optional[float]:
    """Returns the first training loss in the line; None without one, or for a value that is not a number."""
    if _SUMMARY in text:
        return None
    for match in _LOSS.finditer(text):
        if _is_of_training(text[max(0, match.start() - 48) : match.start()]):
            return finite(match.group(1))
    return None


def _is_of_training(before: bytes) -> bool:
    """Checks the text before the word `loss`."""
    joined = _WORD_BEFORE.search(before).group(1)
    # `'loss'` of a dictionary.
    joined = joined.lstrip(b"'-/")
    if joined and (_EVAL.search(joined.replace(b"_", b" ")) or _SAME_LOSS.match(joined) is None):
        return False
    phrase = before[: len(before) - len(joined)]
    spoken = _DASH.split(_PHRASE.search(phrase.rstrip(b"'\"")).group(0))[-1]
    # `Test set: Average loss: 0.06`: the text before the colon counts too.
    set_before = phrase[: len(phrase) - len(spoken)].rstrip(b": ")[-16:]
    if _EVAL.search(spoken.replace(b"_", b" ")) or _EVAL.search(_after_figures(set_before)):
        return False
    word = _WORD.search(spoken.rstrip(b" -"))
    return word is None or spoken[-1:] == b"-" or _SAME_WORD.match(word.group(1)) is not None


def _after_figures(text: bytes) -> bytes:
    """Only a label may announce a validation: `Test set: `, `DEV : `; a validation figure may appear anywhere."""
    return text if re.search(rb"[\d,;|]", text) is None else b""

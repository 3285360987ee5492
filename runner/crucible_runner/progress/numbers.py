"""Regular expressions for counts and figures, shared by the formats."""

import math
import re
from typing import Optional

# `12`, `12,345`; never part of a larger figure, of a word or of a percentage (`12.5`, `12k`, `12%`).
COUNT = rb"(\d{1,3}(?:,\d{3})+|\d{1,12})(?![\w%]|[.,]\d)"
# The count inside a bar, where other characters may follow directly.
BAR_COUNT = rb"(\d{1,12})"
NUMBER = rb"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
# A count where any other character may follow; more digits are no count.
DIGITS = rb"\d{1,12}"
OF_TOTAL = COUNT + rb"(?:\s*(?:/|\bof\b|\bout of\b)\s*" + COUNT + rb")?"

# Words for passes over data other than the training data.
EVAL_WORDS = rb"(?:val|valid|validat\w*|eval\w*|test\w*|dev|sanity|predict\w*|infer\w*)"
_METRIC = rb"(?:loss|acc\w*|f1|auc|ppl|perplexity|err\w*|score|map|miou|bleu|rmse|mae|mse|r2)"
# `valid on 'valid' subset`, `[test]`, `DEV :`, but not `val loss 4.04` or `Val Acc 0.5`, which appear next to training figures.
EVAL_MARK = re.compile(
    rb"(?<![A-Za-z0-9_])" + EVAL_WORDS + rb"(?![A-Za-z0-9_])(?![\s_\-./]*" + _METRIC + rb")", re.IGNORECASE
)


def finite(text: bytes) -> Optional[float]:
    """Returns the number; None for one that is too large to be one of a training."""
    value = float(text)
    return value if math.isfinite(value) else None


def whole(text: bytes) -> int:
    return int(text.replace(b",", b""))

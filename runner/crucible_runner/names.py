"""What the names in a checkpoint directory tell. Pure."""

import re
from typing import NamedTuple, Optional, Tuple

_UNFINISHED = re.compile(r".*(\.tmp|\.part|\.partial|\.lock|~)", re.IGNORECASE)
_UNFINISHED_WORDS = {"tmp", "partial", "incomplete"}
# torch.distributed.checkpoint keeps its index in a file that begins with a dot.
_HIDDEN_BUT_NEEDED = (".metadata",)

# Records are appended to all the time and are never what a training resumes from.
_RECORD = re.compile(r".*\.(log|jsonl|csv|tsv)|events\.out\.tfevents\..*", re.IGNORECASE)

# The words that make a number the number of a step, best first.
_STEP_WORDS = (r"step", r"iter(?:ation)?", r"checkpoint|ckpt")
_EPOCH_WORDS = r"epoch"
# Longer numbers are dates.
_AFTER_WORD = r"(?:%s)s?[-_=. ]?(\d{1,12})(?!\.?\d)"
_STEP_NUMBERS = [re.compile(_AFTER_WORD % words, re.IGNORECASE) for words in _STEP_WORDS]
_EPOCH_NUMBER = re.compile(_AFTER_WORD % _EPOCH_WORDS, re.IGNORECASE)

# Numbers that tell the pieces of one checkpoint apart: `model-00001-of-00003`, `rank_0`, `__1_0.distcp`.
_PIECE = re.compile(
    r"\d+[-_]?of[-_]?\d+|(?:rank|shard|part|worker|gpu|device|node|rng[-_]state)s?[-_=. ]?\d+|__\d+_\d+",
    re.IGNORECASE,
)
# A number with a point in it is a figure such as a loss.
_NUMBER = re.compile(r"(?<!\d)(?<!\d\.)\d+(?!\.?\d)")


class Name(NamedTuple):
    """What a name says of an entry's age. Entries of one `family` are generations of one thing, the one with the highest
    `numbers` being the newest; an entry without numbers is a thing of its own."""

    rank: int
    """How well the number is known to be a step: 2 a step's, 1 an epoch's, 0 any number, -1 none."""
    family: str
    numbers: Tuple[int, ...]

    @property
    def step(self) -> Optional[int]:
        return self.numbers[0] if self.rank == 2 else None

    @property
    def epoch(self) -> Optional[int]:
        return self.numbers[0] if self.rank == 1 else None


def is_ignored(name: str) -> bool:
    """Whether an entry directly in the checkpoint directory is no part of a checkpoint."""
    if name.startswith("."):
        return name not in _HIDDEN_BUT_NEEDED
    words = re.split(r"[^a-z0-9]+", name.lower())
    return _UNFINISHED.fullmatch(name) is not None or not _UNFINISHED_WORDS.isdisjoint(words)


def is_record(path: str) -> bool:
    return _RECORD.fullmatch(path.rpartition("/")[2]) is not None


def read_name(name: str) -> Name:
    """What an entry's name says of its age."""
    for expression in _STEP_NUMBERS:
        found = expression.findall(name)
        if found:
            return Name(2, "step", (int(found[-1]),))
    found = _EPOCH_NUMBER.findall(name)
    if found:
        return Name(1, "epoch", (int(found[-1]),))
    rest = _PIECE.sub(" ", name)
    numbers = tuple(int(number) for number in _NUMBER.findall(rest))
    return Name(0, "number:" + _NUMBER.sub("#", rest), numbers) if numbers else Name(-1, "name:" + name, ())

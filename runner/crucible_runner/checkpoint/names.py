"""Reads the names in a checkpoint directory. Pure."""

import re
from functools import lru_cache
from typing import NamedTuple, Optional

_UNFINISHED = re.compile(r".*(\.tmp|\.part|\.partial|\.lock|~)", re.IGNORECASE)
_UNFINISHED_WORDS = {"tmp", "partial", "incomplete"}
# torch.distributed.checkpoint keeps its index in a file that begins with a dot.
_HIDDEN_BUT_NEEDED = (".metadata",)

# Logs, metrics, event files, the run file of wandb, and the files that SQLite keeps next to a database.
_RECORD = re.compile(
    r".*\.(?:log|jsonl|ndjson|csv|tsv|wandb)|events\.out\.tfevents\..*|.*\.(?:db|sqlite3?)-(?:journal|wal|shm)",
    re.IGNORECASE,
)
# A program may read these records to resume; it never resumes from other records.
_STATE = re.compile(r".*\.(?:db|sqlite3?|jsonl|ndjson|csv|tsv)", re.IGNORECASE)
_DATABASE = re.compile(r".*\.(?:db|sqlite3?)", re.IGNORECASE)
# Folders in which experiment trackers keep their records.
_RECORD_FOLDER = re.compile(r"wandb|mlruns|offline-run-.*|tb_logs|tensorboard", re.IGNORECASE)

# Words that mark a number as a step, most reliable first.
_STEP_WORDS = (r"step", r"iter(?:ation)?", r"checkpoint|ckpt")
_EPOCH_WORDS = r"epoch"
# Longer numbers are dates.
_AFTER_WORD = r"(?:%s)s?[-_=. ]?(\d{1,12})(?!\.?\d)"
_STEP_NUMBERS = [re.compile(_AFTER_WORD % words, re.IGNORECASE) for words in _STEP_WORDS]
_EPOCH_NUMBER = re.compile(_AFTER_WORD % _EPOCH_WORDS, re.IGNORECASE)

# Numbers that distinguish the pieces of one checkpoint: `model-00001-of-00003`, `rank_0`, `random_states_1.pkl`, `__1_0.distcp`.
PIECE = re.compile(
    r"(?<!\d)\d+[-_]?of[-_]?\d+|(?:rank|shard|part|worker|gpu|device|node|rng[-_]state|random[-_]state)s?[-_=. ]?\d+|__\d+_\d+",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d+(?:\.\d+)*")
# Hashes and UUIDs: `f8562d7c3e.ckpt`. A word of letters alone is a name.
_HASH = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]{0,64}[0-9])[0-9a-f]{8,64})(?![0-9A-Za-z])"
)
# Two files that alternate: `model_a.pt` and `model_b.pt`.
_TURN = re.compile(r"(?<![A-Za-z])[ab](?![A-Za-z])", re.IGNORECASE)


class Name(NamedTuple):
    """The age that the name of a file or folder shows."""

    rank: int
    """How certainly the number is a step: 2 for a step, 1 for an epoch, 0 for neither."""
    number: int = -1

    @property
    def step(self) -> Optional[int]:
        return self.number if self.rank == 2 else None

    @property
    def epoch(self) -> Optional[int]:
        return self.number if self.rank == 1 else None


class Unit(NamedTuple):
    """The numbered file or folder that a path belongs to, such as `checkpoint-500` of `checkpoint-500/model.pt`."""

    path: str
    kind: str
    """Units of one kind are generations of the same data: their paths differ only in their numbers."""
    name: Name


def is_ignored(name: str) -> bool:
    """Whether an entry directly in the checkpoint directory cannot be part of a checkpoint."""
    if name.startswith("."):
        return name not in _HIDDEN_BUT_NEEDED
    return is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Whether the name of a file or folder shows that it is still being written."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return _UNFINISHED.fullmatch(name) is not None or not _UNFINISHED_WORDS.isdisjoint(words)


def is_record(path: str) -> bool:
    """Whether a path names a file that only grows. SQLite databases count as such."""
    *folders, name = path.split("/")
    if _RECORD.fullmatch(name) is not None or is_database(path):
        return True
    return any(_RECORD_FOLDER.fullmatch(folder) for folder in folders)


def is_possible_state(path: str) -> bool:
    """Whether a program may resume from a record alone."""
    return _STATE.fullmatch(path.rpartition("/")[2]) is not None


def is_database(path: str) -> bool:
    return _DATABASE.fullmatch(path.rpartition("/")[2]) is not None


def read_name(name: str) -> Name:
    for expression in _STEP_NUMBERS:
        found = expression.findall(name)
        if found:
            return Name(2, int(found[-1]))
    found = _EPOCH_NUMBER.findall(name)
    if found:
        return Name(1, int(found[-1]))
    return Name(0)


@lru_cache(maxsize=65536)
def unit_of(path: str) -> Optional[Unit]:
    """Returns the outermost part of a path whose name contains a step or an epoch; None without one."""
    parts = path.split("/")
    for index, part in enumerate(parts):
        name = read_name(part)
        if name.rank > 0:
            kind = "/".join(parts[:index] + [_without_figures(part)])
            return Unit("/".join(parts[: index + 1]), kind, name)
    return None


@lru_cache(maxsize=65536)
def template(path: str) -> str:
    """Returns a path without its numbers and hashes: the same template in the next save means the same file."""
    return _without_figures(path)


class Member(NamedTuple):
    """One of several numbered entries without a word, such as `50/`, or `model_50.pt` next to `optimizer_50.pt`."""

    folder: str
    number: str
    part: str
    """The part of the member that a path is: its template."""


@lru_cache(maxsize=65536)
def member_of(path: str) -> Optional[Member]:
    """Returns the member that a path belongs to, by the first number in it; None without a number, or for the number of a step or a piece."""
    if unit_of(path) is not None:
        return None
    parts = path.split("/")
    for index, part in enumerate(parts):
        figure = _FIGURE.search(PIECE.sub("?", part))
        if figure is not None:
            return Member("/".join(parts[:index]), figure.group(), template("/".join(parts[index:])))
    return None


def _without_figures(name: str) -> str:
    # Pieces stay separate: a save that lacks one of its shards is not whole.
    pieces = PIECE.findall(name)
    rest = _TURN.sub("@", _FIGURE.sub("#", _HASH.sub("#", PIECE.sub("?", name))))
    return rest + "".join("|" + piece for piece in pieces)

"""Finds pieces of a checkpoint that are not written yet, above all those of the ranks of a program. Pure."""

import re
from typing import Dict, Iterable, List, Optional, Set, Tuple

from .names import PIECE, template

# Words before a number that counts the processes of a program.
_RANK = re.compile(r"(?<![a-z])(rank|rng[-_]state|random[-_]state|proc(?:ess)?)(s?[-_=. ]?)(\d+)", re.IGNORECASE)
# Ranks of model, pipeline and other parallelism: their number is not that of the processes.
_PART_OF_WORLD = re.compile(r".*(?:[mptdecs]p|local|node)[-_]$", re.IGNORECASE)
# A piece whose name also has the number of all pieces. A checkpoint has far fewer.
_OF_ALL = re.compile(r"(?<!\d)(\d{1,9})[-_.]?of[-_.]?(\d{1,9})(?!\d)", re.IGNORECASE)
_PIECES_MAX = 4096
# Trainer numbers the random state only when there are several processes (`_save_rng_state` of transformers/trainer.py).
_OF_SEVERAL = re.compile(r"(?:.*/)?rng_state_0\.pth")


def missing_rank(paths: Iterable[str], before: Iterable[str], world_size: Optional[int]) -> Optional[str]:
    """Returns a file that another process still has to write; None when no name, or no rule, says so.

    `before` has the templates of the last complete save of the same files, `world_size` is the number of the program's processes, which
    counts more. Without either, the format's own rule decides."""
    paths, before = sorted(paths), list(before)
    lacking_of_all = _missing_of_all(paths)
    if lacking_of_all is not None:
        return lacking_of_all
    present = {template(path): path for path in paths}
    ranks = _families(paths)
    counted = set()
    if world_size is not None:
        for shape, numbers in ranks.items():
            if len(numbers) < 2 and not _is_of_every_process(shape):
                continue
            lacking = set(range(world_size)) - numbers
            if lacking:
                return _numbered(_example(paths, shape), min(lacking))
            counted.add(shape)
    families = {_family(each) for each, path in present.items() if _shape(path) not in counted} - {None}
    known = [each for each in before if _family(each) in families and _is_within(each, world_size)]
    lacking_before = [each for each in known if each not in present]
    if lacking_before:
        pieces = iter(_pieces(lacking_before[0]))
        alike = next(path for each, path in present.items() if _family(each) == _family(lacking_before[0]))
        return PIECE.sub(lambda match: next(pieces, match.group()), alike)
    if world_size is not None:
        return None
    alone = next((path for path in paths if _OF_SEVERAL.fullmatch(path)), None)
    if alone is not None and not known and ranks.get(_shape(alone), set()) == {0}:
        return _numbered(alone, 1)
    return None


def _missing_of_all(paths: Iterable[str]) -> Optional[str]:
    """Returns a piece that is missing by the names of the others, such as `model-00002-of-00003.bin`; None without one."""
    found: Dict[Tuple[str, str, int], Set[str]] = {}
    for path in paths:
        piece = _OF_ALL.search(path)
        if piece is not None:
            key = (path[: piece.start(1)], path[piece.end(1) :], int(piece.group(2)))
            found.setdefault(key, set()).add(piece.group(1))
    for (start, rest, total), written in found.items():
        numbers = {int(number) for number in written}
        if len(numbers) < total <= _PIECES_MAX:
            first = 0 if 0 in numbers else 1
            lacking = min(set(range(first, first + total)) - numbers)
            return start + str(lacking).zfill(min(map(len, written))) + rest
    return None


def has_ranks(paths: Iterable[str]) -> bool:
    return any(_RANK.search(path) for path in paths)


def _family(templated: str) -> Optional[str]:
    """Returns the template without the numbers of its pieces; None for a file that is not a piece."""
    rest, bar, pieces = templated.partition("|")
    return rest + bar + re.sub(r"\d+", "N", pieces) if bar and not re.search(r"\d[-_]?of[-_]?\d", pieces) else None


def _is_within(templated: str, world_size: Optional[int]) -> bool:
    """Whether that many processes write this piece. The last save may be that of more of them."""
    numbers = [int(figure) for piece in _pieces(templated) for figure in re.findall(r"\d+", piece)[:1]]
    return world_size is None or all(number < world_size for number in numbers)


def _pieces(templated: str) -> List[str]:
    return templated.split("|")[1:]


def _families(paths: Iterable[str]) -> Dict[str, Set[int]]:
    """Maps a path with its rank replaced to the ranks that are there."""
    found: Dict[str, Set[int]] = {}
    for path in paths:
        rank = _rank_in(path)
        if rank is not None:
            found.setdefault(_shape(path), set()).add(int(rank.group(3)))
    return found


def _rank_in(path: str) -> Optional["re.Match[str]"]:
    counted = (match for match in _RANK.finditer(path) if _PART_OF_WORLD.match(path[: match.start()]) is None)
    return next(counted, None)


def _shape(path: str) -> str:
    return _numbered(path, None)


def _numbered(path: str, number: Optional[int]) -> str:
    rank = _rank_in(path)
    if rank is None:
        return path
    shown = "*" if number is None else str(number).zfill(len(rank.group(3)))
    return path[: rank.start(3)] + shown + path[rank.end(3) :]


def _example(paths: Iterable[str], shape: str) -> str:
    return next(path for path in paths if _rank_in(path) is not None and _shape(path) == shape)


def _is_of_every_process(shape: str) -> bool:
    return re.search(r"(?:rng|random)[-_]states?[-_=. ]?\*", shape, re.IGNORECASE) is not None

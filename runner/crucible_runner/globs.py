"""Globs of the order: which paths match, and which files of a tree. Pure, except for `search`.

`*` and `?` stand for characters of one name, `[a-z]` for one of them and `[!a-z]` or `[^a-z]` for one that is not listed. `**` as a whole
part of a path stands for any number of folders, and next to other characters for any text, `/` included. A match of a folder includes its
content. `core/glob.ts` has the same rules, and `test/runner/globs.json` the cases for both.

No step goes back: a glob is a small machine over the names of a path, and a name is compared piece by piece from the left.
"""

import os
import re
from functools import lru_cache
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

# Links can give one folder endlessly many paths. A folder is searched under its own path and at most this many others.
_ALIASES_MAX = 8

_SEVERAL_STARS = re.compile(r"\*\*+")
# Each `**` next to other characters costs a state and an edge to every later one.
_INNER_MAX = 8


class MalformedGlob(ValueError):
    """The glob has no meaning; the message completes "the pattern <glob> ..."."""


class _Piece:
    """A part of a name between two stars; every token of it is one character."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.length = len(tokens)
        self.is_fixed = all(len(token) == 1 and token != "?" for token in tokens)
        self.text = "".join(tokens)
        parts = ["." if token == "?" else token if len(token) > 1 else re.escape(token) for token in tokens]
        self._expression = re.compile("".join(parts), re.DOTALL)

    def is_at(self, name: str, at: int) -> bool:
        return name.startswith(self.text, at) if self.is_fixed else self._expression.match(name, at) is not None

    def find(self, name: str, at: int, end: int) -> int:
        """Returns where the first occurrence between `at` and `end` begins, or -1."""
        if self.is_fixed:
            return name.find(self.text, at, end)
        found = self._expression.search(name, at, end)
        return found.start() if found is not None else -1


class _Name:
    """The part of a glob for one name."""

    def __init__(self, tokens: Sequence[str], is_hidden_matched: bool) -> None:
        pieces: List[List[str]] = [[]]
        for token in tokens:
            if token == "*":
                pieces.append([])
            else:
                pieces[-1].append(token)
        self._first = _Piece(pieces[0])
        self._last = _Piece(pieces[-1]) if len(pieces) > 1 else None
        self._inner = [_Piece(piece) for piece in pieces[1:-1] if piece]
        self._is_hidden_matched = is_hidden_matched or tokens[:1] == ["."]

    @property
    def literal(self) -> Optional[str]:
        """The only name that matches; None if there are others."""
        return self._first.text if self._last is None and self._first.is_fixed else None

    def matches(self, name: str) -> bool:
        if name[:1] == "." and not self._is_hidden_matched:
            return False
        first, last = self._first, self._last
        if last is None:
            return len(name) == first.length and first.is_at(name, 0)
        end = len(name) - last.length
        if end < first.length or not first.is_at(name, 0) or not last.is_at(name, end):
            return False
        at = first.length
        for piece in self._inner:
            # The leftmost occurrence leaves the most for the pieces that follow, so none other has to be tried.
            found = piece.find(name, at, end)
            if found < 0:
                return False
            at = found + piece.length
        return True


class _Edge(NamedTuple):
    name: Optional[_Name]
    """None for any name."""
    target: int


class Glob:
    """The states of a glob as the bits of a number: `step` leads from those before a name to those after it."""

    start = 1

    def __init__(self, glob: str, is_hidden_matched: bool = True) -> None:
        """Raises `MalformedGlob`. Without `is_hidden_matched` a name that begins with a dot needs a dot in the glob."""
        self._is_hidden_matched = is_hidden_matched
        self._edges: List[List[_Edge]] = [[]]
        at = 0
        parts = [part for part in glob.split("/") if part]
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            if _SEVERAL_STARS.fullmatch(part) is None:
                at = self._add_name(at, part)
            elif is_last:
                at = self._join(at, None, self._new())
            else:
                self._join(at, None, at)
        self.end = 1 << at if parts else 0

    def _new(self) -> int:
        self._edges.append([])
        return len(self._edges) - 1

    def _join(self, source: int, tokens: Optional[Sequence[str]], target: int) -> int:
        name = None if tokens is None else _Name(tokens, self._is_hidden_matched)
        self._edges[source].append(_Edge(name, target))
        return target

    def _add_name(self, at: int, part: str) -> int:
        """Adds a part of the glob; within `a**b` a path may have any number of `/`, so that each `**` is a state of its own."""
        pieces = [_tokens(piece) for piece in _SEVERAL_STARS.split(part)]
        if len(pieces) - 1 > _INNER_MAX:
            raise MalformedGlob("has more than %d times ** next to other characters" % _INNER_MAX)
        gaps = [self._new() for _ in pieces[1:]]
        end = self._new()
        for first in range(len(pieces)):
            source, tokens = (at, []) if first == 0 else (gaps[first - 1], ["*"])
            if first > 0:
                self._join(source, None, source)
            for last in range(first, len(pieces)):
                tokens = tokens + pieces[last]
                is_end = last == len(pieces) - 1
                self._join(source, tokens if is_end else tokens + ["*"], end if is_end else gaps[last])
                tokens = tokens + ["*"]
        return end

    def step(self, states: int, name: str) -> int:
        after = 0
        while states:
            state = states & -states
            states ^= state
            for edge in self._edges[state.bit_length() - 1]:
                bit = 1 << edge.target
                if not after & bit and self._is_match(edge, name):
                    after |= bit
        return after

    def _is_match(self, edge: _Edge, name: str) -> bool:
        if edge.name is not None:
            return edge.name.matches(name)
        return self._is_hidden_matched or name[:1] != "."

    def literals(self, states: int) -> Optional[Set[str]]:
        """Returns the only names that lead on from these states; None if there are others."""
        names = set()
        for state, edges in enumerate(self._edges):
            for edge in edges if states >> state & 1 else ():
                literal = edge.name.literal if edge.name is not None else None
                if literal is None:
                    return None
                names.add(literal)
        return names

    def matches(self, path: str) -> bool:
        states = self.start
        for name in path.split("/"):
            states = self.step(states, name)
            if states & self.end or not states:
                break
        return states & self.end != 0


def _tokens(part: str) -> List[str]:
    """Returns the tokens of a part: `*`, `?`, a class as a regular expression of several characters, or a literal character."""
    tokens = []
    at = 0
    while at < len(part):
        end = _end_of_class(part, at) if part[at] == "[" else -1
        tokens.append(_class_of(part[at + 1 : end]) if end > 0 else part[at])
        at = end + 1 if end > 0 else at + 1
    return tokens


def _end_of_class(part: str, at: int) -> int:
    """Returns where the class that begins at `at` ends, or -1: then its bracket is a literal character. A `]` in front is a member."""
    members = at + 2 if part[at + 1 : at + 2] in ("!", "^") else at + 1
    return part.find("]", members + 1)


def _class_of(text: str) -> str:
    is_negated = text[0] in "!^"
    members, at, ranges = text[1:] if is_negated else text, 0, []
    while at < len(members):
        first = last = members[at]
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            last = members[at + 2]
            at += 2
        if first > last:
            raise MalformedGlob("has the range %s-%s, which is in reverse order" % (first, last))
        ranges.append("%s-%s" % (re.escape(first), re.escape(last)))
        at += 1
    return "[%s%s]" % ("^" if is_negated else "", "".join(ranges))


@lru_cache(maxsize=1024)
def _glob(glob: str, is_hidden_matched: bool) -> Optional[Glob]:
    try:
        return Glob(glob, is_hidden_matched)
    except MalformedGlob:
        return None


def remarks_about(globs: Iterable[str]) -> List[str]:
    """Returns a sentence about each glob that is malformed, and so matches nothing."""
    remarks = []
    for glob in globs:
        try:
            Glob(glob)
        except MalformedGlob as problem:
            remarks.append("the pattern %s matches nothing: it %s" % (glob, problem))
    return remarks


def matches_any(path: str, globs: Iterable[str]) -> bool:
    """Whether a path below the checkpoint directory matches; names that begin with a dot count too."""
    compiled = (_glob(glob, True) for glob in globs)
    return any(glob is not None and glob.matches(path) for glob in compiled)


def search(root: str, globs: Iterable[str]) -> Dict[str, List[str]]:
    """Returns the paths below a folder that match each glob, sorted; of a matching folder only its own path.

    Each folder is read once for all globs, and again only under other paths that links give it. Names that begin with a dot match only a
    glob with that dot. Folders that cannot be read have no content.
    """
    found: Dict[str, List[str]] = {glob: [] for glob in globs}
    compiled = {glob: one for glob, one in ((glob, _glob(glob, False)) for glob in found) if one is not None}
    walk = _Walk()
    waiting = [(root, False, {glob: one.start for glob, one in compiled.items()})]
    while waiting:
        folder, is_alias, states = waiting.pop()
        onward: Dict[str, Dict[str, int]] = {}
        for glob, name in _candidates(folder, states, compiled):
            after = compiled[glob].step(states[glob], name)
            if after & compiled[glob].end:
                found[glob].append(os.path.join(folder, name))
            elif after:
                onward.setdefault(name, {})[glob] = after
        for name, inner in onward.items():
            path = os.path.join(folder, name)
            is_other = is_alias or os.path.islink(path)
            if os.path.isdir(path) and (not is_other or walk.may_enter(folder, path)):
                waiting.append((path, is_other, inner))
    return {glob: sorted(paths) for glob, paths in found.items()}


def _candidates(folder: str, states: Dict[str, int], compiled: Dict[str, Glob]) -> Iterator[Tuple[str, str]]:
    """Yields each glob with the names in a folder that it may match. A folder is read only for a glob that does not name its next file."""
    open_globs = []
    for glob, before in states.items():
        names = compiled[glob].literals(before)
        if names is None:
            open_globs.append(glob)
        else:
            for name in sorted(names):
                if os.path.lexists(os.path.join(folder, name)):
                    yield glob, name
    if open_globs:
        try:
            listed = os.listdir(folder)
        except OSError:
            return
        for name in listed:
            for glob in open_globs:
                yield glob, name


class _Walk:
    """Bounds a search that follows links: none leads to a folder above it, and a folder has only a few other paths."""

    def __init__(self) -> None:
        self._aliases: Dict[Tuple[int, int], int] = {}

    def may_enter(self, folder: str, path: str) -> bool:
        above, real = os.path.realpath(folder), os.path.realpath(path)
        if os.path.join(above, "").startswith(os.path.join(real, "")):
            return False
        try:
            status = os.stat(path)
        except OSError:
            return False
        key = (status.st_dev, status.st_ino)
        self._aliases[key] = self._aliases.get(key, 0) + 1
        return self._aliases[key] <= _ALIASES_MAX

"""Errors about a folder that was made to be sent, with the user's own paths: the folder no longer exists when they are read."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Mapping, NamedTuple, Optional, Sequence, Union

from truffle.errors import UsageError

IGNORE = ".crucibleignore"


class Origin(NamedTuple):
    """Where a file of the folder comes from: the file or folder that was copied, and the path in it."""

    root: Path
    inside: str

    @property
    def path(self) -> Path:
        return self.root / self.inside if self.inside else self.root


def in_own_paths(error: UsageError, folder: Path, files: Union[Mapping[str, object], Sequence[object]]) -> UsageError:
    """The error with each path of the folder replaced by the path of the original: from `files`, or as a module."""
    text = error.message if error.hint is None else "%s\n%s" % (error.message, error.hint)
    named = {one: origin for line in text.split("\n") for one in [_file(line, folder)] if one for origin in [_origin(one, files)] if origin}
    if not named:
        return error

    def own(part: str) -> str:
        part = part.replace(str(folder), "that is sent")
        for one, origin in named.items():
            part = re.sub(r"(?m)^  %s(?= )" % re.escape(one), lambda _: "  %s" % origin.path, part)
        sent, first = next(iter(named.items()))
        ignored = str(first.root / IGNORE) if first.inside else "the %s of a folder" % IGNORE
        return re.sub(r"(?<![\w/])%s" % re.escape(IGNORE), lambda _: ignored, part.replace("!" + sent, "!" + (first.inside or first.root.name)))

    return UsageError(own(error.message), hint=None if error.hint is None else own(error.hint), details=error.details)


def _file(line: str, folder: Path) -> Optional[str]:
    """The file that a line of a list begins with. Its name may have spaces."""
    if not line.startswith("  "):
        return None
    words = line.strip().split(" ")
    texts = (" ".join(words[:count]) for count in range(len(words), 0, -1))
    return next((one for one in texts if one and (folder / one).is_file()), None)


def _origin(sent: str, files: Union[Mapping[str, object], Sequence[object]]) -> Optional[Origin]:
    pairs = files.items() if isinstance(files, Mapping) else [(Path(str(one)).name, one) for one in files]
    for name, path in pairs:
        if sent == name or sent.startswith("%s/" % name):
            return Origin(Path(str(path)).absolute(), sent[len(name) + 1 :])
    top, _, inside = sent.partition("/")
    try:
        spec = importlib.util.find_spec(top[:-3] if top.endswith(".py") else top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Origin(Path(next(iter(spec.submodule_search_locations))), inside)
    return None if spec.origin is None else Origin(Path(spec.origin), "")

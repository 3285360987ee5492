"""Modules of the user's project: they are sent with a function, unlike installed ones."""

from __future__ import annotations

import ast
import importlib.util
import os
import site
import sys
import sysconfig
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Set

from ..errors import PackingError
from .crucible_values import CARRIED

#: Size limit of all files that are sent with a function.
BYTES_MAX = 64 * 1024 * 1024


def own_modules(names: Iterable[str]) -> Dict[str, Path]:
    """The files of the modules with these top-level names, and of those that they import, by the path where they are sent.

    Raises `PackingError` if they are too large.
    """
    files: Dict[str, Path] = {}
    seen: Set[str] = set()
    waiting = [name.split(".")[0] for name in names]
    size = 0
    while waiting:
        name = waiting.pop()
        if name in seen or name == "__main__":
            continue
        seen.add(name)
        place = own_place(name)
        if place is None:
            continue
        for path in _files(place):
            target = path.relative_to(place.parent).as_posix()
            files[target] = path
            size += path.stat().st_size
            if size > BYTES_MAX:
                raise PackingError(
                    "The modules of the function are larger than %d MiB: %s." % (BYTES_MAX >> 20, place),
                    hint="Keep data out of the folder of the module, and send it with inputs= or files=.",
                )
            if path.suffix == ".py":
                waiting += imported(path.read_text(encoding="utf-8", errors="replace"))
    return files


def imported(source: str) -> List[str]:
    """Top-level names of the modules that a source imports anywhere. A source that is not Python imports nothing."""
    names = []
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [one.name.split(".")[0] for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.append(node.module.split(".")[0])
    return names


def own_place(name: str) -> Optional[Path]:
    """The file or folder of an own module; None for one that is installed, part of Python, or not there."""
    try:
        module = sys.modules.get(name)
        spec = module.__spec__ if module is not None and module.__spec__ is not None else importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        place = Path(next(iter(spec.submodule_search_locations)))
    elif spec.origin is None or not os.path.isfile(spec.origin):
        return None
    else:
        place = Path(spec.origin)
    return place if name in CARRIED or not _is_installed(place) else None


def _is_installed(place: Path) -> bool:
    parts = set(place.parts)
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    folders = [sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(one).resolve() in place.resolve().parents for one in [*folders, site.getusersitepackages()])


def _files(place: Path) -> List[Path]:
    if place.is_file():
        return [place]
    return [path for path in sorted(place.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]

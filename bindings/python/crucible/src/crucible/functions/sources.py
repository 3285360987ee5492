"""The source of functions and classes, also of those in notebook cells, and the names that it uses."""

from __future__ import annotations

import ast
import symtable
import sys
from types import FunctionType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Set, Union

from ..errors import PackingError
from .loaded import Definition, decorators_of, loaded, name_of, text_of


def source_of(what: Union[FunctionType, type], name: str) -> str:
    """The text that defines a function or a class, from the beginning of its lines. Raises `PackingError` if it has no source."""
    if what.__name__.endswith("<lambda>"):
        raise PackingError("A lambda cannot be sent.", hint="Write it as a function with `def`.")
    text = text_of(what, name)
    if text is not None:
        return text
    raise PackingError(
        "The source of %s cannot be found." % what.__name__,
        hint="Define it in a file or a notebook cell; the prompt of Python keeps no source.",
    )


def without_decorators(source: str, is_ours: Callable[[ast.expr], bool]) -> str:
    """The source without the decorator that makes the function a job, and those above it, which decorate the job."""
    node = _parsed(source)
    decorators = decorators_of(node)
    ours = [at for at, one in enumerate(decorators) if is_ours(one)]
    if not ours:
        return source
    kept = decorators[ours[-1] + 1 :]
    # In Python 3.8 and newer, the line of a definition is that of `def`.
    first = kept[0].lineno if kept else node.lineno
    return "".join(source.splitlines(keepends=True)[first - 1 :])


def global_names(source: str) -> Set[str]:
    """Names that the source uses and does not define: of its body, decorators, defaults, annotations and bases."""
    names: Set[str] = set()
    waiting = [symtable.symtable(source, "<source>", "exec")]
    top = waiting[0]
    while waiting:
        scope = waiting.pop()
        for symbol in scope.get_symbols():
            if scope is top:
                if symbol.is_referenced() and not symbol.is_assigned():
                    names.add(symbol.get_name())
            elif symbol.is_global() and (symbol.is_referenced() or symbol.is_declared_global()):
                names.add(symbol.get_name())
        waiting += scope.get_children()
    return names - {defined_name(source)}


def namespace_of(what: Union[FunctionType, type]) -> Mapping[str, Any]:
    """Resolves names in a function or class: the variables around it, then those of its module."""
    if not isinstance(what, FunctionType):
        found: Dict[str, Any] = {}
        for one in getattr(what, "__dict__", {}).values():
            one = getattr(one, "__func__", one)
            if isinstance(one, FunctionType):
                found.update(_around(one))
        return {**vars(sys.modules[what.__module__]), **found}
    inner = loaded(what)
    return {**inner.__globals__, **_around(inner)}


def submodules(source: str, name: str, module: str) -> Iterator[str]:
    """Modules below a module that the source names by their path, such as ``concurrent.futures``."""
    for node in ast.walk(ast.parse(source)):
        path: List[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id == name:
            for length in range(1, len(path) + 1):
                full = ".".join([module, *path[:length]])
                if full in sys.modules:
                    yield full


def _around(function: FunctionType) -> Dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    found.pop("__class__", None)
    return found


def defined_name(source: str) -> str:
    """The name of the defined function, class or variable."""
    return name_of(_parsed(source)) or ""


def _parsed(source: str) -> Definition:
    node: Any = ast.parse(source).body[0]
    found: Definition = node
    return found

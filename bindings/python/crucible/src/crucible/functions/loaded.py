"""The text of what runs in this process: files change while the program that was loaded from them runs."""

from __future__ import annotations

import __future__
import ast
import functools
import inspect
import linecache
import sys
from types import CodeType, FunctionType
from typing import Dict, Iterator, List, Optional, Set, Tuple, Union

from ..errors import PackingError

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign]

_FUTURES = functools.reduce(lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0)

#: Files of the functions that are jobs, as they were when the functions were defined.
_kept: Dict[str, str] = {}


def keep_text(function: FunctionType) -> None:
    """Keeps the text of the function's file, for everything that it defines."""
    code = loaded(function).__code__
    _kept[code.co_filename] = _text_now(code.co_filename, function)


def refuse_if_changed(function: FunctionType) -> None:
    """For a function whose file is sent as it is: raises `PackingError` if the file has changed since it was loaded."""
    code = loaded(function).__code__
    now = _text_now(code.co_filename, function)
    before = _kept.get(code.co_filename, now)
    try:
        is_same = _is_same(_compiled(before, 0)[1], _compiled(now, 0)[1])
    except (SyntaxError, ValueError):
        is_same = before == now
    if not is_same:
        raise _changed(function.__qualname__, code.co_filename)


def text_of(what: Union[FunctionType, type], name: str) -> Optional[str]:
    """The lines that define a function or a class, without the indent that they have in common. None if it has none.

    A class may be the value of a call, as ``Point = namedtuple("Point", "x y")``, with the name that is given here.

    Raises `PackingError` if its file has changed since it was loaded.
    """
    if not isinstance(what, FunctionType):
        return _text_of_class(what, name)
    code = loaded(what).__code__
    texts = [text for text in (_kept.get(code.co_filename), _text_now(code.co_filename, what)) if text]
    # Test runners and others change the code of modules while they import them, but never that of the program itself.
    is_sure = what.__module__ != "__main__" and len(texts) == 2 and texts[0] == texts[1]
    for text in texts:
        found = _function_in(text, code, is_sure=is_sure)
        if found is not None:
            return _cut(text, found)
    # Sources without a file, such as that of `python -c`, share a name.
    if texts and not code.co_filename.startswith("<"):
        raise _changed(what.__qualname__, code.co_filename)
    return None


def _text_of_class(what: type, name: str) -> Optional[str]:
    path = getattr(sys.modules.get(what.__module__), "__file__", None)
    files = {code.co_filename: None for code in _methods(what)}
    if path is not None:
        files[path] = None
    is_named = False
    for text in [*(_kept.get(one) or "".join(linecache.getlines(one)) for one in _fresh(files)), *_cells()]:
        found, is_there = _class_in(text, what, name)
        if found is not None:
            return _cut(text, found)
        is_named = is_named or is_there
    if is_named:
        raise _changed(what.__name__, path or "cell")
    return None


def _changed(name: str, path: str) -> PackingError:
    return PackingError(
        "%s, which the function uses, differs from its file: %s has changed since it was loaded." % (name, path),
        hint="Start the program again.",
    )


def loaded(function: FunctionType) -> FunctionType:
    """The function or class of a definition, without its decorators."""
    inner = inspect.unwrap(function)
    return inner if isinstance(inner, FunctionType) else function


def _text_now(path: str, function: FunctionType) -> str:
    linecache.checkcache(path)
    return "".join(linecache.getlines(path, function.__globals__))


def _fresh(paths: Dict[str, None]) -> Iterator[str]:
    for path in paths:
        linecache.checkcache(path)
        yield path


def _cells() -> Iterator[str]:
    """The cells of this notebook, the newest first, with lines that are not Python replaced."""
    for name, entry in reversed(list(linecache.cache.items())):
        if ("ipykernel" in name or "ipython-input" in name) and len(entry) == 4:
            yield "".join(entry[2])


@functools.lru_cache(maxsize=16)
def _compiled(text: str, futures: int) -> Tuple[ast.Module, CodeType]:
    tree = ast.parse(text)
    # Cells of notebooks may await outside functions.
    code = compile(text, "<text>", "exec", flags=futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return tree, code


def _function_in(text: str, code: CodeType, *, is_sure: bool = False) -> Optional[Definition]:
    try:
        tree, module = _compiled(text, code.co_flags & _FUTURES)
    except (SyntaxError, ValueError):
        return None
    named = [one for one in _codes(module) if one.co_name == code.co_name]
    lines = [one.co_firstlineno for one in named if _is_same(one, code) or (is_sure and one.co_firstlineno == code.co_firstlineno)]
    if not lines:
        return None
    line = min(lines, key=lambda one: abs(one - code.co_firstlineno))
    return next((node for node in _definitions(tree) if name_of(node) == code.co_name and _first_line(node) == line), None)


def _class_in(text: str, what: type, name: str) -> Tuple[Optional[Definition], bool]:
    """The newest definition of a class with its methods, and whether there is any of its name."""
    methods = _methods(what)
    flags = methods[0].co_flags & _FUTURES if methods else 0
    try:
        tree, module = _compiled(text, flags)
    except (SyntaxError, ValueError):
        return None, False
    nodes: List[Definition] = [one for one in _definitions(tree) if isinstance(one, ast.ClassDef) and one.name == what.__name__]
    nodes = nodes or [one for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and name_of(one) == name]
    for node in reversed(nodes):
        body = [one for one in _codes(module) if node.lineno <= one.co_firstlineno <= (node.end_lineno or node.lineno)]
        if all(any(_is_same(one, method) for one in body) for method in methods):
            return node, True
    return None, bool(nodes)


def _methods(what: type) -> List[CodeType]:
    """The code of the methods that the class body defines; others make some, which have no source."""
    found = []
    for name, one in getattr(what, "__dict__", {}).items():
        one = getattr(one, "__func__", one)
        if isinstance(one, FunctionType):
            inner = loaded(one)
            is_own = inner.__qualname__ == "%s.%s" % (what.__qualname__, name) and inner.__code__.co_name == name
            is_own = is_own and inner.__globals__ is vars(sys.modules[what.__module__])
            if is_own and (linecache.getlines(inner.__code__.co_filename) or inner.__code__.co_filename in _kept):
                found.append(inner.__code__)
    return found


def _definitions(tree: ast.Module) -> List[Definition]:
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return sorted(found, key=lambda node: node.lineno)


def name_of(node: Definition) -> Optional[str]:
    """The name of the defined function, class or variable."""
    if not isinstance(node, ast.Assign):
        return node.name
    target = node.targets[-1]
    return target.id if isinstance(target, ast.Name) else None


def decorators_of(node: Definition) -> List[ast.expr]:
    return [] if isinstance(node, ast.Assign) else node.decorator_list


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(one.lineno for one in decorators_of(node))])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same, wherever they stand."""
    if len(one.co_consts) != len(other.co_consts):
        return False
    for name in ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount", "co_flags"):
        if getattr(one, name) != getattr(other, name):
            return False
    return all(_is_same_constant(*pair) for pair in zip(one.co_consts, other.co_consts))


def _is_same_constant(one: object, other: object) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _is_same(one, other)
    # 1, 1.0 and True are equal; so are 0.0 and -0.0. Sets have no order.
    return one == other and type(one) is type(other) and (isinstance(one, frozenset) or repr(one) == repr(other))


def _cut(text: str, node: Definition) -> str:
    """The lines of a definition, without its indent. The lines of strings keep theirs."""
    inside: Set[int] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, (str, bytes))):
            inside.update(range(one.lineno + 1, (one.end_lineno or one.lineno) + 1))
    first = _first_line(node)
    # Only Python's line ends count, not others such as form feeds.
    lines = text.split("\n")[first - 1 : node.end_lineno]
    return "".join(
        (line if number in inside else _without_indent(line, node.col_offset)) + "\n" for number, line in enumerate(lines, first)
    )


def _without_indent(line: str, width: int) -> str:
    indent = len(line) - len(line.lstrip(" \t\f"))
    return line[min(indent, width) :]

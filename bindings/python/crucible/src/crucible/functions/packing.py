"""Packs a function and its dependencies into a folder: a program of its source, its values, and own modules."""

from __future__ import annotations

import __future__
import ast
import builtins
import importlib
import inspect
import io
import pickle
import shutil
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, List, Mapping, Set, Tuple, Union

from truffle.cli import Program

from ..calls import HasProgram
from ..errors import PackingError
from .loaded import loaded, refuse_if_changed
from .modules import BYTES_MAX, imported, own_modules
from .sources import defined_name, global_names, namespace_of, source_of, submodules, without_decorators

HERE = Path(__file__).parent
RUNNER = "crucible_function"
#: The modules with which a function runs there.
OWN_MODULES = (RUNNER, "crucible_values")
MAIN = "function_main.py"
VALUES = "function_values"

#: The command of a packed function.
COMMAND = "python3 %s.py && exec python3 %s" % (RUNNER, MAIN)

#: Python 3.8 and newer read it.
PROTOCOL = 4

_GIVE = "Pass the needed part of it to the function as an argument."

#: Objects of `typing` to which a pickle refers by name, as to a class.
_PICKLED_BY_NAME = ("NewType", "ParamSpec", "TypeVar", "TypeVarTuple")

IsOurs = Callable[[ast.expr, Mapping[str, Any]], bool]


def pack(function: FunctionType, arguments: Tuple[Tuple[Any, ...], Dict[str, Any]], folder: Path, is_ours: IsOurs) -> None:
    """Writes the program of a function and its arguments into a folder.

    Raises `PackingError` for what cannot be sent, with its name and the reason.

    Args:
        is_ours: Whether an expression, with what its names mean, is the decorator that makes a function a job.
    """
    program = _Program(is_ours)
    name = program.add_function(function)
    program.add_value("arguments", arguments, "The arguments of %s" % function.__name__)
    text = program.text(name)
    (folder / VALUES).mkdir()
    for one, data in program.values.items():
        (folder / VALUES / ("%s.pkl" % one)).write_bytes(data)
    for target, path in own_modules([*program.modules, *imported(text)]).items():
        copy = folder / target
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(path), str(copy))
    (folder / MAIN).write_text(text, encoding="utf-8")
    for one in OWN_MODULES:
        shutil.copyfile(str(HERE / ("%s.py" % one)), str(folder / ("%s.py" % one)))


def refuse_method(function: FunctionType) -> None:
    """Raises `PackingError` for a method that is not static: it would need its object."""
    *path, name = function.__qualname__.split(".")
    if not path or path[-1] == "<locals>":
        return
    owner = function.__globals__.get(path[0])
    for one in path[1:]:
        owner = getattr(owner, one, None)
    if not isinstance(getattr(owner, "__dict__", {}).get(name), staticmethod):
        raise PackingError(
            "%s is a method, which cannot be sent without its object." % function.__qualname__,
            hint="Write it as a function outside the class, and pass its data as arguments; or put @staticmethod above @platform.job.",
        )


class _Pickler(pickle.Pickler):
    """Finds the functions and classes that a pickle names. Raises `PackingError` for objects that exist only here, at any depth."""

    def __init__(self, file: Any, what: str, on_reference: Callable[[Union[type, FunctionType]], None]) -> None:
        super().__init__(file, PROTOCOL)
        self._what = what
        self._on_reference = on_reference

    def reducer_override(self, what: Any) -> Any:
        if _is_here_only(what):
            kind = type(what).__name__
            raise PackingError("%s cannot be sent: it contains a %s, which exists only here." % (self._what, kind), hint=_GIVE)
        if _definition(what) is not None:
            self._on_reference(what)
        return NotImplemented


class _Program:
    """The source of a program, built from everything that a function uses, dependencies first."""

    def __init__(self, is_ours: IsOurs) -> None:
        self._is_ours = is_ours
        self._future = False
        self._statements: List[str] = []
        self._named: Dict[str, Any] = {}
        self._bytes = 0
        self.values: Dict[str, bytes] = {}
        self.modules: Set[str] = set()

    def text(self, name: str) -> str:
        """The program, which calls the function of this name."""
        head = ["from __future__ import annotations"] if self._future else []
        call = "if __name__ == '__main__':\n    %s.run(%s)" % (RUNNER, name)
        return "\n\n".join([*head, "import %s" % RUNNER, *self._statements, call]) + "\n"

    def add_function(self, function: FunctionType) -> str:
        """Adds the function to call, and returns its name in the program."""
        if _is_packed(function):
            self._named[function.__name__] = function
            self._define(function.__name__, function)
            self._statements.append("{0}.local = {0}".format(function.__name__))
            return function.__name__
        refuse_if_changed(function)
        self.modules.add(function.__module__)
        self._statements.append("from %s import %s" % (function.__module__, function.__qualname__.split(".")[0]))
        return function.__qualname__

    def add_value(self, name: str, value: Any, what: str) -> None:
        """Adds a value as a pickle, and the classes and functions of this program that it refers to."""
        references: List[Union[type, FunctionType]] = []
        file = io.BytesIO()
        try:
            _Pickler(file, what, references.append).dump(value)
        except PackingError:
            raise
        except Exception as error:
            raise PackingError(
                "%s cannot be sent: %s: %s." % (what, type(error).__name__, str(error).rstrip(".")),
                hint="Create it in the function instead.",
            ) from error
        for one in references:
            outer = _path_of(one).split(".")[0]
            if one.__module__ == "__main__":
                self._need(outer, vars(sys.modules["__main__"]).get(outer, one))
            else:
                self.modules.add(one.__module__)
        self._bytes += len(file.getbuffer())
        if self._bytes > BYTES_MAX:
            raise PackingError(
                "%s and the other values of the function are larger than %d MiB." % (what, BYTES_MAX >> 20),
                hint="Load large data in the function: from inputs=, files= or a bucket.",
            )
        self.values[name] = file.getvalue()

    def _need(self, name: str, value: Any) -> None:
        """Adds the object of a name."""
        inner = _raw(value)
        if name in self._named:
            if self._named[name] is not inner:
                raise PackingError("Two different things that the function uses are called %s." % name, hint="Rename one.")
            return
        self._named[name] = inner
        definition = _definition(value)
        if inner is not value:
            if _is_packed(inner):
                self._define(name, inner)
                self._statements.append("{0}.local = {0}".format(name))
            else:
                self._import(name, inner)
        elif isinstance(value, ModuleType):
            self.modules.add(value.__name__)
            self._statements.append("import %s%s" % (value.__name__, "" if value.__name__ == name else " as %s" % name))
        elif definition is not None and _is_packed(definition):
            self._define(name, definition)
        elif _is_importable(value):
            self._import(name, value)
        elif _is_here_only(value):
            raise PackingError(
                "%s, which the function uses, is a %s and exists only here." % (name, type(value).__name__), hint=_GIVE
            )
        else:
            key = "global-%s" % name
            self.add_value(key, value, "%s, which the function uses," % name)
            self._statements.append("%s = %s.value(%r)" % (name, RUNNER, key))

    def _import(self, name: str, value: Any) -> None:
        self.modules.add(value.__module__)
        if "." in value.__qualname__:
            place = "__import__('importlib').import_module(%r).%s" % (value.__module__, value.__qualname__)
            self._statements.append("%s = %s" % (name, place))
            return
        alias = "" if value.__qualname__ == name else " as %s" % name
        self._statements.append("from %s import %s%s" % (value.__module__, value.__qualname__, alias))

    def _define(self, name: str, what: Union[FunctionType, type]) -> None:
        namespace = namespace_of(what)
        is_bare = _is_below_decorators(what)
        source = without_decorators(source_of(what, name), lambda one: is_bare or self._is_ours(one, namespace))
        if isinstance(what, FunctionType):
            self._future = self._future or bool(what.__code__.co_flags & __future__.annotations.compiler_flag)
        for used in sorted(global_names(source)):
            if used in namespace and inspect.unwrap(namespace[used]) is getattr(builtins, used, None):
                continue  # Notebooks replace some: their `open` says that it is not for files of the notebook itself.
            if used in namespace and namespace[used] is not what:
                value = namespace[used]
                self._need(used, value)
                if isinstance(value, ModuleType):
                    self._statements += ["import %s" % one for one in submodules(source, used, value.__name__)]
            elif used not in namespace and not hasattr(builtins, used):
                raise PackingError("%s uses %s, which is not defined." % (what.__name__, used), hint="Define it first.")
        self._statements.append(source.rstrip())
        given = defined_name(source)
        if given != name:
            self._statements.append("%s = %s" % (name, given))


def _raw(value: Any) -> Any:
    """The function of a job; other things as they are."""
    inner = getattr(value, "function", None)
    return inner if isinstance(inner, FunctionType) and type(value).__module__.startswith("crucible.") else value


def _definition(value: Any) -> Union[FunctionType, type, None]:
    """The function or class that a definition made; of what its decorators made of it, such as a cache, the function."""
    if isinstance(value, (type, FunctionType)):
        return value
    if type(value).__module__ == "typing" and type(value).__name__ in _PICKLED_BY_NAME:
        made: type = value
        return made
    inner = loaded(value) if callable(value) and hasattr(type(value), "__get__") and hasattr(value, "__wrapped__") else None
    return inner if isinstance(inner, FunctionType) and inner.__qualname__ == getattr(value, "__qualname__", None) else None


def _is_below_decorators(what: Union[FunctionType, type]) -> bool:
    """Whether it is the function that a decorator received, and its name is bound to the decorator's result."""
    made = _raw(vars(sys.modules["__main__"]).get(_path_of(what)))
    return isinstance(what, FunctionType) and made not in (None, what) and _definition(made) not in (None, loaded(what))


def _is_packed(what: Union[FunctionType, type]) -> bool:
    """Whether its source is part of the program: a module that is run, and functions in functions, cannot be imported."""
    return what.__module__ == "__main__" or "<locals>" in _path_of(what)


def _path_of(what: Union[FunctionType, type]) -> str:
    path: str = getattr(what, "__qualname__", what.__name__)  # Type variables have no other name.
    return path


def _is_here_only(value: Any) -> bool:
    """Whether it is a part of this session, with its environment and keys. Answers of the command line are plain data."""
    if isinstance(value, (HasProgram, Program)):
        return True
    kind = type(value)
    if kind.__module__.split(".")[0] != "crucible" or kind.__module__.startswith("crucible.checkpoint") or isinstance(value, BaseException):
        return False
    return not {"env", "secrets"}.isdisjoint(getattr(kind, "__dataclass_fields__", ("env",)))


def _is_importable(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "." in name or module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is value
    except ImportError:
        return False

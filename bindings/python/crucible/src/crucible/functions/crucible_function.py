"""Runs a function that was sent: on the machine of a job, with nothing but Python.

Two commands use it. ``python3 crucible_function.py`` checks that this Python can read the program. The program itself,
``function_main.py``, gets its values with `value` and calls `run`.
"""

import importlib
import json
import os
import pickle
import sys
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, NoReturn, Optional, Tuple

MAIN = "function_main.py"
#: The folder of the result among the artifacts, and the file of the function in it.
RESULT = "crucible-function-result"
VALUE = "value"
# Pickle protocol that every supported Python 3 reads.
PROTOCOL = 4


def value(name: str) -> Any:
    """A value that the function uses or gets."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "function_values", name + ".pkl"), "rb") as file:
        return pickle.load(file)


def run(function: Callable[..., Any]) -> None:
    """Calls the function and keeps its value, or its exception, among the artifacts."""
    function = getattr(function, "local", function)
    try:
        args, kwargs = _arguments()
        result = function(*args, **kwargs)
        if hasattr(result, "__await__"):
            import asyncio

            result = asyncio.run(_awaited(result))
    except Exception as error:
        _fail(error)
    try:
        data = importlib.import_module("crucible_values").encode(result)
    except Exception as error:
        # Programs of the user run here, so every exception is possible.
        _keep_pickle(result, _message(error))
    else:
        _keep({"failure": None, "form": "data"}, data)


def _keep_pickle(result: Any, reason: str) -> None:
    """Keeps a value that is not data. Its reader decides whether to load a pickle."""
    try:
        data = pickle.dumps(result, PROTOCOL)
    except Exception as error:
        kind = type(result).__name__
        text = "it returned a %s, which cannot be sent back: %s: %s" % (kind, type(error).__name__, _message(error))
        _keep({"failure": "result", "message": text}, b"")
        sys.exit("crucible: " + text)
    _keep({"failure": None, "form": "pickle", "reason": reason}, data)


async def _awaited(result: Any) -> Any:
    return await result


def _arguments() -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    try:
        found: Tuple[Tuple[Any, ...], Dict[str, Any]] = value("arguments")
        return found
    except Exception as error:
        raise RuntimeError(
            "the arguments cannot be read by Python %s: %s: %s. Are their packages installed here? See setup="
            % (_version(), type(error).__name__, _message(error))
        ) from error


def _fail(error: Exception) -> NoReturn:
    try:
        text = "".join(traceback.format_exception(type(error), error, _own(error.__traceback__)))
    except Exception:
        # Older versions of Python read more of the exception than its text, and stop if that fails.
        text = "".join(traceback.format_tb(_own(error.__traceback__))) + "%s: %s\n" % (type(error).__name__, _message(error))
    told: Dict[str, Any] = {"failure": "exception", "type": type(error).__name__, "message": _message(error), "traceback": text}
    _keep(told, b"")
    sys.stderr.write(text)
    sys.exit(1)


def _message(error: Exception) -> str:
    """Its text, as far as it has one that can be kept: it is made by code of the user."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception as other:
        return "(its __str__ raised %s)" % type(other).__name__


def _own(frames: Optional[TracebackType]) -> Optional[TracebackType]:
    """The traceback without the frame of this file."""
    return frames.tb_next if frames is not None and frames.tb_next is not None else frames


def _keep(told: Dict[str, Any], data: bytes) -> None:
    """Writes one line of JSON and the value. The runner of the machine signs the file when it keeps it."""
    head = json.dumps(dict(told, version=2, python=_version())).encode()
    folder = os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], RESULT)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, VALUE)
    with open(path + ".part", "wb") as file:
        file.write(head + b"\n" + data)
    os.replace(path + ".part", path)


def _version() -> str:
    return "%d.%d.%d" % sys.version_info[:3]


def check() -> None:
    """Keeps a failure if this Python cannot read the program."""
    with open(MAIN, encoding="utf-8") as file:
        source = file.read()
    try:
        compile(source, MAIN, "exec")
    except SyntaxError as error:
        text = "Python %s of the machine cannot read the function: %s" % (_version(), error)
        _keep({"failure": "python", "message": text}, b"")
        sys.exit("crucible: " + text)


if __name__ == "__main__":
    check()

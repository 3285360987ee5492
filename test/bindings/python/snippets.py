"""Runs snippets of Python one by one, and prints as JSON what each printed, left behind or raised."""

import asyncio
import contextlib
import io
import json
import sys
import traceback
import types
from typing import Any, Dict


def run(snippet: Dict[str, str]) -> Dict[str, Any]:
    names: Dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    error = None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(snippet.get("before", ""), "before", "exec"), names)
            code = compile(snippet["code"], snippet["name"], "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            running = types.FunctionType(code, names)()
            if running is not None:
                asyncio.run(running)
        except BaseException as raised:
            error = {"type": type(raised).__name__, "message": str(raised), "trace": traceback.format_exc()}
    result = None
    if error is None and "after" in snippet:
        result = eval(snippet["after"], names)
    return {"stdout": printed.getvalue(), "error": error, "result": result}


print(json.dumps([run(one) for one in json.load(sys.stdin)]))

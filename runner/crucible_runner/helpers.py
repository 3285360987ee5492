"""The modules that training programs can import: `crucible_job` and `crucible.checkpoint`."""

import os
import zipfile

from . import PROGRAM
from .paths import write_whole

_HELPERS = "helpers/"


def install_helpers(folder: str) -> None:
    if not zipfile.is_zipfile(PROGRAM):
        return  # In a checkout they are in `bindings/python/crucible`.
    with zipfile.ZipFile(PROGRAM) as program:
        for name in program.namelist():
            if name.startswith(_HELPERS) and name.endswith(".py"):
                # `crucible` has no `__init__.py` here: an installed package of that name comes first, wherever it is.
                path = os.path.join(folder, *name[len(_HELPERS) :].split("/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_whole(path, program.read(name))

"""The libraries that the helpers are for. None is installed with this package."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator


@contextmanager
def library(module: str, packages: str) -> Iterator[None]:
    """Around the import of a library: if it is missing, the error says which package to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        # A module that the installed library itself needs is not ours to explain.
        if (error.name or "").split(".")[0] != module:
            raise
        raise ModuleNotFoundError(
            "These helpers are for %s, which is not installed. Run `pip install %s` in the environment of the program."
            % (module.replace("pytorch_lightning", "Lightning"), packages),
            name=error.name,
        ) from None

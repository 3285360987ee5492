"""Functions as jobs: ``@platform.job(gpu_memory="24GB")``."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Generic, List, Mapping, Optional, TypeVar

from truffle.cli import Program

from ..calls import HasProgram, Run, Steps, operation
from ..errors import PackingError
from ..job import Job
from ..requirements import Requirements
from ..submission import Files, Secrets, Submission, copy_files, secrets_of, warned
from . import packing
from .loaded import keep_text
from .results import KEY, new_key

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")


@dataclass(frozen=True)
class Settings:
    """How the jobs of a function are submitted; see `MLPlatform.submit`."""

    requirements: Requirements = field(default_factory=Requirements)
    name: Optional[str] = None
    env: Mapping[str, Any] = field(default_factory=dict)
    secrets: Secrets = field(default=(), repr=False)
    files: Files = ()


class Function(HasProgram, Generic[P, T]):
    """A function that runs as a job. ``train(3e-4)`` and ``train.submit(3e-4)`` submit a job and return it at once;
    ``train.local(3e-4)`` runs here. ``train(3e-4).result()`` waits for the return value.

    Sent are its source, that of the functions and classes of the same script or notebook that it uses, the values of other variables
    that it uses, its arguments, and the modules of the same project that it imports. Installed packages are not sent: the machine
    has them, its image, or ``setup="pip install ..."``. A function of an imported module is imported there, with its whole module.

    On the machine it runs in a folder of its own as any job: it saves to ``CRUCIBLE_CHECKPOINT_DIR``, finds its checkpoint in
    ``CRUCIBLE_RESUME_FROM``, and keeps files in ``CRUCIBLE_OUTPUT_DIR``. After an interruption it is called again with the same arguments.
    """

    def __init__(self, program: Program, function: Callable[P, T], settings: Settings) -> None:
        if not isinstance(function, FunctionType):
            raise PackingError(
                "%r is not a Python function with source code." % (function,), hint="Decorate a function that is defined with `def`."
            )
        keep_text(function)
        self._program = program
        self.function = function
        self.settings = settings
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        """The same as `submit`."""
        return self.submit(*args, **kwargs)

    def local(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function here."""
        value: T = self.function(*args, **kwargs)
        return value

    @operation
    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Steps[Job[T]]:
        """Submits a job that calls the function. Raises `PackingError` for what cannot be sent, and as `MLPlatform.submit`."""
        if packing.RUNNER in sys.modules:
            raise PackingError(
                "%s is called on the machine of a job, where it would submit another job." % self.function.__name__,
                hint="Call %s.local(...) there. If its module calls it while it is imported, do that under `if __name__ == \"__main__\":`."
                % self.function.__name__,
            )
        packing.refuse_method(self.function)
        inspect.signature(self.function).bind(*args, **kwargs)
        key = new_key()
        names, values = secrets_of(self.settings.secrets)
        with tempfile.TemporaryDirectory(prefix="crucible-") as path:
            folder = Path(path)
            copy_files(self.settings.files, folder)
            packing.pack(self.function, (args, kwargs), folder, _is_decorator)
            what = Submission(
                run=packing.COMMAND,
                workdir=folder,
                requirements=self.settings.requirements,
                name=self.settings.name or self.function.__name__.strip("_").replace("_", "-").lower()[:40],
                env=self.settings.env,
                secrets=[*names, KEY],
                copied=self.settings.files,
            )
            with what.words() as (words, _):
                document = yield Run(("submit", *words), {**values, KEY: key})

        inferred = tuple(document["inferred"])
        return Job(self._program, document["id"], warnings=warned(document), inferred=inferred, is_function=True, key=key)

    def __repr__(self) -> str:
        return "<Function %s, which runs as a job>" % self.function.__qualname__


def _is_decorator(expression: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Whether an expression is ``platform.job``, ``platform.job(...)``, or a name of the result of ``platform.job(...)``."""
    from ..platform import Decorator, MLPlatform

    called = expression.func if isinstance(expression, ast.Call) else expression
    path: List[str] = []
    while isinstance(called, ast.Attribute):
        path.insert(0, called.attr)
        called = called.value
    if not isinstance(called, ast.Name) or called.id not in namespace:
        # Something like MLPlatform().job(...): only its name shows what it is.
        return bool(path) and path[-1] == "job"
    value = namespace[called.id]
    for name in path:
        value = getattr(value, name, None)
    return isinstance(value, Decorator) or (inspect.ismethod(value) and value.__func__ is MLPlatform.job)

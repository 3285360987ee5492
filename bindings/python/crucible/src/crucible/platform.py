"""A deployment of Crucible, through its command line."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar, Union, overload

from truffle.cli import Program
from truffle.errors import UsageError

from . import checks, html
from .analysis import Analysis, Rehearsal, analysis_of
from .calls import HasProgram, Run, Steps, operation, options
from .documents import read
from .errors import CrucibleWarning
from .functions import Function, Settings
from .functions.results import KEY, OLD_KEY, new_key
from .job import Job
from .plans import Plan, plan_of
from .records import Budget, Health, Listed
from .requirements import Requirements, requirements_of
from .status import Status, status_of
from .submission import STACK_OF_OPERATION, Files, PathLike, Secrets, Submission, warned

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")


class MLPlatform(HasProgram):
    """A deployment of Crucible. Nothing is started until a method is called.

    The methods wait; each has a second form for asyncio: ``platform.submit(...)`` or ``await platform.submit.aio(...)``.

    Args:
        executable: The command that runs ``crucible``; see `truffle.cli.Program` for the places that are searched without it.
        home: Folder of this user's Crucible (``CRUCIBLE_HOME``).
        address: The Temporal server, as ``host:port`` (``TEMPORAL_ADDRESS``). By default a running ``crucible dev``.
        namespace: Its namespace (``TEMPORAL_NAMESPACE``).
        store: The object store (``CRUCIBLE_STORE``).
        owner: Who submits (``CRUCIBLE_OWNER``).
        env: More variables for the command line.
    """

    @checks.checked
    def __init__(
        self,
        executable: Optional[str] = None,
        *,
        home: Optional[PathLike] = None,
        address: Optional[str] = None,
        namespace: Optional[str] = None,
        store: Optional[str] = None,
        owner: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> None:
        checks.command(executable)
        named = {
            "CRUCIBLE_HOME": None if home is None else str(Path(home).expanduser().absolute()),
            "TEMPORAL_ADDRESS": address,
            "TEMPORAL_NAMESPACE": namespace,
            "CRUCIBLE_STORE": store,
            "CRUCIBLE_OWNER": owner,
        }
        variables = {**(env or {}), **{name: value for name, value in named.items() if value is not None}}
        self._program = Program("crucible", executable, variables)

    @operation
    def submit(
        self,
        code: Optional[str] = None,
        *,
        script: Optional[PathLike] = None,
        run: Optional[str] = None,
        job_file: Optional[PathLike] = None,
        from_job: Optional[str] = None,
        fresh: bool = False,
        args: Sequence[Any] = (),
        requirements: Optional[Requirements] = None,
        preferences: Optional[Mapping[str, Any]] = None,
        name: Optional[str] = None,
        env: Optional[Mapping[str, Any]] = None,
        secrets: Secrets = (),
        files: Files = (),
        workdir: Union[PathLike, bool, None] = None,
        analyze: bool = True,
        id: Optional[str] = None,
    ) -> Steps[Job[Status]]:
        """Submits a job. One of ``code``, ``script``, ``run``, ``job_file`` and ``from_job`` says what runs.

        Args:
            code: The source text of a Python program.
            script: A Python file. Its folder is sent along, or the current one if the script is below it.
            run: A command for ``sh``. The current folder is sent along.
            job_file: A job file; the other arguments override it.
            from_job: An earlier job to resume from its newest good checkpoint, with its settings and code unless others are given.
            fresh: With ``from_job``, start over.
            args: Arguments of ``code`` or ``script``.
            requirements: What it requires.
            preferences: ``optimize_for`` (``cost``, ``time`` or ``speed``, ``reliability``, ``balanced``), ``allowed_backends``
                (None allows all), ``allowed_regions``, ``max_price_usd_per_hour``.
            name: Name in lists (by default that of the script).
            env: Environment variables of the program.
            secrets: Variables whose values are encrypted: names, whose values are taken from this process's environment, or names
                with values.
            files: Files and folders to send with ``code``: a list, or ``{"data/vocab.txt": "vocab.txt"}``.
            workdir: The folder to send along instead; False sends nothing.
            analyze: Analyze the program to fill in missing fields.
            id: Id of the job; submitting it again with the same id has no effect.

        Raises `UsageError` for wrong arguments, `UnavailableError` without a server, and other classes of `crucible.errors`.
        """
        what = Submission(
            code=code, script=script, run=run, job_file=job_file, from_job=from_job, fresh=fresh, id=id,
            args=args, name=name, env=env or {}, secrets=secrets, files=files, workdir=workdir, analyze=analyze,
            requirements=requirements_of(requirements).with_preferences(preferences),
        )
        # The earlier job may be that of a function, which signs its result.
        key = None if from_job is None else new_key()
        with what.words() as (words, values):
            document = yield Run(("submit", *words), values if key is None else {**values, KEY: key, OLD_KEY: key})
        return Job(self._program, document["id"], warnings=warned(document), inferred=tuple(document["inferred"]), key=key)

    @operation
    def recommend(
        self,
        code: Optional[str] = None,
        *,
        script: Optional[PathLike] = None,
        run: Optional[str] = None,
        job_file: Optional[PathLike] = None,
        from_job: Optional[str] = None,
        args: Sequence[Any] = (),
        requirements: Optional[Requirements] = None,
        preferences: Optional[Mapping[str, Any]] = None,
        env: Optional[Mapping[str, Any]] = None,
        secrets: Secrets = (),
        files: Files = (),
        workdir: Union[PathLike, bool, None] = None,
        analyze: bool = True,
    ) -> Steps[Plan]:
        """Ranks the places where a job could run now, with their cost, time, reasons and risks, and says why others are left out.
        Starts nothing. The arguments are those of `submit`; without a program, the requirements alone are planned."""
        nothing = code is None and script is None and run is None and job_file is None and from_job is None
        what = Submission(
            code=code, script=script, run="true" if nothing else run, job_file=job_file, from_job=from_job,
            args=args, env=env or {}, secrets=secrets, files=files, workdir=False if nothing else workdir, analyze=analyze,
            requirements=requirements_of(requirements).with_preferences(preferences),
        )
        with what.words() as (words, values):
            document = yield Run(("plan", *words), values)
        plan = plan_of(document)
        # The document's warnings are about a program, and none was given; its notes are about the plan.
        return replace(plan, warnings=tuple(document.get("notes", ()))) if nothing else plan

    #: Alias of `recommend`.
    plan = recommend

    @operation
    def rehearse(
        self,
        script: Optional[PathLike] = None,
        *,
        job_file: Optional[PathLike] = None,
        code: Optional[str] = None,
        args: Sequence[Any] = (),
        requirements: Optional[Requirements] = None,
        time_limit: Optional[str] = None,
        interruptions: Optional[int] = None,
    ) -> Steps[Rehearsal]:
        """Runs a program here for a few minutes, interrupts it at the worst moments, and says whether it resumes. Needs no server."""
        what = Submission(
            code=code, script=script, job_file=job_file, args=args, requirements=requirements_of(requirements)
        )
        with what.words() as (words, values):
            more = options({"for": time_limit, "interruptions": interruptions})
            return read(Rehearsal, (yield Run(("rehearse", *words, *more), values)))

    @operation
    def analyze(self, target: Optional[PathLike] = None, *, code: Optional[str] = None, args: Sequence[Any] = ()) -> Steps[Analysis]:
        """Reads a training script, notebook, folder or job file, or source text, without running it."""
        if (target is None) == (code is None):
            raise UsageError("analyze() reads one program.", hint="Give a path, or code=.")
        after = ("--", *(str(one) for one in args)) if args else ()
        if target is not None:
            return analysis_of((yield Run(("analyze", checks.path(target), *after))))
        with tempfile.TemporaryDirectory(prefix="crucible-") as folder:
            path = Path(folder, "main.py")
            path.write_text(code or "", encoding="utf-8")
            return analysis_of((yield Run(("analyze", str(path), *after))))

    @operation
    def jobs(
        self,
        state: Union[str, Sequence[str], None] = None,
        *,
        mine: bool = False,
        owner: Optional[str] = None,
        name: Optional[str] = None,
        backend: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Steps[Listed[Job[Any]]]:
        """The newest jobs (50 unless ``limit`` says otherwise), each with its `Status` in ``last``.

        While the store does not answer, costs and some states are None, with a `CrucibleWarning`.
        """
        states = state if state is None or isinstance(state, str) else ",".join(state)
        words = options({"state": states, "mine": mine, "owner": owner, "name": name, "backend": backend, "limit": limit})
        document = yield Run(("list", *words))
        if document.get("incomplete"):
            warnings.warn(document["incomplete"], CrucibleWarning, stacklevel=STACK_OF_OPERATION - 1)
        statuses = [status_of(one) for one in document["jobs"]]
        jobs: Sequence[Job[Any]] = [Job(self._program, one.id, name=one.name, last=one) for one in statuses]
        return Listed(jobs, lambda listed: html.jobs([one.last for one in listed]))

    @operation
    def find(self, job: str) -> Steps[Job[Any]]:
        """The job with this id, unique beginning of an id, or name. Raises `NotFoundError` for another one."""
        status = status_of((yield Run(("show", checks.job(job)))))
        return Job(self._program, status.id, name=status.name, last=status)

    @overload
    def job(self, job: str, /) -> Job[Any]: ...

    @overload
    def job(self, function: Callable[P, T], /) -> Function[P, T]: ...

    @overload
    def job(
        self,
        *,
        requirements: Optional[Requirements] = None,
        preferences: Optional[Mapping[str, Any]] = None,
        name: Optional[str] = None,
        env: Optional[Mapping[str, Any]] = None,
        secrets: Secrets = (),
        files: Files = (),
        **fields: Any,
    ) -> Decorator: ...

    def job(self, *what: Any, **settings: Any) -> Any:
        """``platform.job("char-lm")`` is the job of that id or name, as `find`.

        ``@platform.job(gpu_memory="24GB")`` makes a function of a notebook or module run as a job: see `crucible.functions.Function`.
        Its arguments are the fields of `Requirements`, and ``requirements``, ``preferences``, ``name``, ``env``, ``secrets`` and
        ``files`` as in `submit`.
        """
        if what and isinstance(what[0], str):
            return self.find(*what, **settings)
        if what and not callable(what[0]):
            raise checks.no_job(what[0])
        checks.check_named(MLPlatform.submit.define, settings)
        own = {name: settings.pop(name) for name in list(settings) if name in ("name", "env", "secrets", "files")}
        preferences = settings.pop("preferences", None)
        requirements = requirements_of(settings.pop("requirements", None), settings).with_preferences(preferences)
        fixed = Settings(requirements=requirements, **own)
        return Function(self._program, what[0], fixed) if what else Decorator(self._program, fixed)

    @operation
    def budget(self, month: Optional[str] = None) -> Steps[Budget]:
        """The budget of a month (``"2026-10"``; by default this one): its limit, the amount spent, and the amount reserved for open jobs."""
        return read(Budget, (yield Run(("budget", *options({"month": month})))))

    @operation
    def doctor(self) -> Steps[Health]:
        """Checks programs, keys, store, server, workers and backends. Each problem has a remedy."""
        return read(Health, (yield Run(("doctor",))))

    @operation
    def orphans(self) -> Steps[Tuple[Mapping[str, Any], ...]]:
        """Machines, volumes and uploads that no open job owns, as ``crucible gc --dry-run`` lists them. Removes nothing."""
        return tuple((yield Run(("gc", "--dry-run")))["verdicts"])

    def __enter__(self) -> MLPlatform:
        return self

    def __exit__(self, *ending: object) -> None:
        """Does nothing: jobs continue, and nothing is open between two calls."""

    async def __aenter__(self) -> MLPlatform:
        return self

    async def __aexit__(self, *ending: object) -> None:
        """As `__exit__`."""

    def __repr__(self) -> str:
        env: Dict[str, str] = dict(self._program.env)
        return "<MLPlatform %s>" % (env.get("TEMPORAL_ADDRESS") or env.get("CRUCIBLE_HOME") or "of this environment")


class Decorator:
    """Turns functions into `Function`. The decorator of packed source is left out by its class."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self._program = program
        self._settings = settings

    def __call__(self, function: Callable[P, T]) -> Function[P, T]:
        return Function(self._program, function, self._settings)

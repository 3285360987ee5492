"""The requirements of a job, and their form in a job file."""

from __future__ import annotations

import dataclasses
import difflib
import numbers
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, AbstractSet as Set, Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Union

from truffle.errors import UsageError

from . import checks

Amount = Union[str, int]
Duration = Union[str, timedelta]
Texts = Union[str, Sequence[str]]
Dollars = Union[str, int, float]


@dataclass(frozen=True)
class Requirements:
    """The requirements of a job: its machine, its time, its money and its checkpoints. Everything is optional.

    The fields are those of the `job file <https://github.com/scttfrdmn/crucible/blob/main/docs/reference/job-file.md>`_, with its
    amounts (``"24GB..80GB"``, ``"6h on A100"``, ``"$25"``). A field with a unit in its name is short for the one in parentheses.

    Attributes:
        gpus: How many GPUs: ``1``, ``"2..8"``.
        gpu_memory: Memory of each GPU: ``"24GB"``, ``"24GB..80GB"``.
        gpu_memory_gb: At least so many GB for each GPU (``gpu_memory``).
        accelerators: Acceptable models, such as ``["A10G", "L4"]``.
        instance_type: Acceptable machine types, as their provider names them.
        cpus: CPU cores, at least.
        memory: Memory of the machine, at least.
        disk: Disk space, at least.
        disk_throughput: MiB/s of the disk, only on EC2.
        disk_iops: Operations per second of the disk, only on EC2.
        shm: Shared memory of the container (with ``image``).
        duration: Estimate of the whole training: ``"6h"``, ``"6h on A100"``, or a `timedelta`.
        duration_hours_estimated: The same in hours (``duration``).
        work_family: Kind of training, such as ``transformer``.
        interruptible: Whether spot capacity is allowed; the job then resumes from checkpoints.
        isolation: ``dedicated``, ``shared`` or ``community``.
        accept: Risks to accept.
        on_rebalance: ``save``, ``move`` or ``ignore``.
        deadline: ``"36h"`` from now, a time with its zone, a `timedelta` from now, or a `datetime` with its zone.
        budget: Total cost limit in dollars.
        max_cost_usd: The same (``budget``).
        backends: Allowed backends, such as ``["local", "ec2:spot"]``. None allows all.
        regions: Allowed Regions or zones.
        reservation: The only reservation to run in.
        reserved: Whether reserved capacity may be used.
        max_price: The most that an hour may cost, in dollars.
        optimize: ``cost``, ``time`` (also ``speed``), ``reliability`` or ``balanced``.
        max_failures: How often a failed program is restarted.
        max_interruptions: How often the job may lose its machine.
        checkpoint_directory: Where the program saves, unless in ``CRUCIBLE_CHECKPOINT_DIR``.
        checkpoint_every: Shortest interval between kept checkpoints.
        checkpoint_frequency_minutes: The same in minutes (``checkpoint_every``).
        checkpoint_size: Size of a checkpoint, such as ``"12GB"``.
        checkpoint_complete: Files that prove a checkpoint complete.
        checkpoint_include: Patterns of the files of a checkpoint.
        checkpoint_exclude: Patterns of files that never belong to one.
        checkpoint_quiet: Time without changes after which unproven files count.
        checkpoint_signal: Signal that makes the program save.
        checkpoint_keep: How many of the newest are kept.
        image: Container image to run in.
        image_username: User name for its registry.
        image_password: Name of the variable with its password or token.
        setup: Command to run first on every machine.
        shell: Program that runs the commands, with its options.
        inputs: Files to download first: ``{"data/train.bin": "https://..."}``, or sources.
        outputs: Paths or patterns to keep as artifacts, in addition to ``CRUCIBLE_OUTPUT_DIR``.
        require_outputs: Whether a program that ends without one of ``outputs`` has failed.
        tags: Tags on its EC2 machines and disks, and in ``crucible costs --by tag:KEY``.
    """

    gpu_memory_gb: Optional[float] = None
    duration_hours_estimated: Optional[float] = None
    checkpoint_frequency_minutes: Optional[float] = None
    interruptible: Optional[bool] = None
    max_cost_usd: Optional[float] = None
    gpus: Optional[Amount] = None
    gpu_memory: Optional[str] = None
    accelerators: Optional[Texts] = None
    instance_type: Optional[Texts] = None
    cpus: Optional[Amount] = None
    memory: Optional[str] = None
    disk: Optional[str] = None
    disk_throughput: Optional[int] = None
    disk_iops: Optional[int] = None
    shm: Optional[str] = None
    duration: Optional[Duration] = None
    work_family: Optional[str] = None
    isolation: Optional[str] = None
    accept: Optional[Texts] = None
    on_rebalance: Optional[str] = None
    deadline: Optional[Union[str, timedelta, datetime]] = None
    budget: Optional[Dollars] = None
    backends: Optional[Texts] = None
    regions: Optional[Texts] = None
    reservation: Optional[str] = None
    reserved: Optional[bool] = None
    max_price: Optional[Dollars] = None
    optimize: Optional[str] = None
    max_failures: Optional[int] = None
    max_interruptions: Optional[int] = None
    checkpoint_directory: Optional[str] = None
    checkpoint_every: Optional[Duration] = None
    checkpoint_size: Optional[str] = None
    checkpoint_complete: Optional[Texts] = None
    checkpoint_include: Optional[Texts] = None
    checkpoint_exclude: Optional[Texts] = None
    checkpoint_quiet: Optional[Duration] = None
    checkpoint_signal: Optional[str] = None
    checkpoint_keep: Optional[int] = None
    image: Optional[str] = None
    image_username: Optional[str] = None
    image_password: Optional[str] = None
    setup: Optional[str] = None
    shell: Optional[str] = None
    inputs: Optional[Union[Mapping[str, str], Sequence[Union[str, Mapping[str, str]]]]] = None
    outputs: Optional[Texts] = None
    require_outputs: Optional[bool] = None
    tags: Optional[Mapping[str, str]] = None

    if not TYPE_CHECKING:

        def __new__(cls, *_args: Any, **given: Any) -> Requirements:
            """Raises `UsageError` for an unknown name."""
            for name in given:
                if name not in cls.__dataclass_fields__:
                    raise unknown("requirement", name, cls.__dataclass_fields__)
            return super().__new__(cls)

    def __post_init__(self) -> None:
        hints = checks.hints_of(Requirements)
        for name in hints:
            value = getattr(self, name)
            if value is not None:
                checks.check(name, value, hints[name])

    def with_preferences(self, preferences: Optional[Mapping[str, Any]]) -> Requirements:
        """These requirements with preferences: ``optimize_for``, ``allowed_backends``, ``allowed_regions``,
        ``max_price_usd_per_hour``. A preference that is None says nothing. Raises `UsageError` for an unknown one, and for one that
        contradicts these."""
        result = self
        for name, value in (preferences or {}).items():
            target = PREFERENCES.get(name)
            if target is None:
                raise unknown("preference", name, PREFERENCES)
            if value is None:
                continue
            checks.check(name, value, checks.hints_of(Requirements)[target])
            present = getattr(self, target)
            if present is not None and present != value:
                raise UsageError(
                    "The preference %s=%r contradicts %s=%r of the requirements." % (name, value, target, present),
                    hint="Give one of them.",
                )
            result = dataclasses.replace(result, **{target: value})
        return result

    def fields(self) -> Dict[str, Any]:
        """The values that are set, by their names here, with short forms expanded and amounts as text."""
        values: Dict[str, Any] = {}
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if value is None:
                continue
            name, value = _SHORT.get(one.name, lambda given: (one.name, amount(given)))(value)
            if name in values and one.name != name or (name != one.name and getattr(self, name) is not None):
                raise UsageError("%s and %s have the same meaning." % (name, one.name), hint="Give one of them.")
            values[name] = value
        if "backends" in values:
            backends = values["backends"]
            values["backends"] = [backend_name(each) for each in ([backends] if isinstance(backends, str) else backends)]
        return values


#: Path of each field in a job file.
JOB_FILE: Mapping[str, Tuple[str, ...]] = {
    **{
        name: ("resources", name)
        for name in (
            "gpus",
            "gpu_memory",
            "accelerators",
            "instance_type",
            "cpus",
            "memory",
            "disk",
            "disk_throughput",
            "disk_iops",
            "shm",
        )
    },
    **{
        "checkpoint_%s" % name: ("checkpoint", name)
        for name in ("directory", "every", "size", "complete", "include", "exclude", "quiet", "signal", "keep")
    },
    **{
        name: (name,)
        for name in (
            *("duration", "work_family", "interruptible", "isolation", "accept", "on_rebalance", "deadline", "budget"),
            *("backends", "regions", "reservation", "reserved", "max_price", "optimize", "image", "setup", "shell"),
            *("inputs", "outputs", "require_outputs", "tags"),
        )
    },
    "max_failures": ("retries", "failures"),
    "max_interruptions": ("retries", "interruptions"),
    "image_username": ("image_login", "username"),
    "image_password": ("image_login", "password"),
}

#: Flags of the command line that override a field of a job file. Other fields must be written there.
FLAGS: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("gpus", "gpu_memory", "cpus", "memory", "disk", "shm", "duration", "work_family", "isolation", "accept"),
            *("on_rebalance", "deadline", "budget", "max_price", "optimize", "max_failures", "max_interruptions"),
            *("image", "image_password", "setup", "shell", "checkpoint_every", "interruptible", "reservation"),
        )
    },
    **{"accelerators": "accelerator", "backends": "backend", "regions": "region", "inputs": "input", "outputs": "output"},
    **{"checkpoint_directory": "checkpoint_dir", "image_username": "image_user"},
}

#: Preferences, and the fields that they set.
PREFERENCES: Mapping[str, str] = {
    "optimize_for": "optimize",
    "allowed_backends": "backends",
    "allowed_regions": "regions",
    "max_price_usd_per_hour": "max_price",
}

_SHORT: Mapping[str, Any] = {
    "gpu_memory_gb": lambda gb: ("gpu_memory", "%sGB" % number(gb)),
    "duration_hours_estimated": lambda hours: ("duration", "%sh" % number(hours)),
    "checkpoint_frequency_minutes": lambda minutes: ("checkpoint_every", "%sm" % number(minutes)),
    "max_cost_usd": lambda usd: ("budget", "$%s" % number(usd)),
}

#: Capacity types by the names that other tools use in ``ec2_ondemand``.
_CAPACITY = {"spot": "spot", "ondemand": "on-demand", "on_demand": "on-demand", "reserved": "reserved"}


def backend_name(name: str) -> str:
    """A backend as a job file names it: ``ec2_spot`` is ``ec2:spot``, and ``ec2_ondemand`` is ``ec2:on-demand``."""
    backend, _, kind = name.partition("_")
    return "%s:%s" % (backend, _CAPACITY[kind]) if kind in _CAPACITY else name


def requirements_of(given: Optional[Requirements], more: Mapping[str, Any] = {}) -> Requirements:
    """Requirements with fields by name, which win. Raises `UsageError` for an unknown name."""
    names = {one.name for one in dataclasses.fields(Requirements)}
    for name in more:
        if name not in names:
            raise unknown("requirement", name, names)
    return dataclasses.replace(given or Requirements(), **more)


def job_file(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The fields of `Requirements.fields` as a job file has them."""
    document: Dict[str, Any] = {}
    for name, value in fields.items():
        *groups, last = JOB_FILE[name]
        place = document
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return document


def flags(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The same as options of the command line, over a job file. Raises `UsageError` for those that only a job file has."""
    values: Dict[str, Any] = {}
    for name, value in fields.items():
        flag = FLAGS.get(name)
        if flag is None:
            raise UsageError(
                "%s cannot be changed over a job file." % name, hint="Write %s into the job file." % ".".join(JOB_FILE[name])
            )
        if name == "interruptible":
            flag, value = ("interruptible" if value else "no_interruptible"), True
        elif name == "inputs":
            value = _input_flags(value)
        elif flag in ("accept", "accelerator", "region", "output") and not isinstance(value, str):
            value = list(value)
        values[flag] = value
    return values


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for an unknown name: it names the nearest one."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = "Did you mean %s?" % near[0] if near else "Known: %s." % ", ".join(sorted(known))
    return UsageError("There is no %s %r." % (kind, name), hint=hint)


def number(value: Union[int, float]) -> str:
    """A number without an exponent: 1e-05 as 0.00001."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError("%r is not a number." % (value,), hint="Give a number, such as 16.")
    text = format(Decimal(int(value) if isinstance(value, numbers.Integral) else repr(float(value))), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: Any) -> Any:
    """A duration, a time or a number as a job file writes it; lists as lists, and the rest as it is."""
    if isinstance(value, timedelta):
        return "%ss" % number(value.total_seconds())
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UsageError(
                "The deadline %s has no time zone." % value.isoformat(), hint="Write datetime(..., tzinfo=timezone.utc)."
            )
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, numbers.Integral) else number(float(value))
    if isinstance(value, Mapping):
        return {name: amount(one) for name, one in value.items()}
    return [amount(one) for one in value] if isinstance(value, (Sequence, Set)) and not isinstance(value, str) else value


def _input_flags(inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return ["%s=%s" % each for each in inputs.items()]
    texts = [inputs] if isinstance(inputs, str) else inputs
    return [one if isinstance(one, str) else "%s=%s" % (one["path"], one["source"]) for one in texts]

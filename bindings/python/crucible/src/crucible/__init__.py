"""Runs ML jobs to completion on whatever capacity is cheapest, soonest or safest.

`MLPlatform` submits jobs, `Requirements` says what they require, and `Job` is one of them::

    from crucible import MLPlatform, Requirements

    platform = MLPlatform()
    job = platform.submit(script="train.py", requirements=Requirements(gpu_memory_gb=16, interruptible=True))
    for status in job.monitor():
        print(status)

Every method that waits has a second form for asyncio: ``await job.wait.aio()``.
"""

from .analysis import Analysis, AnalysisFinding, Rehearsal
from .errors import (
    CapacityError,
    CommandFailed,
    ConditionalError,
    CrucibleError,
    CrucibleWarning,
    ExecutableNotFound,
    InterruptedError,
    JobFailed,
    NotFoundError,
    NotSurvivedError,
    PackingError,
    PermissionError,
    ResultError,
    SchemaMismatch,
    UnavailableError,
    UnconfirmedError,
    UsageError,
)
from .functions import Function
from .job import Job
from .plans import Plan, Range, Recommendation, Rejection, Relaxation
from .platform import MLPlatform
from .records import (
    Artifact,
    Budget,
    Checkpoint,
    Decision,
    DownloadedCheckpoint,
    Event,
    Finding,
    Health,
    LogLine,
    Logs,
    Spending,
    WhatIf,
    Why,
)
from .requirements import Requirements
from .status import Attempt, Cost, Machine, Status, Training

__all__ = [
    "Analysis",
    "AnalysisFinding",
    "Artifact",
    "Attempt",
    "Budget",
    "CapacityError",
    "Checkpoint",
    "CommandFailed",
    "ConditionalError",
    "Cost",
    "CrucibleError",
    "CrucibleWarning",
    "Decision",
    "DownloadedCheckpoint",
    "Event",
    "ExecutableNotFound",
    "Finding",
    "Function",
    "Health",
    "InterruptedError",
    "Job",
    "JobFailed",
    "LogLine",
    "Logs",
    "MLPlatform",
    "Machine",
    "NotFoundError",
    "NotSurvivedError",
    "PackingError",
    "PermissionError",
    "Plan",
    "Range",
    "Recommendation",
    "Rehearsal",
    "Rejection",
    "Relaxation",
    "Requirements",
    "ResultError",
    "SchemaMismatch",
    "Spending",
    "Status",
    "Training",
    "UnavailableError",
    "UnconfirmedError",
    "UsageError",
    "WhatIf",
    "Why",
]

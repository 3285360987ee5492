"""The workload's environment: the order's variables, and as few of the machine's own as possible."""

import os
import re
import shutil
from typing import Dict, Mapping, NamedTuple

from ..paths import Paths
from .machine_name import MACHINE_VARIABLE, name_of_machine
from .user import variables

# Only the variables named here are passed on, so that no credential of the machine reaches the workload.
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_.*|TZ|TERM|TMPDIR|LD_LIBRARY_PATH"
    r"|CUDA_.*|NVIDIA_.*|VIRTUAL_ENV|CONDA_.*|\w+_proxy|\w+_PROXY"
)
# A container has its own system; from the machine it needs only the proxy settings.
_PASSED_TO_CONTAINER = re.compile(r"\w+_proxy|\w+_PROXY")


class Facts(NamedTuple):
    """Variables added to the machine's own environment."""

    order: dict
    secrets: Mapping[str, str]
    paths: Paths
    checkpoint_dir: str
    has_user: bool = False
    """The commands run as the job's own user."""
    image_password: str = ""
    """The password for the image's registry, if the order names a login."""
    tracking: Mapping[str, str] = {}
    """Variables that let the program continue the runs of its experiment trackers."""
    gpus: int = 0
    """The number of GPUs that the commands can use."""
    resume_from: str = ""
    """Absolute path of the restored checkpoint; empty without one."""


def workload_environment(facts: Facts, own: Mapping[str, str]) -> Dict[str, str]:
    """Returns the environment of a command that runs on the machine itself."""
    result = {name: value for name, value in own.items() if _PASSED.fullmatch(name)}
    result["PATH"] = _path_with_python(result.get("PATH", os.defpath), facts.paths)
    programs = os.path.join(facts.paths.python, "bin")
    if os.path.isdir(programs):
        result["PATH"] = programs + os.pathsep + result["PATH"]
        result["VIRTUAL_ENV"] = facts.paths.python
    if facts.has_user:
        result.update(variables(facts.paths.home, facts.paths.short_scratch(), result["PATH"]))
    result.update(_own_variables(facts, own))
    return result


def container_environment(facts: Facts, own: Mapping[str, str]) -> Dict[str, str]:
    """Returns the variables of a container."""
    result = {name: value for name, value in own.items() if _PASSED_TO_CONTAINER.fullmatch(name)}
    result.update(_own_variables(facts, own))
    return result


def _own_variables(facts: Facts, own: Mapping[str, str]) -> Dict[str, str]:
    order, paths = facts.order, facts.paths
    result = {"PYTHONUNBUFFERED": "1"}
    result.update(order["env"])
    result.update(facts.secrets)
    result.update(facts.tracking)
    result.update(
        {
            "CRUCIBLE_JOB_ID": order["jobId"],
            "CRUCIBLE_JOB_NAME": order["jobName"],
            "CRUCIBLE_ATTEMPT": str(order["attempt"]),
            "CRUCIBLE_CHECKPOINT_DIR": facts.checkpoint_dir,
            "CRUCIBLE_OUTPUT_DIR": paths.output,
            "CRUCIBLE_CONTROL_DIR": paths.control,
            "CRUCIBLE_GPUS": str(facts.gpus),
            MACHINE_VARIABLE: name_of_machine(order["attemptId"], own),
        }
    )
    result.pop("CRUCIBLE_RESUME_FROM", None)
    if facts.resume_from:
        result["CRUCIBLE_RESUME_FROM"] = facts.resume_from
    every_ms = order["checkpoint"]["everyMs"]
    if every_ms > 0:
        result["CRUCIBLE_CHECKPOINT_EVERY_SECONDS"] = ("%.3f" % (every_ms / 1000)).rstrip("0").rstrip(".")
    search = [paths.helper] + ([result["PYTHONPATH"]] if result.get("PYTHONPATH") else [])
    result["PYTHONPATH"] = os.pathsep.join(search)
    return result


def _path_with_python(path: str, paths: Paths) -> str:
    """If `python3` exists but `python` does not, makes scripts that call `python` work."""
    python3 = shutil.which("python3", path=path)
    if shutil.which("python", path=path) is not None or python3 is None:
        return path
    link = os.path.join(paths.bin, "python")
    if not os.path.lexists(link):
        os.symlink(python3, link)
    return path + os.pathsep + paths.bin

"""Running the commands in a container, when the order names an image. Needs the `docker` program, or one that acts like it."""

import os
import shutil
import subprocess
from typing import Dict, List, Optional

from ..endings import Failed
from ..paths import Paths, remove_tree
from .processes import PASSING_ON, TELLING

_CALL_SECONDS = 60.0
# What an engine runs beside the command: its client, its monitor and the first process of a container.
_ENGINE = {"docker", "podman", "conmon", "containerd-shim-runc-v2", "docker-init", "tini", "catatonit"}
# What `apt-get` and `pip` need in a setup that runs as root of the container. None of them reaches out of it: no raw sockets, no
# devices, no file capabilities, no mounts.
_ROOT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")
_QUIET: Dict = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

# Setup and run share one container, so that what setup installs is there. The marks tell the runner how far it is.
# The shell that runs the command may die of SIGTERM at once, while its program is still saving: only when nothing is left
# does the container end.
_SCRIPT = """
control=$CRUCIBLE_CONTROL_DIR
if [ -n "$1" ]; then sh -c "$1" || { code=$?; : > "$control/setup-failed"; exit $code; }; fi
: > "$control/setup-done"
trap 'stopped=1' TERM
sh -c "$2" &
child=$!
wait $child; code=$?
while [ -n "$stopped" ] && kill -0 $child 2>/dev/null; do wait $child; code=$?; done
while [ -n "$stopped" ] && kill -0 -1 2>/dev/null; do sleep 0.2; done
exit $code
"""

# What `processes.ask_to_stop` does, for a whole container but its first process; all at once, for a shell that dies leaves 143
# in any case, which is taken for little when checkpoints are judged.
ASKING = """
parents=' '
for process in /proc/[0-9]*; do
  read -r stat < "$process/stat" || continue
  set -- ${stat##*) }
  parents="$parents$2 "
done
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  [ "$pid" -gt 1 ] && [ "$pid" -ne $$ ] && read -r name < "$process/comm" || continue
  case "|%s|" in *"|$name|"*) [ -p "$process/fd/0" ] && continue ;; esac
  [ "$name" = %s ] && case "$parents" in *" $pid "*) continue ;; esac
  kill -TERM "$pid"
done
""" % ("|".join(sorted(PASSING_ON)), TELLING)


def find_docker() -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise Failed(
            "image", "the order names an image, but this machine has no docker on its PATH: install it there"
        )
    return docker


def container_name(attempt_id: str) -> str:
    return "crucible-" + attempt_id


def container_command(
    docker: str, order: dict, paths: Paths, names: List[str], gpus: Optional[str]
) -> List[str]:
    """The command that runs setup and run in the order's image. Variables are passed by `names`, so that no value of a
    secret stands on a command line. `gpus` is what docker calls the GPUs to give it.

    The container sees the job's own directories only: the machine's keys, grants, runner and temporary files stay outside."""
    command = [docker, "run", "--rm", "--init", "--name", container_name(order["attemptId"])]
    command += ["--label", "crucible.machine=" + order["attemptId"]]
    for path in paths.of_job:
        command += ["--volume", "%s:%s" % (path, path)]
    command += ["--volume", "%s:%s:ro" % (paths.helper, paths.helper)]
    command += ["--workdir", paths.work, "--entrypoint", "sh"]
    command += ["--security-opt", "no-new-privileges", "--cap-drop", "ALL"]
    if os.getuid() != 0:
        command += ["--user", "%d:%d" % (os.getuid(), os.getgid())]
    else:
        for capability in _ROOT_CAPABILITIES:
            command += ["--cap-add", capability]
    if gpus is not None:
        command += ["--gpus", gpus]
    if order["shmGiB"] is not None:
        command += ["--shm-size", "%dm" % int(order["shmGiB"] * 1024)]
    for name in names:
        command += ["--env", name]
    return command + [order["image"], "-c", _SCRIPT, "crucible", order["setup"] or "", order["run"]]


def gpus_for_docker(has_gpus: bool, visible: Optional[str]) -> Optional[str]:
    """The GPUs of this machine in docker's words; `visible` is its CUDA_VISIBLE_DEVICES, where it has only some."""
    if not has_gpus or visible == "":
        return None
    return "all" if visible is None else '"device=%s"' % visible


def ask_to_stop(docker: str, name: str) -> None:
    """SIGTERM to what runs in the container. Does not wait: the caller watches the clock."""
    try:
        subprocess.Popen([docker, "exec", name, "sh", "-c", ASKING], **_QUIET)
    except OSError:
        pass


def remove_container(name: str, docker: Optional[str] = None) -> None:
    """Ends the container with all that runs in it; absent is success."""
    program = docker or shutil.which("docker")
    if program is not None:
        _call([program, "rm", "--force", name])


def is_own(pid: int) -> bool:
    """Whether a process is the engine's or the shell of `_SCRIPT`, rather than the command's."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return True
    return os.path.basename(words[0]).decode("utf-8", "replace") in _ENGINE or _SCRIPT.encode() in words


def forget_login(folder: str) -> None:
    """Removes what docker has kept of a login to a registry. Absent is success."""
    try:
        remove_tree(folder)
    except OSError:
        pass


def _call(command: List[str]) -> None:
    try:
        subprocess.run(command, timeout=_CALL_SECONDS, check=False, **_QUIET)
    except (OSError, subprocess.TimeoutExpired):
        pass

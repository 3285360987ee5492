"""Runs the commands in a container when the order names an image. Needs `docker` or a compatible program."""

import glob
import json
import os
import shutil
import subprocess
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..endings import Failed
from ..paths import Paths, remove_tree
from .machine_name import name_of_machine
from .processes import PASSING_ON, TELLING
from .shell import PLAIN, STRICT, with_wait

_CALL_SECONDS = 60.0
# Chips of AWS Neuron (Trainium, Inferentia).
_NEURON_DEVICES = "/dev/neuron*"
# The variables that the runner sets; job files and secrets cannot have such names.
_OWN_VARIABLES = "CRUCIBLE_"
# The engine's own processes, apart from the command: its client, its monitor and the first process of a container.
_ENGINE = {"docker", "podman", "conmon", "containerd-shim-runc-v2", "docker-init", "tini", "catatonit"}
# The capabilities that `apt-get` and `pip` need in a setup that runs as root in the container. None of them reaches outside the container:
# no raw sockets, no devices, no file capabilities, no mounts.
_ROOT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID")
_QUIET: Dict = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

# Programs that began this long before the end of the command are what it was for; `leftovers.py` has the rule. Clocks tick at 100 Hz.
_YOUNG_TICKS = 100

# Setup and run share one container, so that the packages that setup installs are present. The marks report the script's progress to the
# runner. The shell that runs the command may die of SIGTERM at once, while its program is still saving: the container ends only when no
# process is left.
_SCRIPT = """
control=$CRUCIBLE_CONTROL_DIR
: > "$control/began"
shell=$3
[ -n "$shell" ] || { command -v bash > /dev/null && shell='%s' || shell='%s'; }
variables=$4
execute() { set -- $shell -c "$1"; eval "$variables"; exec "$@"; }
if [ -n "$1" ]; then (execute "$1") || { code=$?; : > "$control/setup-failed"; exit $code; }; fi
: > "$control/setup-done"
trap 'stopped=1' TERM
(execute "$2") &
child=$!
wait $child; code=$?
while [ -n "$stopped" ] && kill -0 $child 2>/dev/null; do wait $child; code=$?; done
left() {
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" -gt 1 ] && [ "$pid" -ne $$ ] && read -r stat < "$process/stat" || continue
    set -- ${stat##*) }
    state=$1; of=$4; shift 19
    [ "$state" != Z ] && [ "$of" = "$session" ] && [ "$1" -lt "$now" ] && [ $((now - $1)) -le %d ] && return 0
  done 2>/dev/null
  return 1
}
if [ $code -eq 0 ]; then
  session=$(read -r stat < /proc/self/stat; set -- ${stat##*) }; echo $4)
  now=$(read -r stat < /proc/self/stat; set -- ${stat##*) }; shift 19; echo $1)
  while [ -z "$stopped" ] && left; do sleep 0.5; done
fi
while [ -n "$stopped" ] && kill -0 -1 2>/dev/null; do sleep 0.2; done
exit $code
""" % (STRICT, PLAIN, _YOUNG_TICKS)

# Does the work of `processes.ask_to_stop` for all processes of a container except the first, all at once. A shell that dies leaves exit
# code 143 in any case, which counts for little when checkpoints are judged.
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


def container_name(machine: str) -> str:
    return "crucible-" + machine


class Carried(NamedTuple):
    """Variables of a container, as they pass through the engine's programs."""

    variables: Dict[str, str]
    restore: str
    """Shell text that gives them their own names again."""


def carried(inside: Mapping[str, str]) -> Carried:
    """The engine's programs run on the machine itself with the runner's rights and take over variables by name. Names that a job chose, such
    as LD_PRELOAD or DOCKER_HOST, would direct them, so its variables have neutral names until the container runs."""
    result, lines = {}, []
    for at, (name, value) in enumerate(sorted(inside.items())):
        if name.startswith(_OWN_VARIABLES):
            result[name] = value
            continue
        neutral = "%sVARIABLE_%d" % (_OWN_VARIABLES, at)
        result[neutral] = value
        # A shell refuses to set some of its own variables, such as UID, and would otherwise end there.
        lines.append('command export %s="$%s" 2>/dev/null; unset %s' % (name, neutral, neutral))
    return Carried(result, "\n".join(lines))


def container_command(
    docker: str, order: dict, paths: Paths, inside: Carried, gpus: Optional[str]
) -> List[str]:
    """Builds the command that runs setup and run in the order's image. Variables are passed by name, so that no secret value appears on
    a command line. `gpus` is the GPU list in docker's format.

    The container sees only the job's own directories: the machine's keys, grants, runner and temporary files stay outside."""
    machine = name_of_machine(order["attemptId"], os.environ)
    command = [docker, "run", "--rm", "--init", "--name", container_name(machine)]
    command += ["--label", "crucible.machine=" + machine]
    for path in paths.of_job:
        command += ["--volume", "%s:%s" % (path, path)]
    command += ["--volume", "%s:%s:ro" % (paths.helper, paths.helper)]
    command += ["--workdir", paths.work, "--entrypoint", "sh"]
    command += ["--security-opt", "no-new-privileges", "--cap-drop", "ALL"]
    if os.getuid() != 0:
        command += ["--user", _own_user(docker)]
    else:
        for capability in _ROOT_CAPABILITIES:
            command += ["--cap-add", capability]
    if gpus is not None:
        command += ["--gpus", gpus]
    for device in sorted(glob.glob(_NEURON_DEVICES)):
        command += ["--device", device]
    if order["shmGiB"] is not None:
        command += ["--shm-size", "%dm" % int(order["shmGiB"] * 1024)]
    for name in sorted(inside.variables):
        command += ["--env", name]
    shell = order.get("shell")
    texts = [order["setup"] or "", with_wait(order["run"], shell), shell or "", inside.restore]
    return command + [order["image"], "-c", _SCRIPT, "crucible"] + texts


def _own_user(docker: str) -> str:
    """The user inside a container that is this user on the machine: root, if the engine itself runs without root (rootless Podman, rootless
    Docker). Every other user of such a container is a stranger to the job's directories."""
    own = "%d:%d" % (os.getuid(), os.getgid())
    try:
        told = subprocess.run(
            [docker, "info", "--format", "{{json .}}"],
            timeout=_CALL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ).stdout
        info = json.loads(told.decode("utf-8", "replace"))
        is_podman = "host" in info
        is_rootless = info["host"]["security"]["rootless"] if is_podman else "name=rootless" in info["SecurityOptions"]
    except (OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired):
        return own
    return "0:0" if is_rootless is True else own


def gpus_for_docker(has_gpus: bool, visible: Optional[str]) -> Optional[str]:
    """Returns the GPUs of this machine in docker's format; `visible` is its CUDA_VISIBLE_DEVICES, if it has only some of them."""
    if not has_gpus or visible == "":
        return None
    return "all" if visible is None else '"device=%s"' % visible


def ask_to_stop(docker: str, name: str) -> None:
    """Sends SIGTERM to the processes in the container. Does not wait: the caller watches the clock."""
    try:
        subprocess.Popen([docker, "exec", name, "sh", "-c", ASKING], **_QUIET)
    except OSError:
        pass


def remove_container(name: str, docker: Optional[str] = None) -> None:
    """Ends the container with all its processes; an absent container is success."""
    program = docker or shutil.which("docker")
    if program is not None:
        _call([program, "rm", "--force", name])


def is_own(pid: int) -> bool:
    """Whether a process belongs to the engine or is the shell of `_SCRIPT`, rather than the command's."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return True
    return os.path.basename(words[0]).decode("utf-8", "replace") in _ENGINE or _SCRIPT.encode() in words


def forget_login(folder: str) -> None:
    """Removes docker's stored login to a registry. An absent login is success."""
    try:
        remove_tree(folder)
    except OSError:
        pass


def _call(command: List[str]) -> None:
    try:
        subprocess.run(command, timeout=_CALL_SECONDS, check=False, **_QUIET)
    except (OSError, subprocess.TimeoutExpired):
        pass

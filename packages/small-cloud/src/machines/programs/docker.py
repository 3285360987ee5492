"""The `docker` of a machine: containers are processes in namespaces of their own, on a root that is made of this host's
programs, of nothing else of the machine, and of what they mount. Called with the folder of the machine's programs first."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from engine import commands, lifecycle  # noqa: E402
from engine.options import Options  # noqa: E402
from engine.world import DockerError, World  # noqa: E402

_NO_SERVER = (
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
    "(A host that lets its machines make no namespaces has no containers.)"
)

_COMMANDS = {
    "run": (lifecycle.run, lifecycle.RUN_OPTIONS),
    "exec": (lifecycle.execute, lifecycle.EXEC_OPTIONS),
    "stop": (lifecycle.stop, {"-t": "value", "--time": "value", "--timeout": "value"}),
    "kill": (lifecycle.kill, {"-s": "value", "--signal": "value"}),
    "rm": (lifecycle.remove, {"-f": "flag", "--force": "flag", "-v": "flag", "--volumes": "flag"}),
    "wait": (lifecycle.wait, {}),
    "ps": (commands.ps, commands.PS_OPTIONS),
    "logs": (commands.logs, {"--tail": "value", "-n": "value", "-f": "flag", "--follow": "flag"}),
    "inspect": (commands.inspect, {"-f": "value", "--format": "value", "--type": "value"}),
    "pull": (commands.pull, {"-q": "flag", "--quiet": "flag", "--platform": "value"}),
    "login": (commands.login, commands.LOGIN_OPTIONS),
    "logout": (commands.logout, {}),
    "images": (commands.images, {"-q": "flag", "--quiet": "flag", "--format": "value"}),
    "image inspect": (commands.image_inspect, {"-f": "value", "--format": "value"}),
    "image rm": (commands.image_remove, {"-f": "flag", "--force": "flag"}),
    "rmi": (commands.image_remove, {"-f": "flag", "--force": "flag"}),
    "version": (commands.version, {"-f": "value", "--format": "value"}),
    "info": (commands.info, {"-f": "value", "--format": "value"}),
}
_GROUPS = {"image": ("inspect", "rm", "pull"), "container": ("run", "exec", "stop", "kill", "rm", "inspect", "logs", "wait")}


def main(toolbox, arguments):
    world = World(toolbox)
    if arguments in (["--version"], ["-v"]):
        print("Docker version %s, build simulated" % commands.VERSION)
        return 0
    if arguments[:1] == [lifecycle.KEEP]:
        return lifecycle.keep(world, *arguments[1:])
    name, rest = _name(arguments)
    if name not in _COMMANDS:
        raise DockerError("docker: '%s' is not a docker command of this cloud's machines." % " ".join(arguments[:2]))
    if not world.is_isolated:
        raise DockerError(_NO_SERVER)
    command, known = _COMMANDS[name]
    # What follows an image or a container is the command's own.
    return command(world, Options(known, rest, stops_at_word=name in ("run", "exec"))) or 0


def _name(arguments):
    if len(arguments) > 1 and arguments[1] in _GROUPS.get(arguments[0], ()):
        joined = " ".join(arguments[:2])
        return (joined if joined in _COMMANDS else arguments[1]), arguments[2:]
    return (arguments[0] if arguments else ""), arguments[1:]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except DockerError as error:
        sys.stderr.write("%s\n" % error)
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(130)

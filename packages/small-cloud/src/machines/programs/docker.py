"""The `docker` of a machine. Containers are processes in their own namespaces; their root contains this host's programs and their mounts,
and nothing else of the machine. The first argument is the folder of the machine's programs."""

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
    "rm": (lifecycle.remove, {"-f": "flag", "--force": "flag"}),
    "ps": (commands.ps, commands.PS_OPTIONS),
    "logs": (commands.logs, {}),
    "inspect": (commands.inspect, {"-f": "value", "--format": "value"}),
    "pull": (commands.pull, {"-q": "flag", "--quiet": "flag"}),
    "login": (commands.login, commands.LOGIN_OPTIONS),
    "image inspect": (commands.image_inspect, {"-f": "value", "--format": "value"}),
}


def main(toolbox, arguments):
    world = World(toolbox)
    if arguments[:1] == [lifecycle.KEEP]:
        return lifecycle.keep(world, *arguments[1:])
    name, rest = _name(arguments)
    if name not in _COMMANDS:
        raise DockerError("docker: '%s' is not a docker command of this cloud's machines." % " ".join(arguments[:2]))
    if not world.is_isolated:
        raise DockerError(_NO_SERVER)
    command, known = _COMMANDS[name]
    # Words after an image or a container belong to the command.
    return command(world, Options(known, rest, stops_at_word=name in ("run", "exec"))) or 0


def _name(arguments):
    length = 2 if arguments[:1] == ["image"] else 1
    return " ".join(arguments[:length]), arguments[length:]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except DockerError as error:
        sys.stderr.write("%s\n" % error)
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(130)

"""The commands that start, enter and end containers."""

import os
import secrets
import signal
import sys
import time

from . import containers, inside
from .containers import LOOK_SECONDS, Container
from .world import DockerError, full_name

_VALUE = (
    "--name --label --volume -v --workdir --entrypoint --env --user --gpus --shm-size --security-opt --cap-add --cap-drop"
)
_FLAGS = "--rm --init --detach -d"
RUN_OPTIONS = dict([(name, "value") for name in _VALUE.split()] + [(name, "flag") for name in _FLAGS.split()])
EXEC_OPTIONS = {}

# The engine calls itself with this word to supervise a container.
KEEP = "keep-container"
_STOP_SECONDS = 10


def run(world, options):
    if not options.words:
        raise DockerError("'docker run' requires at least 1 argument", 125)
    image = options.words[0]
    if not world.has_image(image):
        sys.stderr.write("Unable to find image '%s' locally\n" % full_name(image))
        try:
            world.pull(image)
        except DockerError as error:
            raise DockerError("docker: %s" % error, 125) from None
    container = _create(world, options)
    is_detached = options.has("-d", "--detach")
    if not is_detached:
        container.update(client=os.getpid())
        # A program that sees the container's output may signal this process, which passes the signal on from `_follow` on.
        inside.hold_signals()
    _start(world, container)
    if is_detached:
        print(container.record["id"])
        return 0
    return _follow(container)


def _create(world, options):
    entrypoint = options.one("--entrypoint")
    argv = ([entrypoint] if entrypoint else []) + options.words[1:]
    _refuse(options.one("--user") not in (None, "0", "root", "0:0"), "containers here have no user but root")
    _refuse(not argv, "the images here have no command of their own: name one")
    has_gpus = options.one("--gpus") not in (None, "", "0")
    no_gpus = 'could not select device driver "" with capabilities: [[gpu]].'
    _refuse(has_gpus and world.gpu_count == 0, no_gpus)
    identity = secrets.token_hex(32)
    record = {
        "id": identity,
        "name": options.one("--name") or "simulated_" + identity[:8],
        "image": options.words[0],
        "labels": dict(text.partition("=")[::2] for text in options.all("--label")),
        "argv": argv,
        "env": _environment(options),
        "workdir": options.one("--workdir") or "/",
        "mounts": _mounts(options),
        "shm": options.one("--shm-size") or "64m",
        "hasInit": options.has("--init"),
        "hasGpus": has_gpus,
        "isRemoved": options.has("--rm"),
        "status": "created",
        "pid": 0,
        "exitCode": 0,
        "created": time.time(),
    }
    with world.locked():
        taken = containers.find(record["name"])
        words = 'Conflict. The container name "/%s" is already in use by container "%s".'
        _refuse(taken is not None, words % (record["name"], taken and taken.record["id"]))
        container = Container(record)
        os.makedirs(container.folder)
        for path in (container.stdout, container.stderr):
            open(path, "w").close()
        container.save()
    return container


def _refuse(is_wrong, message):
    if is_wrong:
        raise DockerError("docker: Error response from daemon: %s" % message, 125)


def _environment(options):
    """A name without a value takes the caller's value, if any."""
    given = {}
    for text in options.all("--env"):
        name, has_value, value = text.partition("=")
        if has_value or name in os.environ:
            given[name] = value if has_value else os.environ[name]
    return given


def _mounts(options):
    mounts = []
    for text in options.all("--volume", "-v"):
        source, _, rest = text.partition(":")
        target = rest.partition(":")[0]
        _refuse(not source.startswith("/") or not target.startswith("/"), "only folders can be mounted here: %s" % text)
        os.makedirs(source, exist_ok=True) if not os.path.exists(source) else None
        mounts.append([source, target])
    return mounts


def _start(world, container):
    """Starts the container below a process of the engine without a parent, and waits until it runs."""
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        # Executed again, so that its environment contains nothing of the caller's.
        os.set_inheritable(told, True)
        inside.release_signals()
        words = [world.toolbox, KEEP, container.record["id"], str(told)]
        os.execve(sys.executable, [sys.executable, "-IS", os.path.abspath(sys.argv[0])] + words, {"PATH": inside.PATH})
    os.wait()
    os.close(told)
    os.read(ready, 1)
    os.close(ready)


def keep(world, identity, told):
    """The supervisor process of a container."""
    return inside.keep(world, containers.get(identity), int(told))


def _follow(container):
    """Prints its output until it ends, and passes signals on. The container continues when this process is killed."""

    def forward(number, _frame):
        if container.reload() and container.is_running:
            _signal(container, number)

    for number in inside.FORWARDED:
        signal.signal(number, forward)
    inside.release_signals()
    with open(container.stdout, "rb") as output, open(container.stderr, "rb") as errors:
        status = None
        while status is None:
            if not container.reload():
                # The container was removed by force.
                status = 137
            elif container.record["status"] == "exited":
                status = container.record["exitCode"]
            _copy(output, sys.stdout.buffer)
            _copy(errors, sys.stderr.buffer)
            if status is None:
                time.sleep(LOOK_SECONDS)
    if container.record["isRemoved"]:
        container.delete()
    return status


def _copy(source, target):
    piece = source.read()
    if piece:
        target.write(piece)
        target.flush()


def _signal(container, number):
    try:
        os.kill(container.record["pid"], number)
    except ProcessLookupError:
        pass


def execute(_world, options):
    if len(options.words) < 2:
        raise DockerError("'docker exec' requires at least 2 arguments")
    container = containers.get(options.words[0])
    if not container.is_running:
        raise DockerError("Error response from daemon: container %s is not running" % container.record["id"])
    environment = inside.environment_of(container.record)
    return inside.enter(container.record["pid"], options.words[1:], container.record["workdir"], environment)


def stop(_world, options):
    seconds = options.one("-t", "--time", "--timeout")
    for word in options.words:
        container = containers.get(word)
        if container.is_running:
            _signal(container, signal.SIGTERM)
            if not container.wait(_STOP_SECONDS if seconds is None else float(seconds)):
                _signal(container, signal.SIGKILL)
                container.wait()
        print(word)


def remove(_world, options):
    is_forced = options.has("-f", "--force")
    for word in options.words:
        container = containers.find(word)
        if container is None:
            message = "Error response from daemon: No such container: %s" % word
            if not is_forced:
                raise DockerError(message)
            sys.stderr.write(message + "\n")
            continue
        if container.record["status"] != "exited":
            if not is_forced:
                raise DockerError(
                    "Error response from daemon: cannot remove container %s: container is running: "
                    "stop the container before removing or force remove" % word
                )
            _signal(container, signal.SIGKILL)
            container.wait()
        container.delete()
        print(word)

"""Namespaces and roots: how a process becomes a container, and how another process enters it."""

import ctypes
import os
import signal
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_IPC, _NEW_PIDS = 0x00020000, 0x08000000, 0x20000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18

PATH = "/image/gpu:/image/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The image's own folders, which are empty.
_OWN = ("/tmp", "/var", "/root", "/run", "/proc", "/dev", "/image")
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def hold_signals():
    """From now on the signals that are passed on wait, until `release_signals`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)


def release_signals():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)


def environment_of(record):
    return dict({"PATH": PATH, "HOME": "/root", "HOSTNAME": record["id"][:12]}, **record["env"])


def keep(world, container, told):
    """Runs as the container's supervisor: starts it, and keeps its record until it has ended."""
    for number in FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    _output_to(container)
    _call("unshare", _NEW_PIDS)
    gate, opened = os.pipe()
    first = os.fork()
    if first == 0:
        # The kernel drops signals without a handler of the first process of a container, so earlier ones wait for it.
        hold_signals()
        os.close(told)
        os.close(opened)
        os.read(gate, 1)
        _become(world, container)
    os.close(gate)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    container.update(pid=first, status="running")
    # No program that may read the record runs before it is complete.
    os.write(opened, b"1")
    os.close(opened)
    os.write(told, b"1")
    os.close(told)
    _, status = os.waitpid(first, 0)
    exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    container.update(status="exited", exitCode=exit_code)
    if container.record["isRemoved"] and not _has_client(container):
        container.delete()
    return 0


def _has_client(container):
    """Whether its caller still follows it, and will remove it."""
    try:
        os.kill(container.record["client"], 0)
    except (KeyError, ProcessLookupError):
        return False
    return True


def _output_to(container):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, path in ((1, container.stdout), (2, container.stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), descriptor)


def _become(world, container):
    """The first process of the container. Never returns."""
    record = container.record
    try:
        os.setsid()
        _call("unshare", _NEW_MOUNTS | _NEW_IPC)
        _mount(None, "/", None, _RECURSIVE | _PRIVATE)
        root = _make_root(world, container)
        os.chroot(root)
        os.makedirs(record["workdir"], exist_ok=True)
        os.chdir(record["workdir"])
    except OSError as error:
        _fail("docker: Error response from daemon: failed to create task: %s" % error, 125)
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)
    if record["hasInit"]:
        _run_below_init(record)
    release_signals()
    _execute(record["argv"], environment_of(record))


def _make_root(world, container):
    root = os.path.join(container.folder, "root")
    os.mkdir(root)
    _mount("tmpfs", root, "tmpfs", 0, "mode=755")
    targets = [target.rstrip("/") or "/" for _, target in container.record["mounts"]]
    opened = {"/"} | {parent for target in targets for parent in _parents(target)}
    _mirror("/", root, opened)
    for name, mode in (("tmp", 0o1777), ("root", 0o700), ("run", 0o755), ("var/tmp", 0o1777), ("proc", 0o555), ("dev", 0o755)):
        os.makedirs(os.path.join(root, name), exist_ok=True)
        os.chmod(os.path.join(root, name), mode)
    _mount("proc", os.path.join(root, "proc"), "proc")
    _mount("/dev", os.path.join(root, "dev"), None, _BIND | _RECURSIVE)
    _mount("tmpfs", os.path.join(root, "dev/shm"), "tmpfs", 0, "mode=1777,size=" + container.record["shm"].rstrip("bB"))
    _bind(os.path.join(world.toolbox, "programs"), root + "/image/bin")
    if container.record["hasGpus"]:
        _bind(os.path.join(world.toolbox, "lib"), root + world.toolbox + "/lib")
        _bind(os.path.join(world.toolbox, "gpu"), root + world.toolbox + "/gpu")
        _bind(os.path.join(world.toolbox, "bin/nvidia-smi"), root + "/image/gpu/nvidia-smi")
    for source, target in container.record["mounts"]:
        _bind(source, root + target)
    return root


def _parents(path):
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _mirror(folder, root, opened):
    """Mounts the content of a host folder; folders in `opened` entry by entry, so that more can be mounted into them."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        place = root + path
        if path in _OWN:
            continue
        try:
            if os.path.islink(path):
                os.symlink(os.readlink(path), place)
            elif path in opened:
                os.mkdir(place)
                _mirror(path, root, opened)
            elif os.path.isdir(path):
                os.mkdir(place)
                _mount(path, place, None, _BIND | _RECURSIVE)
            elif os.path.isfile(path):
                _bind(path, place)
        except PermissionError:
            # Files that the machine's user cannot see are not in its containers.
            continue


def _bind(source, place):
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        open(place, "a").close()
    _mount(source, place, None, _BIND | _RECURSIVE)


def _run_below_init(record):
    """The init process of `--init`: it passes signals on, collects orphans, and ends with its child's status."""
    child = os.fork()
    if child == 0:
        os.setsid()
        release_signals()
        _execute(record["argv"], environment_of(record))
    for number in FORWARDED:
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    release_signals()
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def enter(pid, argv, workdir, environment):
    """Runs a command in a container and returns its status."""
    root = os.open("/proc/%d/root" % pid, os.O_RDONLY)
    spaces = [os.open("/proc/%d/ns/%s" % (pid, name), os.O_RDONLY) for name in ("ipc", "pid", "mnt")]
    for space in spaces:
        _call("setns", space, 0)
    os.fchdir(root)
    os.chroot(".")
    child = os.fork()
    if child == 0:
        try:
            os.chdir(workdir)
        except OSError as error:
            _fail("OCI runtime exec failed: chdir to cwd: %s" % error, 126)
        _execute(argv, environment)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _execute(argv, environment):
    try:
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError:
        _fail('exec: "%s": executable file not found in $PATH' % argv[0], 127)
    except OSError as error:
        _fail('exec: "%s": %s' % (argv[0], error.strerror), 126)


def _fail(message, status):
    sys.stderr.write(message + "\n")
    sys.stderr.flush()
    os._exit(status)


def _mount(source, target, kind, flags=0, data=None):
    def text(value):
        return None if value is None else os.fsencode(value)

    _call("mount", text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data), about=target)


def _call(name, *arguments, about=None):
    if getattr(_LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about or name)

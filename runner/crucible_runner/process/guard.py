"""The guard: waits for the runner to end in any way, and then ends the machine's remaining processes."""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from typing import Callable, List, NamedTuple, Optional

from ..notices import file as notice_file
from ..paths import Paths
from . import cgroup, job_root, processes
from .container import forget_login, remove_container

_NOTICE_LOOK_SECONDS = 0.1
_READ_BYTES = 65536
_PASSED_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Options(NamedTuple):
    """The arguments of `run`."""

    store: str
    job: str
    attempt: int
    root: str
    secret_key_file: Optional[str]
    grant_file: Optional[str]
    power_off: Optional[str]
    notice_file: Optional[str]
    has_notice_kill: bool
    user: Optional[int] = None
    """The user of the job's commands; None for the runner's own user."""
    job_root: Optional[str] = None

    @property
    def attempt_id(self) -> str:
        return "%s-%d" % (self.job, self.attempt)


class Post(NamedTuple):
    """The runner's access to its guard."""

    guard: int
    lock: int
    group: Optional[str]
    """The control group of the runner's child processes, if one can be created."""
    tell: Callable[[dict], None]
    """Reports to the guard: the order's `notice` file, a `container` that the guard may have to end, or that the attempt is `foreign`,
    which means that it belongs to another machine."""


def run_guarded(options: Options, run: Callable[[Options, Post], int], arguments: List[str]) -> int:
    """Runs `run` in a separate process and ends everything after it. Returns at once when the machine has a runner."""
    _carry_the_machine(options.attempt_id, arguments)
    try:
        lock = _take_lock(options.root)
    except BlockingIOError:
        print("another runner is already running in %s" % options.root, file=sys.stderr)
        return 0
    except OSError as error:
        print("the machine's directory %s cannot be used: %s" % (options.root, error), file=sys.stderr)
        # The directory may have been usable when another runner began there.
        if not processes.of_machine(options.attempt_id, [], [os.getppid()]):
            power_off(options.power_off)
        return 1
    try:
        # The lock stays open in guard and runner. The workload ends with them, or the next attempt ends it.
        if options.job_root is not None:
            job_root.take(os.path.abspath(options.job_root), options.attempt_id)
    except (job_root.InUse, OSError) as error:
        print("the job's directory %s cannot be used: %s" % (options.job_root, error), file=sys.stderr)
        power_off(options.power_off)
        return 1
    group = cgroup.make(options.attempt_id, Paths(options.root).group)
    if group is not None:
        processes.also_in(options.attempt_id, group)
    processes.become_subreaper()
    listen, speak = os.pipe()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(listen)
        code = 1
        try:
            code = run(options, Post(guard, lock, group, lambda note: _tell(speak, note)))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            # Threads may hang in a store that does not answer; they must not keep the machine running.
            os._exit(code)
    os.close(speak)
    return Guard(options, child, listen, group).wait()


def _take_lock(root: str) -> int:
    """Takes the one lock for guard, runner and leash: it is free only when none of them is left to end processes. Raises `BlockingIOError`
    when another runner holds it."""
    os.makedirs(root, exist_ok=True)
    lock = os.open(os.path.join(root, "runner.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


class Guard:
    def __init__(self, options: Options, runner: int, notes: int, group: Optional[str]) -> None:
        self._group = group
        self._options = options
        self._runner = runner
        self._notes = notes
        self._is_told_all = False
        self._container: Optional[str] = None
        self._is_foreign = False
        self._notice = options.notice_file

    def wait(self) -> int:
        """Returns the runner's exit code when no process of the machine is left."""
        wakeup, wake = os.pipe()
        for descriptor in (wakeup, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in _PASSED_SIGNALS:
            signal.signal(number, self._pass_on)
        code = self._runner_code()
        while code is None:
            sources = [wakeup] if self._is_told_all else [wakeup, self._notes]
            has_to_look = self._options.has_notice_kill and self._notice is not None
            ready, _, _ = select.select(sources, [], [], _NOTICE_LOOK_SECONDS if has_to_look else None)
            if wakeup in ready:
                os.read(wakeup, _READ_BYTES)
            if self._notes in ready:
                self._read_notes()
            if has_to_look and self._is_taken_back():
                return self._end_as_provider()
            code = self._runner_code()
        while not self._is_told_all:
            self._read_notes()
        self._end_all()
        power_off(self._options.power_off)
        return code

    def _pass_on(self, number: int, _frame: object) -> None:
        try:
            os.kill(self._runner, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def _runner_code(self) -> Optional[int]:
        for pid, status in processes.reap():
            if pid == self._runner:
                return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        return None

    def _read_notes(self) -> None:
        notes = os.read(self._notes, _READ_BYTES)
        self._is_told_all = notes == b""
        for line in notes.splitlines():
            note = json.loads(line.decode("utf-8"))
            self._container = note.get("container", self._container)
            self._notice = note.get("notice", self._notice)
            self._is_foreign = note.get("foreign", self._is_foreign)

    def _is_taken_back(self) -> bool:
        try:
            terminate_at_ms = notice_file.open_source({"path": self._notice})()
        except OSError:
            return False
        return terminate_at_ms is not None and time.time() * 1000 >= terminate_at_ms

    def _end_as_provider(self) -> int:
        os.kill(self._runner, signal.SIGKILL)
        self._end_all()
        return 128 + signal.SIGKILL

    def _end_all(self) -> None:
        if self._is_foreign:
            return  # nothing was started, and the machine that works on the attempt may run on this same computer
        if self._container is not None:
            remove_container(self._container)
            forget_login(Paths(self._options.root).login)
        left = processes.end_all(self._options.attempt_id, [os.getpid()], [])
        Paths(self._options.root, self._options.job_root).forget_short_scratch()
        if self._group is not None:
            cgroup.remove(self._group)
        if left:
            print("processes that cannot be ended: %s" % sorted(left), file=sys.stderr)


def power_off(command: Optional[str]) -> None:
    if command is not None:
        subprocess.call(["sh", "-c", command])


def _tell(speak: int, note: dict) -> None:
    try:
        os.write(speak, json.dumps(note).encode("utf-8") + b"\n")
    except OSError:
        pass  # the guard is dead


def _carry_the_machine(machine: str, arguments: List[str]) -> None:
    """Ensures that this process and all its descendants can be found by their environment."""
    if os.environ.get(processes.MACHINE_VARIABLE) != machine:
        os.environ[processes.MACHINE_VARIABLE] = machine
        os.execv(sys.executable, [sys.executable, "-IS"] + arguments)

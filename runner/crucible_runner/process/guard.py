"""The guard: waits for the runner or its timekeeper to end in any way, and then ends the machine's remaining processes."""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from typing import Callable, List, NamedTuple, Optional

from ..clock import Clock
from ..dates import Dates, WrittenDate
from ..line import Line
from ..notices import file as notice_file
from ..paths import Paths
from . import cgroup, job_root, processes
from .container import forget_login, remove_container
from .machine_name import MACHINE_VARIABLE, name_of_machine

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

    @property
    def machine(self) -> str:
        """The name under which the machine's processes, control group and container are found on this host."""
        return name_of_machine(self.attempt_id, os.environ)


class Post(NamedTuple):
    """The runner's access to its guard."""

    guard: int
    lock: int
    group: Optional[str]
    """The control group of the runner's child processes, if one can be created."""
    timekeeper: int
    """The process next to the runner that keeps its time."""
    line: Line
    """The connection between the two."""
    tell_guard: Callable[[dict], None]
    """Reports to the guard: the order's `notice` file, a `container` that the guard may have to end, that the attempt is `foreign`, which
    means that it belongs to another machine, or that its time is `over`."""

    @property
    def keep(self) -> List[int]:
        """The processes of the machine that are not the runner's to end."""
        return [self.guard, self.timekeeper]

    def tell(self, note: dict) -> None:
        """Reports to guard and timekeeper, from the runner."""
        self.tell_guard(note)
        try:
            self.line.send(note)
        except OSError:
            pass  # the timekeeper is dead


class Work(NamedTuple):
    """The programs of the guard's two processes. Each returns its exit code."""

    run: Callable[[Options, Post], int]
    keep_time: Callable[[Options, Post], int]


def run_guarded(options: Options, work: Work, arguments: List[str]) -> int:
    """Does the work in separate processes and ends everything after it. Returns at once when the machine has a runner."""
    _carry_the_machine(options.machine, arguments)
    try:
        lock = _take_lock(options.root)
    except BlockingIOError:
        print("another runner is already running in %s" % options.root, file=sys.stderr)
        return 0
    except OSError as error:
        print("the machine's directory %s cannot be used: %s" % (options.root, error), file=sys.stderr)
        # The directory may have been usable when another runner began there.
        if not processes.of_machine(options.machine, [], [os.getppid()]):
            power_off(options.power_off)
        return 1
    try:
        # The lock stays open in guard and runner. The workload ends with them, or the next attempt ends it.
        if options.job_root is not None:
            job_root.take(os.path.abspath(options.job_root), options.machine)
    except (job_root.InUse, OSError) as error:
        print("the job's directory %s cannot be used: %s" % (options.job_root, error), file=sys.stderr)
        power_off(options.power_off)
        return 1
    group = cgroup.make(options.machine, Paths(options.root).group)
    if group is not None:
        processes.also_in(options.machine, group)
    processes.become_subreaper()
    listen, speak = os.pipe()
    ours, theirs = map(Line, socket.socketpair())
    tell = lambda note: _tell(speak, note)  # noqa: E731
    post = Post(os.getpid(), lock, group, 0, theirs, tell)
    timekeeper = _fork(lambda: work.keep_time(options, post), listen, ours)
    post = post._replace(timekeeper=timekeeper, line=ours)
    runner = _fork(lambda: work.run(options, post), listen, theirs)
    os.close(speak)
    ours.close()
    theirs.close()
    return Guard(options, Children(runner, timekeeper), listen, group).wait()


def _fork(run: Callable[[], int], listen: int, other: Line) -> int:
    """Runs something in a process that holds neither the guard's end of its pipe nor the `other` end of the line. Returns its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(listen)
            other.close()
            code = run()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            # Threads may hang in a store that does not answer; they must not keep the machine running.
            os._exit(code)
    return child


def _take_lock(root: str) -> int:
    """Takes the one lock for guard, runner and leash: it is free only when none of them is left to end processes. Raises `BlockingIOError`
    when another runner holds it."""
    os.makedirs(root, exist_ok=True)
    lock = os.open(os.path.join(root, "runner.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


class Children(NamedTuple):
    runner: int
    timekeeper: int


class Guard:
    def __init__(
        self, options: Options, children: Children, notes: int, group: Optional[str], clock: Optional[Clock] = None
    ) -> None:
        self._clock = clock or Clock()
        self._taken: Optional[WrittenDate] = None
        """The notice of the machine's end, converted when it was first seen."""
        self._group = group
        self._options = options
        self._children = children
        self._is_over = False
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
                return self._end_now()
            code = self._runner_code()
            if code is None and self._is_over:
                code = self._end_now()
                power_off(self._options.power_off)
                return code
        processes.send(self._children.timekeeper, signal.SIGKILL)
        while not self._is_told_all:
            self._read_notes()
        self._end_all()
        power_off(self._options.power_off)
        return code

    def _pass_on(self, number: int, _frame: object) -> None:
        for pid in self._children:
            processes.send(pid, signal.SIGTERM)

    def _runner_code(self) -> Optional[int]:
        """Returns the exit code of a runner that has ended. The attempt is over when only the timekeeper has ended."""
        ended = dict(processes.reap())
        status = ended.get(self._children.runner)
        if status is not None:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        if self._children.timekeeper in ended:
            print("the timekeeper has ended: ending the machine", file=sys.stderr, flush=True)
            self._is_over = True
        return None

    def _read_notes(self) -> None:
        notes = os.read(self._notes, _READ_BYTES)
        self._is_told_all = notes == b""
        for line in notes.splitlines():
            note = json.loads(line.decode("utf-8"))
            self._container = note.get("container", self._container)
            self._notice = note.get("notice", self._notice)
            self._is_foreign = note.get("foreign", self._is_foreign)
            self._is_over = note.get("over", self._is_over)

    def _is_taken_back(self) -> bool:
        try:
            terminate_at_ms = notice_file.open_source({"path": self._notice})()
        except OSError:
            return False
        if terminate_at_ms is None:
            return False
        if self._taken is None or self._taken.at_ms != terminate_at_ms:
            self._taken = Dates(self._clock).read(terminate_at_ms)
        return self._clock.mono_ms() >= self._taken.mono_ms()

    def _end_now(self) -> int:
        for pid in self._children:
            processes.send(pid, signal.SIGKILL)
        self._end_all()
        return 128 + signal.SIGKILL

    def _end_all(self) -> None:
        if self._is_foreign:
            return  # nothing was started, and the machine that works on the attempt may run on this same computer
        if self._container is not None:
            remove_container(self._container)
            forget_login(Paths(self._options.root).login)
        left = processes.end_all(self._options.machine, [os.getpid()], [])
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
    if os.environ.get(MACHINE_VARIABLE) != machine:
        os.environ[MACHINE_VARIABLE] = machine
        os.execv(sys.executable, [sys.executable, "-IS"] + arguments)

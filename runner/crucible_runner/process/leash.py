"""Supervises the workload: a small process between the runner and one command.

When the command has ended, it ends everything that the command left running; when the runner dies, which closes its standard input, it
ends everything at once. It ends like the command: with the same exit code, or by the same signal.
"""

import os
import resource
import select
import signal
import sys
from typing import Dict, List, NamedTuple, Optional, Set

from . import cgroup, processes, user
from .container import remove_container
from .leftovers import Leftovers

_SESSION_LOOK_SECONDS = 0.1
# Between checks of the processes that a command has left in the background.
_LEFTOVERS_LOOK_SECONDS = 0.5
# Number of checks that may find only programs that pass on the output of others, once all of those have ended. A pipe held open by a
# process elsewhere may keep such a program alive.
_PASSING_ON_LOOKS = 20
_READ_BYTES = 4096
# Exit codes of a program that saved and stopped because it was asked to: 128 + SIGTERM, 128 + SIGINT, and success.
GOOD_ORDER = (0, 128 + signal.SIGTERM, 128 + signal.SIGINT)
# Signal settings that this process or Python itself has changed, and that children would inherit.
_RESET = (
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)


class Place(NamedTuple):
    """The directory and the user of the command."""

    group: Optional[str] = None
    """A control group."""
    user: Optional[int] = None
    environment: Optional[Dict[str, str]] = None
    """None for the environment of this process."""
    waits: bool = False
    """Whether the command lasts as long as the programs that it leaves at work in the background."""


class Leash:
    def __init__(self, machine: str, keep: List[int], container: Optional[str], place: Place = Place()) -> None:
        self._place = place
        self._machine = machine
        self._keep = keep
        self._runner = os.getppid()
        self._container = container
        self._is_asked_to_stop = False
        self._is_told = False
        self._looks_left = _PASSING_ON_LOOKS
        self._child = 0
        self._status: Optional[int] = None
        self._listening: Set[int] = set()
        self._orphans: Dict[int, int] = {}
        self._leftovers: Optional[Leftovers] = None

    def hold(self, command: List[str]) -> int:
        """Runs the command to its end. Returns its wait status."""
        wakeup, self._wake = os.pipe()
        for descriptor in (wakeup, self._wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        processes.become_subreaper()
        # A signal that arrives before the child's pid is known must not be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self._child = _spawn(command, self._place)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        while not self._is_over():
            timeout = None if self._status is None else self._look_seconds()
            ready, _, _ = select.select([0, wakeup], [], [], timeout)
            if wakeup in ready:
                os.read(wakeup, _READ_BYTES)
            if 0 in ready and os.read(0, _READ_BYTES) == b"":
                self._end_everything()
            self._collect()
            if self._is_asked_to_stop and not self._is_told:
                self._is_told = True
                self._tell()
        # A process that has ended since, and so ended the waiting, has a status too.
        self._collect()
        processes.end_all(self._machine, [os.getpid(), self._child], [*self._keep, self._runner])
        return self._worst_status()

    def _look_seconds(self) -> float:
        return _SESSION_LOOK_SECONDS if self._is_asked_to_stop else _LEFTOVERS_LOOK_SECONDS

    def _on_sigterm(self, *_: object) -> None:
        self._is_asked_to_stop = True

    def _tell(self) -> None:
        # Programs that were left in the background may have sessions of their own.
        session = {process.pid for process in processes.of_session(self._child)}
        for pid in (self._leftovers.at_work() if self._leftovers else set()) - session:
            processes.send(pid, signal.SIGTERM)
        listening = processes.ask_to_stop(self._child)
        if listening is not None:
            self._listening = listening
        elif self._status is None:
            os.kill(self._child, signal.SIGTERM)  # The child is still in our session.

    def _collect(self) -> None:
        for pid, status in processes.reap():
            if pid == self._child:
                self._status = status
            else:
                self._orphans[pid] = status

    def _is_over(self) -> bool:
        if self._status is None:
            return False
        if not self._is_asked_to_stop:
            return self._status != 0 or not self._place.waits or not self._has_leftovers()
        # A shell dies of the signal at once, while the program that it started is still saving.
        if self._leftovers and self._leftovers.at_work():
            return False
        left = processes.of_session(self._child)
        if not all(processes.is_passing_on(process) for process in left):
            return False
        self._looks_left -= 1
        return not left or self._looks_left <= 0

    def _has_leftovers(self) -> bool:
        """Whether the successful command has left programs that are still at work."""
        is_first = self._leftovers is None
        if self._leftovers is None:
            self._leftovers = Leftovers(os.getpid())
        at_work = self._leftovers.at_work()
        if at_work and is_first:
            _say("the command has ended, but left %s running: waiting" % self._leftovers.names_of(at_work))
        return bool(at_work)

    def _end_everything(self) -> None:
        """The runner is dead. Its guard may be dead too."""
        if self._container is not None:
            remove_container(self._container)
        processes.end_all(self._machine, [os.getpid(), self._child], self._keep)
        os._exit(1)

    def _worst_status(self) -> int:
        """Returns the command's own status; when the signal that we passed on ended its shell, the status of the shell's children."""
        status = self._status
        assert status is not None
        awaited = [self._orphans.get(pid, 0) for pid in sorted(self._leftovers.awaited)] if self._leftovers else []
        failed = next((end for end in awaited if end != 0), 0)
        if failed:
            if not self._is_asked_to_stop:
                _say("a program that the command had left running has failed: its status counts")
            return failed
        if not (self._is_asked_to_stop and _is_killed_by(status, signal.SIGTERM)):
            return status
        ended = {pid: end for pid, end in self._orphans.items() if not _is_killed_by(end, signal.SIGTERM)}
        bad = [end for end in ended.values() if os.WIFSIGNALED(end) or os.WEXITSTATUS(end) not in GOOD_ORDER]
        if bad:
            return bad[0]
        # A process that would die of the signal but ends with 0, such as a finished sleep, has not received it.
        return max((end for pid, end in ended.items() if end or pid in self._listening), default=status)


def _say(words: str) -> None:
    sys.stderr.write("crucible: %s\n" % words)
    sys.stderr.flush()


def _is_killed_by(status: int, number: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == number


def _spawn(command: List[str], place: Place) -> int:
    environment = dict(os.environ) if place.environment is None else place.environment
    leash = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if place.group is not None:
                cgroup.enter(place.group)
            if place.user is not None:
                _become(place.user, environment)
            # The setting follows the change of user, which resets it.
            processes.die_with_parent(leash)
            signal.set_wakeup_fd(-1)
            for number in _RESET:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.execvpe(command[0], command, environment)
        except OSError as error:
            sys.stderr.write("cannot start %s: %s\n" % (command[0], error))
            sys.stderr.flush()
        finally:
            os._exit(127)
    return child


def _become(number: int, environment: Dict[str, str]) -> None:
    # Opening /dev/stdout or /dev/stderr requires permission, even though the descriptors are already open.
    for descriptor in (1, 2):
        os.fchown(descriptor, number, number)
    user.become(number, user.groups_of_devices(environment))


def main(arguments: List[str]) -> int:
    """`leash MACHINE KEEP LOCK CONTAINER GROUP WAITS USER COMMAND...`. KEEP are guard and timekeeper, with a comma. LOCK is the descriptor of the machine's lock, held while processes may
    still have to be ended here. CONTAINER and GROUP (a control group) are empty if the machine has none. WAITS is empty unless
    programs in the background are waited for. USER is empty, or `UID:DESCRIPTOR`: the command's user, and the file with its environment."""
    machine, lock, container = arguments[0], int(arguments[2]), arguments[3]
    keep = [int(pid) for pid in arguments[1].split(",")]
    os.set_inheritable(lock, False)
    group = arguments[4]
    if group:
        processes.also_in(machine, group)
    number, _, file = arguments[6].partition(":")
    place = Place(group or None, waits=bool(arguments[5]))
    if number:
        place = place._replace(user=int(number), environment=user.read_environment(int(file)))
    leash = Leash(machine, keep, container or None, place)
    status = leash.hold(arguments[7:])
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + number
    return os.WEXITSTATUS(status)

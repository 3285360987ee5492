"""One command of the order while it runs: its processes, its output, its end."""

import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from typing import Callable, Deque, List, Mapping, NamedTuple, Optional

from .. import PROGRAM
from ..logs.book import LogBook
from ..logs.lines import LineSplitter
from ..progress import Progress
from . import container, processes
from .user import environment_file

_READ_BYTES = 64 * 1024
_LINES_KEPT = 200
_LINE_KEPT_BYTES = 1_000
_BAR_LOOK_MS = 1_000
# An engine that needs longer to end a container delays neither the end of the processes that can be ended without it, nor the result.
_ENGINE_SECONDS = 3.0
# Output of the last process may take this long to arrive through a pipe after the process has ended.
_OUTPUT_SECONDS = 5.0


class Machine(NamedTuple):
    """The facts that a command needs about its machine."""

    name: str
    guard: int
    timekeeper: int
    lock: int
    group: Optional[str] = None
    user: Optional[int] = None
    """The user of its commands; None for the runner's own user."""
    waits: bool = False
    """Whether the command lasts as long as the programs that it leaves at work in the background."""


class Sink(NamedTuple):
    """Where the command's output goes."""

    book: LogBook
    progress: Progress
    see: Callable[[List[bytes]], None]
    """Gets all lines, too."""


class Workload:
    """A command that has been started. `ended` is set when it and all its descendants are gone."""

    def __init__(self, machine: Machine, sink: Sink, docker: Optional[str] = None) -> None:
        self._machine = machine
        self._sink = sink
        self._docker = docker
        self._container = container.container_name(machine.name) if docker else None
        self.ended = threading.Event()
        self._leash: Optional["subprocess.Popen[bytes]"] = None
        self.is_asked_to_stop = False
        self.is_killed = False
        self.error_lines: Deque[str] = deque(maxlen=_LINES_KEPT)
        self.lines: Deque[str] = deque(maxlen=_LINES_KEPT)
        """The last lines of both outputs."""

    def start(self, command: List[str], environment: Mapping[str, str], folder: str) -> None:
        """Raises `OSError` when the system cannot start a process."""
        leash = [
            sys.executable,
            "-IS",
            PROGRAM,
            "leash",
            self._machine.name,
            ",".join(map(str, self._keep)),
        ]
        leash += [str(self._machine.lock), self._container or "", self._machine.group or ""]
        leash += ["waits" if self._machine.waits else ""]
        files, user = [self._machine.lock], ""
        if self._machine.user is not None:
            # The leash is root, and runs in the runner's environment.
            files.append(environment_file(environment))
            user, environment = "%d:%d" % (self._machine.user, files[1]), os.environ
        try:
            self._leash = self._start_leash(leash + [user] + command, environment, folder, files)
        finally:
            for file in files[1:]:
                os.close(file)
        self._readers = [
            threading.Thread(target=self._read, args=("out", self._leash.stdout), name="out", daemon=True),
            threading.Thread(target=self._read, args=("err", self._leash.stderr), name="err", daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        threading.Thread(target=self._wait, name="wait", daemon=True).start()

    @staticmethod
    def _start_leash(
        arguments: List[str], environment: Mapping[str, str], folder: str, files: List[int]
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
            pass_fds=files,
        )

    @property
    def status(self) -> int:
        """Returns, once ended, the exit code, or the number of the signal that ended it, negative."""
        code = self._leash.returncode if self._leash is not None else None
        return code if code is not None else -signal.SIGKILL

    def ask_to_stop(self) -> None:
        """Sends SIGTERM to the process group of the command."""
        self.is_asked_to_stop = True
        if self._container is not None and self._docker is not None:
            container.ask_to_stop(self._docker, self._container)
        else:
            self._leash.terminate()

    def ask_to_save(self, number: int) -> None:
        """Sends the program's save signal to all its processes that have a handler for it: other processes would die of it."""
        for pid in self._programs():
            if processes.catches(pid, number):
                processes.send(pid, number)

    def handles_request_to_stop(self) -> bool:
        """Whether some program of the command survives SIGTERM. True when the system does not report it."""
        programs = self._programs()
        return not programs or any(not processes.dies_of_sigterm(pid) for pid in programs)

    def _programs(self) -> List[int]:
        leash = self._leash.pid if self._leash is not None else -1
        return [pid for pid in self.processes() if pid != leash and not container.is_own(pid)]

    def kill(self) -> None:
        """Ends the command and all its descendants."""
        self.is_killed = True
        if self._container is not None:
            words = (self._container, self._docker)
            removal = threading.Thread(target=container.remove_container, args=words, name="removal", daemon=True)
            removal.start()
            removal.join(_ENGINE_SECONDS)
        processes.end_all(self._machine.name, self._roots(), self._keep)

    def processes(self) -> List[int]:
        """Returns all running processes of the command."""
        if self._leash is None:
            return []
        return list(processes.of_machine(self._machine.name, self._roots(), self._keep))

    @property
    def _keep(self) -> List[int]:
        return [self._machine.guard, self._machine.timekeeper]

    def _roots(self) -> List[int]:
        """Returns the processes whose descendants belong to the command. Orphans become children of the guard while the guard lives."""
        guard = [self._machine.guard] if os.getppid() == self._machine.guard else []
        return guard + ([self._leash.pid] if self._leash is not None else [])

    def _wait(self) -> None:
        self._leash.wait()
        # When the leash itself was killed, its processes still exist.
        processes.end_all(self._machine.name, self._roots(), self._keep)
        for reader in self._readers:
            reader.join(_OUTPUT_SECONDS)
        self.ended.set()

    def _read(self, name: str, stream) -> None:
        book, progress, see = self._sink
        splitter = LineSplitter(lambda: book.redactor)
        descriptor = stream.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            # A bar that stops changing also becomes a line when it is due.
            if splitter.is_waiting and not poll.poll(_BAR_LOOK_MS):
                book.add(name, splitter.tick(book.now_ms()))
                continue
            data = os.read(descriptor, _READ_BYTES)
            try:
                lines = splitter.feed(data, book.now_ms()) if data else splitter.end()
                book.add(name, lines)
                progress.see(splitter.writings)
                see(lines)
                kept = [line[:_LINE_KEPT_BYTES].decode("utf-8", "replace") for line in lines[-_LINES_KEPT:]]
                self.lines.extend(kept)
                if name == "err":
                    self.error_lines.extend(kept)
            except Exception:
                traceback.print_exc()  # the command must never block because its output is not read
            if not data:
                return

"""The machine's own directory."""

import errno
import os
import shutil
import stat
import sys
from typing import List, Optional, Tuple

# Far more than anybody has to say in a file of `control/`.
_PLAIN_BYTES_MAX = 64 * 1024


class Paths:
    """Everything that the runner keeps under its root."""

    def __init__(self, root: str, job_root: Optional[str] = None) -> None:
        """`job_root` is another directory for all that the workload may reach, where that is another user's."""
        self.root = os.path.abspath(root)
        self._job_root = self.root if job_root is None else os.path.abspath(job_root)
        self.lock = self._at("runner.lock")
        self.log = self._at("runner.log")
        self.group = self._at("cgroup")
        self.memory = self._at("runner.json")
        self.machine_id = self._at("machine-id")
        self.send_name = self._at("send-name")
        self.drain = self._at("drain.json")
        self.work = self._of_job("work")
        self.output = self._of_job("output")
        self.checkpoints = self._of_job("checkpoints")
        self.control = self._of_job("control")
        self.saved = self._of_job("control/saved")
        self.progress = self._of_job("control/progress.json")
        self.stop = self._of_job("control/stop.json")
        self.save = self._of_job("control/save.json")
        self.helper = self._of_job("helper")
        self.bin = self._of_job("bin")
        self.home = self._of_job("home")
        self.scratch = self._of_job("scratch")
        self.tmp = self._at("tmp")
        # On the disk of the job: what is here is renamed or linked from and to its directories.
        self.near = self._of_job("tmp")
        self.staging = self._of_job("tmp/staging")
        self.held = self._of_job("tmp/held")
        self.restoring = self._of_job("tmp/restoring")
        self.logs = self._at("tmp/logs")
        self.login = self._at("tmp/login")

    @property
    def of_job(self) -> Tuple[str, ...]:
        """The directories that a container gets to write in."""
        return (self.work, self.output, self.checkpoints, self.control)

    @property
    def for_user(self) -> Tuple[str, ...]:
        """The directories that a user of the job's own gets."""
        return (*self.of_job, self.helper, self.bin, self.home, self.scratch)

    def _at(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))

    def _of_job(self, name: str) -> str:
        return os.path.join(self._job_root, *name.split("/"))

    def make(self) -> None:
        """Makes all directories; what a runner before this one left of an unfinished start is removed, but for log lines."""
        for path in (self.work, self.output, self.checkpoints, self.control, self.helper, self.bin):
            remove_tree(path)
            os.makedirs(path)
        for path in (self.staging, self.held, self.restoring):
            remove_tree(path)
        remove_tree(self.login)
        os.makedirs(self.saved)
        os.makedirs(self.logs, exist_ok=True)
        if self._job_root != self.root:
            self._make_for_user()

    def _make_for_user(self) -> None:
        """The job's user gets through the directory to its own, sees no other name in it, and reaches no file of the runner."""
        for path in (self.home, self.scratch, self.near):
            remove_tree(path)
            os.makedirs(path)
        for path in (*self.for_user, self.near):
            os.chmod(path, 0o700)
        os.chmod(self._job_root, 0o711)


def remove_tree(path: str) -> None:
    """Removes a directory with its content, also what its owner has made read-only, or whatever stands in its place; of
    a link to a directory only the link. Absent is success."""

    def on_error(remove, inner: str, _info) -> None:
        try:
            os.chmod(os.path.dirname(inner), 0o700)
            os.chmod(inner, 0o700)
            remove(inner)
        except FileNotFoundError:
            pass

    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
    else:
        # The one name is deprecated, the other is not there before 3.12; what is passed third is not used here.
        shutil.rmtree(path, **{"onexc" if sys.version_info >= (3, 12) else "onerror": on_error})


def make_folders(path: str) -> List[str]:
    """Makes a directory with those above it, and returns which of them were missing."""
    missing = []
    above = path
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, exist_ok=True)
    return missing


def read_plain(path: str) -> Tuple[bytes, os.stat_result]:
    """A small file that the workload may have put there. Raises `OSError` for what is none: a pipe would keep its reader."""
    # Neither the file nor its folder may be a link: what they lead to is not the workload's to show.
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(path), flags, dir_fd=folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "this is no file", path)
        return file.read(_PLAIN_BYTES_MAX), status


def write_whole(path: str, body: bytes, is_synced: bool = False) -> None:
    """Writes a file so that a reader sees all of it or none; synced, also after the power has failed."""
    part = path + ".part"
    # Made anew, and never through a link: the workload can write in some of the folders.
    try:
        os.unlink(part)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, 0o644), "wb") as file:
        file.write(body)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())
    os.replace(part, path)


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while len(view) > 0:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written


def checkpoint_directory(work: str, own: str, named: Optional[str]) -> str:
    """Where the workload writes checkpoints: what the order names, in the working directory, or the runner's own."""
    return own if named is None else os.path.join(work, named)

"""The machine's own directory."""

import contextlib
import errno
import hashlib
import os
import stat
from typing import List, NamedTuple, Optional, Tuple

# A Unix socket's path has at most 107 bytes, and libraries add folders of up to 60 to TMPDIR (Ray).
_TMPDIR_BYTES_MAX = 43

# Far more than a file of `control/` ever needs.
_PLAIN_BYTES_MAX = 64 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Paths:
    """Everything that the runner keeps under its root."""

    def __init__(self, root: str, job_root: Optional[str] = None, has_user: bool = False) -> None:
        """`job_root` is a separate directory for everything that the workload may access; with `has_user` that runs as another user."""
        self.root = os.path.abspath(root)
        self._job_root = self.root if job_root is None else os.path.abspath(job_root)
        self._has_user = has_user
        self.lock = self._at("runner.lock")
        self.log = self._at("runner.log")
        self.group = self._at("cgroup")
        self.memory = self._at("runner.json")
        self.machine_id = self._at("machine-id")
        self.send_name = self._at("send-name")
        self.last_words_url = self._at("last-words-url")
        self.drain = self._at("drain.json")
        self.program_ended = self._at("program-ended")
        self.remarks = self._at("remarks")
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
        self.python = self._of_job("python")
        self.home = self._of_job("home")
        self.scratch = self._of_job("t")
        # The folder is on the job's disk, because files are renamed or linked between it and the job's directories.
        self.near = self._of_job("tmp")
        self.staging = self._of_job("tmp/staging")
        self.held = self._of_job("tmp/held")
        self.restoring = self._of_job("tmp/restoring")
        self.logs = self._at("tmp/logs")
        self.login = self._at("tmp/login")

    @property
    def of_job(self) -> Tuple[str, ...]:
        """The directories that a container can write to."""
        return (self.work, self.output, self.checkpoints, self.control)

    @property
    def for_user(self) -> Tuple[str, ...]:
        """The directories that belong to the job's own user."""
        return (*self.of_job, self.helper, self.bin, self.python, self.home, self.scratch)

    def short_scratch(self) -> str:
        """Returns a path of the folder for temporary files below which programs can create Unix sockets: the folder itself, or a link to
        it."""
        if len(os.fsencode(self.scratch)) <= _TMPDIR_BYTES_MAX:
            return self.scratch
        link = self._short_link()
        if self._is_own(link):
            return link
        try:
            os.symlink(self.scratch, link)
            return link
        except OSError:
            return self.scratch  # somebody else has the name: most programs need no socket there

    def forget_short_scratch(self) -> None:
        """Removes the link, if there is one. Another user's link with its name stays: the system refuses to remove it."""
        if self._is_own(self._short_link()):
            os.unlink(self._short_link())

    def _is_own(self, link: str) -> bool:
        return os.path.islink(link) and os.readlink(link) == self.scratch and os.lstat(link).st_uid == os.geteuid()

    def _short_link(self) -> str:
        return "/tmp/crucible-" + hashlib.sha256(os.fsencode(self.scratch)).hexdigest()[:10]

    def _at(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))

    def _of_job(self, name: str) -> str:
        return os.path.join(self._job_root, *name.split("/"))

    def make(self) -> None:
        """Creates all directories; removes leftovers of an earlier runner's unfinished start, except log lines."""
        for path in (self.work, self.output, self.checkpoints, self.control, self.helper, self.bin, self.python):
            remove_tree(path)
            os.makedirs(path)
        for path in (self.staging, self.held, self.restoring):
            remove_tree(path)
        remove_tree(self.login)
        remove_tree(self.program_ended)
        os.makedirs(self.saved)
        os.makedirs(self.logs, exist_ok=True)
        # Other users of the host reach no file of the job: a container may make programs that run as the owner of its files, who can be root.
        os.chmod(self._job_root, 0o700)
        if self._has_user:
            self._make_for_user()

    def _make_for_user(self) -> None:
        """The job's user can pass through the directory to its own, cannot list other names in it, and cannot access the runner's files."""
        for path in (self.home, self.scratch, self.near):
            remove_tree(path)
            os.makedirs(path)
        for path in (*self.for_user, self.near):
            os.chmod(path, 0o700)
        os.chmod(self._job_root, 0o711)


def remove_tree(path: str) -> None:
    """Removes a directory with its content, even if its owner has made it read-only, or another entry with this name; of a link to a
    directory it removes only the link. An absent entry is success."""
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    # A job's folders can be nested more deeply than Python's recursion limit and the longest path, and more than may be open at once.
    folder = _open_folder(path)
    try:
        above = [_Level(path, os.fstat(folder), _remove_files(folder))]
        while above:
            level = above[-1]
            if level.folders:
                name = level.folders.pop()
                try:
                    inner = _open_folder(name, folder)
                except FileNotFoundError:
                    continue
                os.close(folder)
                folder = inner
                above.append(_Level(name, os.fstat(folder), _remove_files(folder)))
            else:
                above.pop()
                if above:
                    outer = os.open("..", _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = outer
                    # A process of the job that is still alive could have moved the folder.
                    if not os.path.samestat(os.fstat(folder), above[-1].status):
                        raise OSError(errno.EBUSY, "the folder was moved while its content was removed", level.name)
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(level.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(path)


class _Level(NamedTuple):
    """A folder that is being emptied."""

    name: str
    status: os.stat_result
    folders: List[str]
    """Those in it that are still to be removed."""


def _open_folder(name: str, above: Optional[int] = None) -> int:
    """Opens a folder, but no link, so that its entries can be removed."""
    try:
        folder = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=above)
        folder = os.open(name, _FOLDER, dir_fd=above)
    with contextlib.suppress(PermissionError):
        os.fchmod(folder, 0o700)
    return folder


def _remove_files(folder: int) -> List[str]:
    """Removes all entries except folders, and returns the names of those."""
    folders = []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                folders.append(name)
            else:
                os.unlink(name, dir_fd=folder)
    return folders


def make_folders(path: str) -> List[str]:
    """Creates a directory with its parents, and returns the ones that were missing."""
    missing = []
    above = path
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, exist_ok=True)
    return missing


def read_plain(path: str) -> Tuple[bytes, os.stat_result]:
    """Reads a small file that the workload may have written. Raises `OSError` for other kinds of files: a named pipe would block the
    reader.
    """
    # Neither the file nor its folder may be a link: the workload must not expose a link's target.
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(path), flags, dir_fd=folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a file", path)
        return file.read(_PLAIN_BYTES_MAX), status


def write_whole(path: str, body: bytes, is_synced: bool = False) -> None:
    """Writes a file so that a reader sees all of it or nothing; with `is_synced` also after a power failure."""
    part = path + ".part"
    # Created anew, and never through a link: the workload can write in some of the folders.
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
    """Returns the folder for the workload's checkpoints: the one that the order names, in the working directory, or the runner's own."""
    return own if named is None else os.path.join(work, named)

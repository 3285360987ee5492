"""An object store in a folder; the rules shared with storage/file-store.ts are in docs/reference/runner-protocol-store.md."""

import errno
import hashlib
import json
import os
import stat
import time
import uuid
from typing import Callable, Iterator, List, Optional, Set, TypeVar
from urllib.parse import unquote, urlsplit

from ..keys import TEMPORARY_FOLDER, check_key
from ..paths import write_at
from .base import BLOCK_BYTES, Download, Part, Store, StoreError, StoreRefused, Upload, part_of
from .file_turn import take_turn
from .holes import is_zeros

T = TypeVar("T")

# The mark of a deployment's store, in its root: storage/mark.ts has the same sentences.
_MARK = "deployment.json"

_LINKLESS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_ABSENT = (errno.ENOENT, errno.EISDIR)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
# Errors of an entry that is not a file, or of a name that the file system does not support: they are permanent.
_NEVER = (
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EILSEQ,
)

# Limit on creating the folder of a put again, after another process has pruned it at the same moment.
_FOLDER_TRIES = 100


def path_of_url(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or path in ("", "/"):
        raise ValueError("Cannot open the store %r: for a folder write file:///absolute/path" % url)
    return path.rstrip("/")


class FileStore(Store):
    def __init__(self, root: str, is_marked: bool = False) -> None:
        """`is_marked`: the root carries a deployment's mark; a root without it, or with another than at first, is not the store."""
        self._root = root
        self._is_marked = is_marked
        self._deployment: Optional[str] = None
        self.heard: Callable[[int], None] = lambda _: None

    def on_date(self, heard: Callable[[int], None]) -> None:
        self.heard = heard

    def get(self, key: str) -> Optional[bytes]:
        return self._reading(key, _read)

    def age_ms(self, key: str) -> Optional[int]:
        modified = self._reading(key, lambda path: os.stat(path).st_mtime)
        return None if modified is None else int((self._now() - modified) * 1000)

    def put(self, key: str, body: bytes) -> None:
        upload = self.upload(key, len(body))
        try:
            upload.put_part(0, part_of(body))
            upload.commit()
        finally:
            upload.abort()

    def put_if_absent(self, key: str, body: bytes) -> bool:
        if self._reading(key, _is_there) is not None:
            return False
        target = self._path(key)
        temporary = self._temporary()
        self._check_mark()
        try:
            self._in_folder(temporary, lambda: _write_synced(temporary, body))
            return self._in_folder(target, lambda: self._place_if_absent(key, temporary, target))
        except OSError as error:
            raise self._error("write", target, error) from error
        finally:
            _remove(temporary)

    def upload(self, key: str, size: int) -> Upload:
        target = self._path(key)
        temporary = self._temporary()
        self._check_mark()
        try:
            descriptor = self._in_folder(
                temporary,
                lambda: os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666),
            )
        except OSError as error:
            raise self._error("write", target, error) from error
        upload = _FileUpload(self, descriptor, temporary, target)
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            upload.abort()
            raise self._error("write", target, error) from error
        return upload

    def download(self, key: str) -> Optional[Download]:
        return self._reading(key, lambda path: _FileDownload(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC)))

    def list(self, prefix: str) -> List[str]:
        return [prefix + entry.name for entry in self._entries(prefix) if entry.is_file()]

    def folders(self, prefix: str) -> List[str]:
        return [entry.name for entry in self._entries(prefix) if entry.is_dir()]

    def delete(self, key: str) -> None:
        self._check_mark()
        self._reading(key, os.unlink)
        folder = os.path.dirname(key)
        while folder:
            try:
                os.rmdir(os.path.join(self._root, folder))
            except OSError:
                return  # the folder is not empty; pruning is optional
            folder = os.path.dirname(folder)

    def _path(self, key: str) -> str:
        check_key(key)
        return os.path.join(self._root, key)

    def _temporary(self) -> str:
        return os.path.join(self._root, TEMPORARY_FOLDER, "runner-" + uuid.uuid4().hex)

    def _now(self) -> float:
        """Returns the time by the clock that dates the store's files, which may be that of another host; by this machine's if no file can be
        written."""
        temporary = self._temporary()
        try:
            self._in_folder(temporary, lambda: _write_synced(temporary, b""))
            return os.stat(temporary).st_mtime
        except OSError:
            return time.time()
        finally:
            _remove(temporary)

    def _entries(self, prefix: str) -> List["os.DirEntry[str]"]:
        path = self._path(prefix.rstrip("/"))
        try:
            with os.scandir(path) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise self._error("list", path, error) from error
        self._check_root()
        return []

    def _reading(self, key: str, action: Callable[[str], T]) -> Optional[T]:
        path = self._path(key)
        try:
            return action(path)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise self._error("read", path, error) from error
        self._check_root()
        return None

    def _check_root(self) -> None:
        # A missing root folder, or one without the mark, means an unmounted disk, never an empty store.
        try:
            os.stat(self._root)
        except FileNotFoundError as error:
            raise StoreError(
                "The folder %s of the object store is missing: mount its disk or restore it." % self._root
            ) from error
        except OSError as error:
            raise self._error("read", self._root, error) from error
        self._check_mark()

    def _check_mark(self) -> None:
        if not self._is_marked:
            return
        try:
            found = _deployment_in(_read(os.path.join(self._root, _MARK)))
        except FileNotFoundError as error:
            if not os.path.isdir(self._root):
                raise StoreError(
                    "The folder %s of the object store is missing: mount its disk or restore it." % self._root
                ) from error
            raise StoreError(
                "The object store %s is empty or was emptied: it has no %s. If its disk is not mounted, mount it."
                % (self._root, _MARK)
            ) from error
        except (OSError, ValueError):
            return  # an unreadable mark says nothing about the owner
        if self._deployment is None:
            self._deployment = found
        if found != self._deployment:
            raise StoreError(
                "The object store %s belongs to another deployment (%s, expected %s): mount the right disk."
                % (self._root, found, self._deployment)
            )

    def _in_folder(self, path: str, action: Callable[[], T]) -> T:
        for _ in range(_FOLDER_TRIES):
            try:
                return action()
            except FileNotFoundError:
                self._check_root()
            try:
                self._make_folder(os.path.dirname(path))
            except FileNotFoundError:
                pass  # pruned again in the meantime
        return action()

    def _make_folder(self, folder: str) -> None:
        """Creates the folder with missing parents, but never the root: without the root the store does not answer."""
        path = self._root
        for segment in os.path.relpath(folder, self._root).split(os.sep):
            path = os.path.join(path, segment)
            try:
                os.mkdir(path)
            except FileExistsError:
                pass

    def _place_if_absent(self, key: str, temporary: str, target: str) -> bool:
        try:
            os.link(temporary, target)
            return True
        except FileExistsError:
            return _remove_empty_folder(target) and self._place_if_absent(key, temporary, target)
        except OSError as error:
            if error.errno not in _LINKLESS:
                raise
        return self._move_if_absent(key, temporary, target)

    def _move_if_absent(self, key: str, temporary: str, target: str) -> bool:
        """For file systems without hard links: the process that creates the claim file checks and renames, the others wait."""
        name = hashlib.sha256(key.encode("utf-8")).hexdigest() + ".claim"
        claim = os.path.join(self._root, TEMPORARY_FOLDER, name)
        take_turn(claim)
        try:
            if os.path.exists(target):
                return False
            os.rename(temporary, target)
            return True
        finally:
            _remove(claim)

    def _error(self, doing: str, path: str, error: OSError) -> Exception:
        words = "could not %s %s: %s" % (doing, path, error.strerror or error)
        # If the store's root is missing, its disk may come back.
        if doing == "write" and error.errno in _NEVER and os.path.isdir(self._root):
            return ValueError(words)
        return StoreRefused(words) if error.errno in _REFUSED else StoreError(words)


class _FileUpload(Upload):
    def __init__(self, store: FileStore, descriptor: int, temporary: str, target: str) -> None:
        self._store = store
        self._descriptor = descriptor
        self._temporary = temporary
        self._target = target
        self._begun: Set[int] = set()

    def put_part(self, offset: int, part: Part) -> None:
        # A repeated part may overwrite bytes of its first attempt: then zeros are written, too.
        is_first_time = offset not in self._begun
        self._begun.add(offset)
        for block in part.blocks():
            try:
                if not (is_first_time and is_zeros(block)):
                    write_at(self._descriptor, block, offset)
            except OSError as error:
                raise self._store._error("write", self._target, error) from error
            offset += len(block)

    def commit(self) -> None:
        self._store._check_mark()
        try:
            os.fsync(self._descriptor)
            self._store._in_folder(self._target, lambda: _replace(self._temporary, self._target))
            self._store.heard(int(os.fstat(self._descriptor).st_mtime * 1000))
        except OSError as error:
            raise self._store._error("write", self._target, error) from error

    def abort(self) -> None:
        if self._descriptor >= 0:
            _close(self._descriptor)
            self._descriptor = -1
        _remove(self._temporary)


class _FileDownload(Download):
    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def blocks(self, offset: int, length: int) -> Iterator[bytes]:
        end = offset + length
        while offset < end:
            try:
                block = os.pread(self._descriptor, min(BLOCK_BYTES, end - offset), offset)
            except OSError as error:
                raise StoreError("could not read %s: %s" % (self._path, error.strerror or error)) from error
            if not block:
                return
            yield block
            offset += len(block)

    def close(self) -> None:
        _close(self._descriptor)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _deployment_in(text: bytes) -> str:
    mark = json.loads(text.decode("utf-8"))
    if not isinstance(mark, dict) or not isinstance(mark.get("id"), str):
        raise ValueError("it is not the mark of a store")
    return str(mark["id"])


def _is_there(path: str) -> bool:
    if stat.S_ISDIR(os.stat(path).st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    return True


def _write_synced(path: str, body: bytes) -> None:
    with open(path, "xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _replace(temporary: str, target: str) -> None:
    try:
        os.rename(temporary, target)
    except (IsADirectoryError, FileExistsError):
        if not _remove_empty_folder(target):
            raise
        os.rename(temporary, target)


def _remove_empty_folder(path: str) -> bool:
    """Removes an empty folder, which holds no object, from the place of a file. False for a file; raises for a folder with content."""
    try:
        os.rmdir(path)
        return True
    except NotADirectoryError:
        return False
    except FileNotFoundError:
        return True
    except OSError as error:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from error


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass

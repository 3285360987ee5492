"""Fetches the order's inputs to the paths where the workload expects them."""

import errno
import os
import shutil
from typing import Callable, Dict, Mapping, Optional
from urllib.parse import unquote, urlsplit

from ..clock import Clock, in_words
from ..endings import Failed, is_disk_full
from ..store.retry import Patience, Remark
from ..store.s3.access import Access, find_access
from .download import Downloads, WebOrigin
from .input_cache import InputCache
from .s3_input import Bucket, fetch_s3

# Errors of a path that the next machine meets, too.
_LASTING = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)


class Inputs:
    def __init__(self, cache: InputCache, clock: Clock, remark: Remark, patience: Patience) -> None:
        self._downloads = Downloads(cache, clock, patience, remark)
        self._clock = clock
        self._remark = remark
        self._job: Mapping[str, str] = {}
        self._home: Optional[str] = None
        self._access: Optional[Access] = None

    def use_credentials(self, job: Mapping[str, str], home: Optional[str]) -> None:
        """Places that may contain credentials: the job's variables and secrets, and the files of this machine's user."""
        self._job = job
        self._home = home

    def fetch(self, source: str, target: str) -> None:
        """Puts a copy of the source at `target`. Raises `Failed` with the reason `no-input` for one that can never be had, and `input` for one
        that is unavailable now."""
        fetchers: Dict[str, Callable[[str, str], None]] = {
            "file": self._copy,
            "http": self._download,
            "https": self._download,
            "s3": self._fetch_s3,
        }
        fetcher = fetchers.get(urlsplit(source).scheme)
        if fetcher is None:
            known = ", ".join(sorted(fetchers))
            raise Failed(
                "no-input", "the input %s cannot be fetched: its URL must begin with one of %s" % (source, known)
            )
        began_ms = self._clock.mono_ms()
        if os.path.isdir(target):
            raise Failed(
                "no-input", "the input %s cannot be put at %s: the code has a folder there" % (source, target)
            )
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            fetcher(source, target)
        except OSError as error:
            if is_disk_full(error):
                raise
            place = "" if error.filename is None else "%s: " % error.filename
            words = "%s%s" % (place, error.strerror) if error.strerror else str(error)
            reason = "no-input" if isinstance(error, shutil.Error) or error.errno in _LASTING else "input"
            raise Failed(reason, "the input %s cannot be put at %s: %s" % (source, target, words)) from error
        self._remark("input %s is ready (%s)" % (source, in_words(self._clock.mono_ms() - began_ms)))

    def _copy(self, source: str, target: str) -> None:
        path = unquote(urlsplit(source).path)
        if not os.path.exists(path):
            raise Failed("no-input", "the input %s does not exist on this machine: correct its path" % source)
        if os.path.isdir(path):
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy(path, target)

    def _download(self, source: str, target: str) -> None:
        self._downloads.fetch(WebOrigin(source), target)

    def _fetch_s3(self, source: str, target: str) -> None:
        access = self._access = self._access or find_access(self._job, self._home)
        fetch_s3(source, target, lambda name: Bucket(name, access, self._clock), self._downloads)

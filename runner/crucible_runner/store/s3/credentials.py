"""The runner's credentials for the store, in order of preference: a grant, keys of this machine's user, the role of the machine."""

import json
import os
import threading
from abc import ABC, abstractmethod
from datetime import datetime, timezone
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from ...clock import Clock
from ...documents import GRANT, SEALED, parse
from ...endings import Failed
from ...imds import Metadata
from ...seals import unseal_grant
from ...shapes import DocumentError
from ..base import StoreRefused
from .access import find_access
from .sigv4 import Credentials

# Credentials are renewed this long before they expire: none may expire during the upload of a part.
_RENEW_MS = 5 * 60_000
# Refused credentials are tried again after this time: a new key takes time to propagate.
_REFUSED_MS = 60_000
# Least time between requests, because without a metadata service each takes seconds.
_ASK_AGAIN_MS = 5_000
_ROLE_PATH = "/latest/meta-data/iam/security-credentials/"


class Source(ABC):
    @abstractmethod
    def find(self, is_pressing: bool) -> Optional[Credentials]:
        """Returns the newest available credentials, or None. They are requested again when urgent, otherwise cached. Raises `ValueError` or
        `OSError` with the reason."""


class Grants(Source):
    """Grants of the control plane: at first in a file, plain or sealed with the attempt's key, later in the lease."""

    def __init__(self, path: Optional[str], key_path: Optional[str] = None) -> None:
        self._path = path
        self._key_path = key_path
        self._taken: Optional[Credentials] = None
        self._stamp: Optional[Tuple[int, int]] = None
        self._read: Optional[Credentials] = None

    def take(self, grant: dict) -> None:
        self._taken = _from_grant(grant, "the grant in lease.json")

    def find(self, is_pressing: bool) -> Optional[Credentials]:
        grants = [grant for grant in (self._taken, self._from_file()) if grant is not None]
        return max(grants, key=lambda grant: grant.expires_at_ms or 0, default=None)

    def _from_file(self) -> Optional[Credentials]:
        if self._path is None:
            return None
        status = os.stat(self._path)
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            with open(self._path, "rb") as file:
                body = file.read()
            try:
                grant = unseal_grant(body, self._key_path) if _is_sealed(body) else parse(GRANT, body)
            except ValueError as error:
                raise ValueError("invalid grant file %s: %s" % (self._path, error)) from error
            self._read, self._stamp = _from_grant(grant, "the grant in %s" % self._path), stamp
        return self._read


class OwnKeys(Source):
    """Keys in the runner's environment or in the AWS files of its user; they may be replaced while it runs."""

    def __init__(self, environment: Mapping[str, str], home: Optional[str]) -> None:
        self._environment = environment
        self._home = home
        self._found: Optional[Credentials] = None
        self._is_read = False

    def find(self, is_pressing: bool) -> Optional[Credentials]:
        if is_pressing or not self._is_read:
            try:
                found = find_access(self._environment, self._home).credentials
            except Failed as error:
                raise ValueError(str(error)) from error
            words = "the runner's environment" if self._environment.get("AWS_ACCESS_KEY_ID") else None
            self._found = found and found._replace(origin=words or found.origin)
            self._is_read = True
        return self._found


class MachineRole(Source):
    """The role that the machine itself has on EC2."""

    def __init__(self, metadata: Metadata, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._found: Optional[Credentials] = None
        self._trouble: Optional[OSError] = None
        self._asked_ms: Optional[int] = None

    def find(self, is_pressing: bool) -> Optional[Credentials]:
        found, now_ms = self._found, self._clock.mono_ms()
        left_ms = (found.expires_at_ms or 0) - self._clock.wall_ms() if found is not None else 0
        is_due = not self._metadata.is_disabled and (is_pressing or left_ms <= _RENEW_MS)
        if is_due and (self._asked_ms is None or now_ms - self._asked_ms > _ASK_AGAIN_MS):
            self._asked_ms = now_ms
            try:
                self._found, self._trouble = self._ask(), None
            except OSError as error:
                self._trouble = error
        if self._trouble is not None and left_ms <= 0:
            raise self._trouble
        return self._found

    def _ask(self) -> Optional[Credentials]:
        role = (self._metadata.get(_ROLE_PATH) or "").partition("\n")[0]
        told = self._metadata.get(_ROLE_PATH + role) if role else None
        if told is None:
            raise OSError("the machine has no role")
        try:
            answer: Dict[str, str] = json.loads(told)
            if answer.get("Code", "Success") != "Success":
                raise OSError("the role %s has no credentials: %s" % (role, answer.get("Message", told)))
            ends = datetime.strptime(answer["Expiration"].partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S")
            return Credentials(
                answer["AccessKeyId"],
                answer["SecretAccessKey"],
                answer["Token"],
                "the role %s of this machine" % role,
                int(ends.replace(tzinfo=timezone.utc).timestamp() * 1000),
            )
        except (ValueError, KeyError) as error:
            raise OSError("the role %s has invalid credentials: %s" % (role, error)) from error


class Keyring:
    """The first source with valid credentials wins. For many threads; one at a time queries the sources."""

    def __init__(self, sources: List[Source], now_ms: Callable[[], int]) -> None:
        self._sources = sources
        self._now_ms = now_ms
        self._refused: Dict[str, int] = {}
        self._lock = threading.Lock()

    def get(self) -> Credentials:
        """Raises `StoreRefused` without any credentials."""
        with self._lock:
            found, troubles = self._find(False)
            if not self._is_good(found):
                found, troubles = self._find(True)
        if found is None:
            why = "; ".join(troubles) or "the machine has no grant, key or role"
            raise StoreRefused("no credentials for the store: %s" % why)
        return found

    def refuse(self, credentials: Credentials) -> bool:
        """The store refuses these credentials. Returns True when there are others to try."""
        with self._lock:
            self._refused[_name_of(credentials)] = self._now_ms() + _REFUSED_MS
            found, _ = self._find(True)
        return self._is_good(found)

    def _find(self, is_pressing: bool) -> Tuple[Optional[Credentials], List[str]]:
        """Prefers credentials that seem valid; otherwise returns the first ones found, because the store decides which are valid."""
        best: Optional[Credentials] = None
        troubles = []
        for source in self._sources:
            try:
                found = source.find(is_pressing)
            except (OSError, ValueError) as error:
                troubles.append(str(error))
                continue
            if self._is_good(found):
                return found, troubles
            best = best or found
        return best, troubles

    def _is_good(self, credentials: Optional[Credentials]) -> bool:
        if credentials is None:
            return False
        now_ms = self._now_ms()
        is_over = credentials.expires_at_ms is not None and credentials.expires_at_ms <= now_ms
        return not is_over and self._refused.get(_name_of(credentials), 0) <= now_ms


def _is_sealed(body: bytes) -> bool:
    try:
        parse(SEALED, body)
        return True
    except DocumentError:
        return False


def _name_of(credentials: Credentials) -> str:
    return credentials.key_id + (credentials.token or "")


def _from_grant(grant: dict, origin: str) -> Credentials:
    return Credentials(
        grant["keyId"], grant["secret"], grant["sessionToken"], origin, grant["expiresAtMs"]
    )

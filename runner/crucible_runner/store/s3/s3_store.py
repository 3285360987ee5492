"""An object store in S3, or in an S3-compatible server."""

import os
import time
import uuid
from typing import Callable, Iterator, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from ...clock import Clock
from ...documents import PART_BYTES
from ...endings import Failed
from ...imds import Metadata
from ...keys import check_key
from ..base import Download, Store, StoreError, Upload, part_of
from .access import find_access
from .client import Answer, Ask, Client, instant_ms, local_name
from .credentials import Grants, Keyring, MachineRole, OwnKeys
from .parts import PUT_HEADER, S3Download, S3Upload, was_put_by
from .place import parse_store_url

# S3 allows this many parts per object.
_PARTS_MAX = 10_000
# Retries after a conflict: another conditional put of the same key was in progress and ends soon.
_CONFLICTS_MAX = 10
# A write looks this often whether the bucket was emptied or replaced, as storage/s3/s3-store.ts does.
_LOOK_SECONDS = 30.0


class S3Store(Store):
    # Number of connections: one rarely uses the full bandwidth, because many stores and proxies limit each connection.
    transfers = 16

    def __init__(self, client: Client, prefix: str, grants: Grants) -> None:
        self._client = client
        self._prefix = prefix
        self._grants = grants
        self._own: Tuple[str, ...] = ()
        self._looked_at = 0.0

    def part_bytes(self, size: int) -> int:
        return PART_BYTES * max(1, -(-size // (PART_BYTES * _PARTS_MAX)))

    def take_grant(self, grant: dict) -> None:
        self._grants.take(grant)

    def on_date(self, heard: Callable[[int], None]) -> None:
        self._client.on_date = heard

    def bind(self, keys: Sequence[str]) -> None:
        self._own = tuple(keys)
        self._looked_at = time.monotonic()

    def get(self, key: str) -> Optional[bytes]:
        answer = self._client.ask(Ask("GET", self._key(key), accepts=(404,)))
        return answer.body if self._is_there(answer) else None

    def age_ms(self, key: str) -> Optional[int]:
        headers = self._client.ask(Ask("HEAD", self._key(key), accepts=(404,))).headers
        at_ms, modified_ms = (instant_ms(headers.get(name, "")) for name in ("Date", "Last-Modified"))
        return None if at_ms is None or modified_ms is None else at_ms - modified_ms

    def put(self, key: str, body: bytes) -> None:
        self._look(_LOOK_SECONDS)
        self._client.ask(Ask("PUT", self._key(key), part=part_of(body)))

    def put_if_absent(self, key: str, body: bytes) -> bool:
        # The answer to a successful put may get lost; then the next try reports that the key is taken, and only this mark shows by whom.
        self._look(0.0)
        mark = uuid.uuid4().hex
        headers = {"If-None-Match": "*", PUT_HEADER: mark}
        ask = Ask("PUT", self._key(key), headers=headers, part=part_of(body), accepts=(409, 412))
        for _ in range(_CONFLICTS_MAX):
            answer = self._client.ask(ask)
            if answer.status < 300:
                return True
            standing = self._client.ask(Ask("HEAD", self._key(key), accepts=(404,)))
            if standing.status != 404:
                return was_put_by(standing, mark)
        raise StoreError("other programs put and delete %s continuously" % key)

    def upload(self, key: str, size: int) -> Upload:
        self._look(_LOOK_SECONDS)
        return S3Upload(self._client, self._key(key), size, self.part_bytes(size))

    def download(self, key: str) -> Optional[Download]:
        answer = self._client.ask(Ask("HEAD", self._key(key), accepts=(404,)))
        return S3Download(self._client, self._key(key), answer) if answer.status != 404 else None

    def list(self, prefix: str) -> List[str]:
        begin = len(self._prefix)
        keys = [key[begin:] for kind, key in self._entries(prefix) if kind == "Contents"]
        return sorted(key for key in keys if not key.endswith("/"))

    def folders(self, prefix: str) -> List[str]:
        begin = len(self._prefix) + len(prefix)
        names = [name[begin:-1] for kind, name in self._entries(prefix) if kind == "CommonPrefixes"]
        return sorted(names)

    def delete(self, key: str) -> None:
        self._look(_LOOK_SECONDS)
        self._client.ask(Ask("DELETE", self._key(key), accepts=(404,)))

    def _look(self, every_seconds: float) -> None:
        """Looks for the attempt's own objects, unless it did so a moment ago."""
        if not self._own or time.monotonic() - self._looked_at < every_seconds:
            return
        if all(self.get(key) is None for key in self._own):
            words = "the bucket %s no longer has anything of this attempt: it was emptied or replaced; restore it"
            raise StoreError(words % self._client.bucket)
        self._looked_at = time.monotonic()

    def _key(self, key: str) -> str:
        check_key(key)
        return self._prefix + key

    def _is_there(self, answer: Answer) -> bool:
        """A missing bucket is not an empty store."""
        if answer.status == 404 and b"NoSuchBucket" in answer.body:
            raise StoreError("the bucket %s does not exist: correct the store's URL" % self._client.bucket)
        return answer.status != 404

    def _entries(self, prefix: str) -> Iterator[Tuple[str, str]]:
        """Yields the entries directly under a prefix: `Contents` are objects, `CommonPrefixes` are folders."""
        check_key(prefix.rstrip("/"))
        query = [("list-type", "2"), ("prefix", self._prefix + prefix), ("delimiter", "/")]
        query.append(("encoding-type", "url"))
        token: Optional[str] = None
        while True:
            page = query + ([("continuation-token", token)] if token is not None else [])
            answer = self._client.ask(Ask("GET", "", page))
            try:
                root = ElementTree.fromstring(answer.body)
            except ElementTree.ParseError as error:
                raise StoreError("the list of %s is invalid: %s" % (prefix, error)) from error
            told = {local_name(child): child.text or "" for child in root}
            for child in root:
                for field in child:
                    if local_name(field) in ("Key", "Prefix") and field.text:
                        is_encoded = told.get("EncodingType") == "url"
                        yield local_name(child), unquote_plus(field.text) if is_encoded else field.text
            token = told.get("NextContinuationToken")
            if not token:
                return


def open_s3_store(url: str, grant_file: Optional[str], key_file: Optional[str]) -> S3Store:
    """Uses a grant, then the keys of this machine's user, then the machine's role. Raises `ValueError` that explains the error in the URL."""
    place, clock = parse_store_url(url), Clock()
    grants = Grants(grant_file, key_file)
    environment: Mapping[str, str] = os.environ
    sources = [
        grants,
        OwnKeys(environment, environment.get("HOME")),
        MachineRole(Metadata(environment), clock),
    ]
    try:
        access = find_access(environment, environment.get("HOME"))
    except Failed as error:
        raise ValueError(str(error)) from error
    if place.endpoint is None and access.endpoint is not None:
        place = place._replace(endpoint=access.endpoint)
    client_of: List[Client] = []
    keyring = Keyring(sources, lambda: client_of[0].now_ms())
    client_of.append(Client(place, access.region, keyring, clock))
    return S3Store(client_of[0], place.prefix, grants)

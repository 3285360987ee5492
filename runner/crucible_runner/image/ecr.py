"""The login to Amazon's own registry (ECR): a token that lasts some hours, for callers with read permission."""

import base64
import hashlib
import http.client
import json
import re
import time
from typing import Callable, Mapping, NamedTuple, Optional
from urllib.parse import urlsplit

from ..clock import Clock
from ..store.base import StoreError
from ..store.s3.place import domain_of
from ..store.s3.sigv4 import Credentials, Request, signed_headers

_HOST = re.compile(r"\d{12}\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\.(amazonaws\.com(?:\.cn)?|amazonaws\.eu|on\.aws)")
_TARGET = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
_TIMEOUT_SECONDS = 15.0
_ANSWER_BYTES_MAX = 256 * 1024


class Login(NamedTuple):
    username: str
    password: str


class Refused(Exception):
    """The caller lacks permission for a token; the text says why."""


def region_of(registry: str) -> Optional[str]:
    """Returns the region of a registry that belongs to Amazon, or None."""
    match = _HOST.fullmatch(registry)
    return match.group(1) if match else None


def ask_for_login(
    registry: str, credentials: Callable[[], Credentials], environment: Mapping[str, str], clock: Clock
) -> Login:
    """Raises `Refused`, and `OSError` without an answer."""
    region = _HOST.fullmatch(registry).group(1)
    named = environment.get("AWS_ENDPOINT_URL_ECR") or environment.get("AWS_ENDPOINT_URL")
    url = urlsplit(named or "https://api.ecr.%s.%s" % (region, domain_of(region)))
    body = b"{}"
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": _TARGET}
    request = Request("POST", url.netloc, "/", (), headers, hashlib.sha256(body).hexdigest())
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.wall_ms() / 1000))
    try:
        signed = signed_headers(request, credentials(), region, stamp, "ecr")
    except StoreError as error:
        raise Refused("the machine has neither a role nor keys: %s" % error) from error
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.netloc, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("POST", "/", body, signed)
        response = connection.getresponse()
        answer = response.read(_ANSWER_BYTES_MAX)
    except http.client.HTTPException as error:
        raise OSError("ECR sent an invalid answer: %s" % error) from error
    finally:
        connection.close()
    return _login_in(response.status, answer)


def _login_in(status: int, answer: bytes) -> Login:
    try:
        told = json.loads(answer.decode("utf-8"))
        if status == 200:
            token = base64.b64decode(told["authorizationData"][0]["authorizationToken"]).decode("utf-8")
            username, _, password = token.partition(":")
            return Login(username, password)
    except (ValueError, KeyError, IndexError) as error:
        raise OSError("ECR answered %d with an unknown body" % status) from error
    kind = str(told.get("__type", "")).rpartition("#")[2]
    words = "ECR answers %s: %s" % (kind or status, told.get("message") or told.get("Message") or "")
    if 400 <= status < 500 and "Throttl" not in kind and "TooMany" not in kind:
        raise Refused(words)
    raise OSError(words)

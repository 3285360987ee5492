"""AWS Signature Version 4. Pure: the time is an argument."""

import hashlib
import hmac
from typing import Dict, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Credentials(NamedTuple):
    key_id: str
    secret: str
    token: Optional[str]
    origin: str
    """Their source, for people."""
    expires_at_ms: Optional[int] = None
    """Wall clock; None if unknown."""


class Request(NamedTuple):
    """A request. Path and query are plain text, not yet encoded."""

    method: str
    host: str
    path: str
    query: Sequence[Tuple[str, str]]
    headers: Dict[str, str]
    sha256: str = EMPTY_SHA256
    """The digest of the body, in hexadecimal digits."""

    @property
    def target(self) -> str:
        """Returns path and query in the encoding in which they are sent and signed."""
        return encoded_path(self.path) + ("?" + self.encoded_query if self.query else "")

    @property
    def encoded_query(self) -> str:
        pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in self.query)
        return "&".join("%s=%s" % pair for pair in pairs)


def encoded_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def signed_headers(
    request: Request, credentials: Credentials, region: str, stamp: str, service: str = "s3"
) -> Dict[str, str]:
    """Returns the request's headers plus the signature headers; `stamp` is the time as `20130524T000000Z`."""
    headers = dict(request.headers, **{"x-amz-content-sha256": request.sha256, "x-amz-date": stamp})
    if credentials.token is not None:
        headers["x-amz-security-token"] = credentials.token
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed["host"] = request.host
    names = ";".join(sorted(signed))
    canonical = [request.method, encoded_path(request.path), request.encoded_query]
    canonical += ["%s:%s" % each for each in sorted(signed.items())]
    canonical += ["", names, request.sha256]
    scope = "%s/%s/%s/aws4_request" % (stamp[:8], region, service)
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, _sha256("\n".join(canonical))])
    key = ("AWS4" + credentials.secret).encode("utf-8")
    for part in scope.split("/"):
        key = _mac(key, part)
    headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s" % (
        credentials.key_id,
        scope,
        names,
        _mac(key, text).hex(),
    )
    return headers


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode("utf-8"), hashlib.sha256).digest()

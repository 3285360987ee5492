"""Bucket locations, and the URL of a store in S3 (storage/s3/place.ts is the other side)."""

import re
from typing import NamedTuple, Optional
from urllib.parse import parse_qsl, unquote, urlsplit

_PARAMETERS = ("endpoint", "region")
_SHAPE = "s3://bucket/prefix?region=eu-west-1, with &endpoint=https://host:port for a server other than AWS"
# S3 itself allows fewer names; other servers also allow dots, capitals and underscores.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
# Bucket names that are valid in a host name and match the certificate of S3.
_HOST_LABEL = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]")

# Domains of partitions other than those of `amazonaws.com`, by the first part of their Regions' names.
_DOMAINS = {"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"}


class Base(NamedTuple):
    """The server of a bucket, and the bucket's path on it."""

    scheme: str
    host: str
    """Includes the port if it is not the default one."""
    path: str
    """The part before `/key`; empty when the bucket is part of the host name."""


class StorePlace(NamedTuple):
    """The contents of a store's URL."""

    bucket: str
    prefix: str
    """The prefix of every key: empty, or ends with a slash."""
    region: Optional[str]
    endpoint: Optional[str]
    """A server other than AWS, such as `http://127.0.0.1:9000`."""


def domain_of(region: str) -> str:
    """Returns the domain of AWS's servers in a Region. A test compares it with the endpoint rules of AWS's SDK."""
    return _DOMAINS.get(region.split("-")[0], "amazonaws.com")


def base_of(bucket: str, region: str, endpoint: Optional[str]) -> Base:
    """Servers other than AWS get path-style requests, `/bucket/key`, which all of them understand."""
    if endpoint is not None:
        parts = urlsplit(endpoint)
        return Base(parts.scheme, parts.netloc, "%s/%s" % (parts.path.rstrip("/"), bucket))
    host = "s3.%s.%s" % (region, domain_of(region))
    if _HOST_LABEL.fullmatch(bucket):
        return Base("https", "%s.%s" % (bucket, host), "")
    return Base("https", host, "/" + bucket)


def parse_store_url(url: str) -> StorePlace:
    """Raises `ValueError` that explains the error in the URL."""
    parts = urlsplit(url)
    if _BUCKET.fullmatch(parts.netloc) is None:
        raise _bad(url, "it names no bucket" if not parts.netloc else "%r is not a valid bucket name" % parts.netloc)
    told = parse_qsl(parts.query, keep_blank_values=True)
    values = dict(told)
    unknown = [name for name in values if name not in _PARAMETERS]
    if unknown or len(told) != len(values) or parts.fragment:
        raise _bad(url, "unknown parameter %r" % unknown[0] if unknown else "each parameter may occur once")
    endpoint = values.get("endpoint")
    if endpoint is not None and not _is_server(endpoint):
        raise _bad(url, "its endpoint %r must begin with http:// or https://" % endpoint)
    prefix = unquote(parts.path).strip("/")
    if any(segment in ("", ".", "..") for segment in prefix.split("/")) and prefix:
        raise _bad(url, "its prefix %r is not a plain path" % prefix)
    return StorePlace(
        parts.netloc,
        prefix + "/" if prefix else "",
        values.get("region") or None,
        endpoint.rstrip("/") if endpoint else None,
    )


def _is_server(endpoint: str) -> bool:
    parts = urlsplit(endpoint)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not parts.query and not parts.fragment


def _bad(url: str, why: str) -> ValueError:
    return ValueError("Cannot open the store %r: %s; write %s" % (url, why, _SHAPE))

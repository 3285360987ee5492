"""The metadata of an EC2 instance, over version 2 of the service, which requires a token."""

import http.client
import threading
import time
from typing import Mapping, Optional
from urllib.parse import urlsplit

_DEFAULT = "http://169.254.169.254"
# The service runs on the machine itself; without a service at that address, requests get no answer.
_TIMEOUT_SECONDS = 2.0
_TOKEN_SECONDS = 6 * 60 * 60
# Tokens are renewed this long before they expire.
_TOKEN_SLACK_SECONDS = 60
_ANSWER_BYTES_MAX = 64 * 1024


class Metadata:
    """Raises `OSError` when the service does not answer properly."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _DEFAULT
        self.is_disabled = environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true"
        self._token = ""
        self._token_until = 0.0
        self._lock = threading.Lock()

    def get(self, path: str) -> Optional[str]:
        """Returns the value at a path such as `/latest/meta-data/instance-id`; None for an absent path."""
        if self.is_disabled:
            raise OSError("the instance metadata is switched off by AWS_EC2_METADATA_DISABLED")
        status, body = self._ask("GET", path, {"X-aws-ec2-metadata-token": self._fresh_token(False)})
        if status == 401:
            status, body = self._ask("GET", path, {"X-aws-ec2-metadata-token": self._fresh_token(True)})
        if status == 404:
            return None
        if status != 200:
            raise OSError("the instance metadata answers %d to %s" % (status, path))
        return body

    def _fresh_token(self, is_refused: bool) -> str:
        with self._lock:
            if is_refused or time.monotonic() > self._token_until:
                headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
                status, body = self._ask("PUT", "/latest/api/token", headers)
                if status != 200:
                    raise OSError("the instance metadata issued no token but answered %d" % status)
                self._token = body
                self._token_until = time.monotonic() + _TOKEN_SECONDS - _TOKEN_SLACK_SECONDS
            return self._token

    def _ask(self, method: str, path: str, headers: Mapping[str, str]) -> tuple:
        parts = urlsplit(self._endpoint)
        if not parts.hostname:
            raise OSError("AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL: %r" % self._endpoint)
        # The request never goes through a proxy, because the service is this machine's own.
        connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, parts.path.rstrip("/") + path, headers=dict(headers))
            response = connection.getresponse()
            return response.status, response.read(_ANSWER_BYTES_MAX).decode("utf-8").strip()
        except (http.client.HTTPException, UnicodeDecodeError) as error:
            raise OSError("the instance metadata sent an invalid answer: %s" % error) from error
        finally:
            connection.close()

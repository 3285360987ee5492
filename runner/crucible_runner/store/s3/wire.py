"""Persistent HTTP connections to one server. This module knows nothing about S3."""

import base64
import http.client
import socket
import ssl
import threading
import time
import urllib.request
from typing import Dict, Iterator, List, Mapping, Optional, Set
from urllib.parse import unquote, urlsplit

from ..base import BLOCK_BYTES, Part

_CONNECT_SECONDS = 10.0
# A connection that transfers no byte for this long counts as dead.
SILENCE_SECONDS = 30.0
# A transfer with a lower average speed is given up.
_BYTES_PER_SECOND_MIN = 1024
_GRACE_SECONDS = 60.0
# Servers close idle connections, and a request sent at that moment is lost.
_IDLE_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_BODY_BYTES_MAX = 64 * 1024 * 1024


class Broken(Exception):
    """The answer was incomplete; the outcome of the request is unknown."""

    def __init__(self, words: str, was_idle: bool) -> None:
        super().__init__(words)
        self.was_idle = was_idle
        """The connection had been open since an earlier request, and the server may have closed it."""


class Line:
    """One connection, with the deadline of its current request (monotonic seconds)."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.sock: Optional[socket.socket] = None
        """A second reference: the connection drops its own when an answer is its last."""
        self.due = 0.0
        self.idle_since: Optional[float] = None
        self.is_overdue = False
        self.is_spoiled = False
        """Part of a request was not sent: the server would read the next bytes as its continuation."""

    def cut(self) -> None:
        """Interrupts the thread that waits on it."""
        self.is_overdue = True
        try:
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is already closed

    def words(self, error: BaseException) -> str:
        if self.is_overdue:
            return "the server is too slow"
        if isinstance(error, socket.timeout):
            return "the server did not answer in time"
        return str(error) or type(error).__name__


class Reply:
    """An answer with an unread body. It must be read to its end, or closed."""

    def __init__(self, wire: "Wire", line: Line, response: http.client.HTTPResponse) -> None:
        self._wire = wire
        self._line = line
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.length = response.length  # 0 when an answer has no body, whatever its headers say
        line.due = time.monotonic() + _allowance(self.length or 0)

    def blocks(self) -> Iterator[bytes]:
        """Yields the body in pieces. Raises `Broken` when it ends too early."""
        received = 0
        try:
            while True:
                block = self._response.read(BLOCK_BYTES)
                if not block:
                    break
                received += len(block)
                yield block
            if self.length is not None and received < self.length:
                raise OSError("the connection ended after %d of %d bytes" % (received, self.length))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Broken(self._line.words(error), False) from error
        finally:
            self.close()

    def read(self) -> bytes:
        blocks: List[bytes] = []
        total = 0
        for block in self.blocks():
            total += len(block)
            if total > _BODY_BYTES_MAX:
                raise Broken("the answer is longer than any requested content", False)
            blocks.append(block)
        return b"".join(blocks)

    def close(self) -> None:
        """Returns the connection to the pool if it can be reused."""
        self._wire.release(self._line, self._response.isclosed() and not self._response.will_close)


class Wire:
    """For many concurrent threads: each request has its own connection."""

    def __init__(self, scheme: str, host: str) -> None:
        self._host = host
        self._proxy = _proxy_for(scheme, host)
        self._proxy_headers = _proxy_headers(self._proxy)
        self._tls = ssl.create_default_context() if scheme == "https" else None
        self._idle: List[Line] = []
        self._busy: Set[Line] = set()
        self._lock = threading.Lock()
        self._watchman: Optional[threading.Thread] = None

    def send(self, method: str, target: str, headers: Mapping[str, str], part: Part, silence: float) -> Reply:
        """Raises `Broken`, and any error of reading the part."""
        line = self._take()
        line.due = time.monotonic() + silence + _allowance(part.size)
        was_idle = line.idle_since is not None
        is_done = False
        try:
            self._send(line, method, target, headers, part)
            line.connection.sock.settimeout(silence)
            reply = Reply(self, line, line.connection.getresponse())
            is_done = True
            return reply
        except (OSError, http.client.HTTPException, _FileTrouble) as error:
            if isinstance(error, _FileTrouble):
                raise error.cause from error
            raise Broken(line.words(error), was_idle) from error
        finally:
            if not is_done:
                self.release(line, False)
                if was_idle:
                    self._forget_idle()

    def _send(self, line: Line, method: str, target: str, headers: Mapping[str, str], part: Part) -> None:
        connection = line.connection
        if connection.sock is None:
            connection.connect()
            line.sock = connection.sock
        connection.sock.settimeout(SILENCE_SECONDS)
        if self._proxy is not None and self._tls is None:
            target = "http://%s%s" % (self._host, target)
            headers = dict(headers, **self._proxy_headers)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", self._host)
        for name, value in headers.items():
            connection.putheader(name, value)
        if part.size > 0 or method in ("PUT", "POST"):
            connection.putheader("Content-Length", str(part.size))
        connection.endheaders()
        blocks = iter(part.blocks())
        while True:
            try:
                block = next(blocks, None)
            except Exception as error:  # an error of the file, not of the connection
                raise _FileTrouble(error) from error
            if block is None:
                return
            try:
                connection.send(block)
            except socket.timeout:
                raise
            except OSError:
                # A server that refuses a request answers before it has read everything, and closes; that answer counts.
                line.is_spoiled = True
                return

    def _take(self) -> Line:
        now = time.monotonic()
        with self._lock:
            if self._watchman is None:
                self._watchman = threading.Thread(target=self._watch, name="watchman", daemon=True)
                self._watchman.start()
            line = None
            while self._idle and line is None:
                line = self._idle.pop()
                if now - (line.idle_since or 0.0) > _IDLE_SECONDS:
                    line.connection.close()
                    line = None
            line = line or Line(self._connection())
            line.due = now + _CONNECT_SECONDS + _GRACE_SECONDS
            self._busy.add(line)
        return line

    def release(self, line: Line, is_usable: bool) -> None:
        with self._lock:
            if line not in self._busy:
                return
            self._busy.discard(line)
            if is_usable and not line.is_overdue and not line.is_spoiled:
                line.idle_since = time.monotonic()
                self._idle.append(line)
                return
        line.connection.close()

    def _forget_idle(self) -> None:
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            line.connection.close()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            with self._lock:
                overdue = [line for line in self._busy if now > line.due]
            for line in overdue:
                line.cut()

    def _connection(self) -> http.client.HTTPConnection:
        server = urlsplit(self._proxy or "//" + self._host)
        if self._tls is None:
            port = server.port or 80
            return http.client.HTTPConnection(server.hostname or "", port, timeout=_CONNECT_SECONDS)
        port = server.port or (80 if self._proxy else 443)
        connection = http.client.HTTPSConnection(
            server.hostname or "", port, timeout=_CONNECT_SECONDS, context=self._tls
        )
        if self._proxy is not None:
            goal = urlsplit("//" + self._host)
            connection.set_tunnel(goal.hostname or "", goal.port or 443, self._proxy_headers)
        return connection


class _FileTrouble(Exception):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _allowance(size: int) -> float:
    return _GRACE_SECONDS + size / _BYTES_PER_SECOND_MIN


def _proxy_for(scheme: str, host: str) -> Optional[str]:
    """Reads the usual variables (`https_proxy`, `no_proxy`)."""
    proxy = urllib.request.getproxies().get(scheme)
    if not proxy or urllib.request.proxy_bypass(host):
        return None
    return proxy if "//" in proxy else "//" + proxy


def _proxy_headers(proxy: Optional[str]) -> Dict[str, str]:
    parts = urlsplit(proxy or "")
    if parts.username is None:
        return {}
    pair = "%s:%s" % (unquote(parts.username), unquote(parts.password or ""))
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode("utf-8")).decode("ascii")}

"""The connection between the runner and its timekeeper: JSON objects, one per line, of bounded size."""

import json
import socket
import threading
from collections import deque
from typing import Deque, List, Optional

# A document of facts has some kilobytes. A longer one is left out: reading it would delay the timekeeper.
LINE_BYTES_MAX = 1024 * 1024
_READ_BYTES = 64 * 1024
_WAITING_MAX = 200


class Line:
    """One end of the connection. Each thread of its process may send; one receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._rest = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def send(self, note: dict) -> None:
        """Waits until the other end has room. A note of more than 1 MiB is left out. Raises `OSError` when the other process has ended."""
        data = _encode(note)
        if data is not None:
            with self._lock:
                self._connection.sendall(data)

    def send_now(self, data: bytes) -> int:
        """Sends what the other end has room for, without waiting. Returns the number of bytes. Raises `OSError`."""
        try:
            return self._connection.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def receive(self) -> Optional[List[dict]]:
        """Waits for notes. Returns None when the other process has ended."""
        try:
            data = self._connection.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line.decode("utf-8")) for line in lines]


class Outbox:
    """Notes for a process that may not read them for a long time: the sender never waits, and keeps a bounded number."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._waiting: Deque[dict] = deque(maxlen=_WAITING_MAX)
        self._data = b""

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._data

    def put(self, note: dict) -> None:
        """Any thread may call it. The oldest note is dropped when too many wait."""
        self._waiting.append(note)

    def flush(self) -> None:
        """Sends what can be sent now. Raises `OSError` when the other process has ended."""
        while not self.is_empty:
            if not self._data:
                self._data = _encode(self._waiting.popleft()) or b""
            sent = self._line.send_now(self._data)
            if sent == 0 and self._data:
                return
            self._data = self._data[sent:]


def _encode(note: dict) -> Optional[bytes]:
    data = json.dumps(note).encode("utf-8") + b"\n"
    return data if len(data) <= LINE_BYTES_MAX else None

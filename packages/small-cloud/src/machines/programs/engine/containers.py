"""The engine's records of its containers: a folder for each."""

import os
import shutil
import time

from .world import ROOT, DockerError, read_json, write_json

_FOLDER = os.path.join(ROOT, "containers")
LOOK_SECONDS = 0.02


class Container:
    def __init__(self, record):
        self.record = record
        self.folder = os.path.join(_FOLDER, record["id"])
        self.stdout = os.path.join(self.folder, "stdout")
        self.stderr = os.path.join(self.folder, "stderr")

    def save(self):
        write_json(os.path.join(self.folder, "record.json"), self.record)

    def reload(self):
        """Reads the record again. Returns whether the container still exists."""
        record = read_json(os.path.join(self.folder, "record.json"), None)
        if record is not None:
            self.record = record
        return record is not None

    def update(self, **values):
        if self.reload():
            self.record.update(values)
            self.save()

    @property
    def is_running(self):
        return self.record["status"] == "running"

    def wait(self, seconds=None):
        """Returns whether it has ended within this time. A removed container has ended."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.reload() and self.record["status"] in ("created", "running"):
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def delete(self):
        # A root that is still mounted somewhere belongs to another namespace.
        shutil.rmtree(self.folder, ignore_errors=True)


def all_containers():
    """Newest first."""
    try:
        names = os.listdir(_FOLDER)
    except FileNotFoundError:
        return []
    records = [read_json(os.path.join(_FOLDER, name, "record.json"), None) for name in names]
    known = [Container(record) for record in records if record is not None]
    return sorted(known, key=lambda container: container.record["created"], reverse=True)


def find(word):
    """Finds by name, or by a prefix of an id; None without a match."""
    for container in all_containers():
        if container.record["name"] == word.lstrip("/") or container.record["id"].startswith(word):
            return container
    return None


def get(word):
    container = find(word)
    if container is None:
        raise DockerError("Error response from daemon: No such container: %s" % word)
    return container

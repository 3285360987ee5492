"""A training that saves, one small deed at a time, in one of the ways in which programs save."""

import os
from typing import FrozenSet, Iterator, Set, Tuple

from small_parts import PART_BYTES

Content = FrozenSet[Tuple[str, bytes]]
"""A checkpoint by its files: path and bytes."""

# How programs save: a file of its own for each step, a folder, one file replaced by the next, two of them, one file written into,
# one replaced next to another that stays.
WAYS = ("numbered", "folder", "replaced", "pair", "in place", "beside")
_BYTES_MAX = 5 * PART_BYTES


class Training:
    """One attempt of it. `whole` gets each checkpoint as it is when it is written to its end."""

    def __init__(self, dice, way: str, directory: str, name: str, whole: Set[Content]) -> None:
        self._dice = dice
        self._way = way
        self._directory = directory
        self._name = name
        self._whole = whole
        self.step = 0
        self.is_saving = False
        self.now_ns = 0

    def deeds(self, saves: int) -> Iterator[None]:
        """Trains and saves this often; between two deeds anything may happen."""
        for _ in range(saves):
            for _ in range(self._dice.randrange(8)):
                yield
            self.step += self._dice.randrange(1, 4)
            self.is_saving = True
            yield from self._save()
            self.is_saving = False
            yield

    def _save(self) -> Iterator[None]:
        files = {path: self._content(path) for path in self._paths()}
        # A reader of all of it has it whole; until then no reader can.
        self._whole.add(frozenset(files.items()))
        parts = []
        written = [path for path in files if not self._stays(path)]
        for path in written:
            parts.append(self._part(path))
            yield from self._write(parts[-1], files[path])
        for path, part in zip(written, parts):
            os.rename(part, os.path.join(self._directory, path))
            yield
        if self._way == "numbered" and self._dice.random() < 0.4:
            self._forget()

    def _paths(self):
        if self._way == "numbered":
            return ["step-%d.pt" % self.step]
        if self._way == "folder":
            return ["step-%d/%s.bin" % (self.step, name) for name in "abc"[: self._dice.randrange(1, 4)]]
        return {"pair": ["model.pt", "optimizer.pt"], "beside": ["vocabulary.bin", "model.pt"]}.get(self._way, ["model.pt"])

    def _stays(self, path: str) -> bool:
        return self._way == "beside" and path == "vocabulary.bin" and os.path.exists(os.path.join(self._directory, path))

    def _content(self, path: str) -> bytes:
        if self._stays(path):
            with open(os.path.join(self._directory, path), "rb") as file:
                return file.read()
        head = ("%s, step %d, %s, %d\n" % (self._name, self.step, path, self._dice.getrandbits(48))).encode()
        return head + self._dice.getrandbits(8 * _BYTES_MAX).to_bytes(_BYTES_MAX, "big")[: self._dice.randrange(_BYTES_MAX)]

    def _part(self, path: str) -> str:
        """Where a file is written: in its place, or next to it and renamed when it is whole."""
        target = os.path.join(self._directory, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        return target if self._way in ("folder", "in place") else target + ".tmp"

    def _write(self, path: str, body: bytes) -> Iterator[None]:
        with open(path, "r+b" if os.path.exists(path) else "wb", buffering=0) as file:
            for at in range(0, len(body), 100):
                file.write(body[at : at + 100])
                self._stamp(path)
                yield
            file.truncate()
        self._stamp(path)

    def _stamp(self, path: str) -> None:
        """By the clock of the test: on that of the machine no time passes between two deeds."""
        self.now_ns += 1
        os.utime(path, ns=(self.now_ns, self.now_ns))

    def _forget(self) -> None:
        """An older checkpoint goes, as programs do that keep a few."""
        names = sorted(os.listdir(self._directory))
        if len(names) > 2:
            os.unlink(os.path.join(self._directory, names[0]))


def content_of(directory: str) -> Content:
    found = set()
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found.add((os.path.relpath(path, directory), file.read()))
    return frozenset(found)

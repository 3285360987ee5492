"""Brings the newest good checkpoint of the job to this machine."""

import os
from typing import List, NamedTuple, Optional, Sequence

from .clock import Clock
from .keys import CheckpointId, Keys, parse_checkpoint_id
from .manifest import read_manifest
from .paths import remove_tree
from .retry import Patience, Remark, Trouble, persist
from .shapes import DocumentError
from .store import Store
from .transfer import Corrupt, FileDown, download_files


class Restored(NamedTuple):
    checkpoint: CheckpointId
    resume_path: str
    """Relative to the checkpoint directory."""


class Found(NamedTuple):
    """What the store has of checkpoints."""

    restored: Optional[Restored]
    own_steps: List[int]
    """Steps of which this very attempt has a checkpoint there already: a runner before this one has put it."""
    begun_steps: Sequence[int] = ()
    """Steps of which it has files there, but no manifest, as far as can be known: the request that puts it may be under way."""


class Restorer:
    def __init__(self, store: Store, keys: Keys, job_id: str, patience: Patience) -> None:
        self._store = store
        self._keys = keys
        self._job_id = job_id
        self._patience = patience

    def restore(self, attempt: int, directory: str, folder: str, clock: Clock, remark: Remark) -> Found:
        """Puts the newest good checkpoint into `directory`. Raises `GaveUp` when the store does not answer in time and
        `OSError` when the machine's disk does not take it."""
        trouble = Trouble("looking for checkpoints", remark, clock)
        names = persist(
            lambda: self._store.folders(self._keys.checkpoints), self._patience.is_hopeless, trouble
        )
        parsed = [parse_checkpoint_id(name) for name in names]
        found = [checkpoint for checkpoint in parsed if checkpoint is not None]
        found.sort(key=lambda checkpoint: checkpoint.age, reverse=True)
        own_steps, begun_steps = [], []
        restored = None
        for checkpoint in found:
            if restored is not None and checkpoint.attempt != attempt:
                continue
            body = persist(
                lambda: self._store.get(self._keys.manifest(checkpoint)), self._patience.is_hopeless, trouble
            )
            if body is None:
                if checkpoint.attempt == attempt:
                    begun_steps.append(checkpoint.step)
                continue  # its upload was never finished
            if checkpoint.attempt == attempt:
                own_steps.append(checkpoint.step)
            if restored is None:
                try:
                    restored = self._bring(checkpoint, body, directory, folder, trouble)
                    remark("restored checkpoint %s" % checkpoint.name)
                except (Corrupt, DocumentError) as error:
                    remark("checkpoint %s is not good, taking the one before: %s" % (checkpoint.name, error))
        return Found(restored, own_steps, begun_steps)

    def _bring(
        self, checkpoint: CheckpointId, body: bytes, directory: str, folder: str, trouble: Trouble
    ) -> Restored:
        manifest = read_manifest(body, self._job_id, checkpoint)

        def download() -> None:
            remove_tree(folder)
            os.makedirs(folder)
            files = [
                FileDown(
                    self._store,
                    self._keys.checkpoint_file(checkpoint, entry["path"]),
                    os.path.join(folder, entry["path"]),
                    entry,
                )
                for entry in manifest["files"]
            ]
            download_files(files, self._patience.is_stopped)

        persist(download, self._patience.is_hopeless, trouble)
        for link in manifest.get("links", []):
            path = os.path.join(folder, link["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(link["target"], path)
        for name in os.listdir(folder):
            target = os.path.join(directory, name)
            remove_tree(target)
            os.rename(os.path.join(folder, name), target)
        return Restored(checkpoint, manifest["resumePath"])

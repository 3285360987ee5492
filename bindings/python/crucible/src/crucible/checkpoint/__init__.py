"""Saving and resuming for training programs that run as Crucible jobs; outside Crucible they do no harm.

One module for each library, which imports no other:

- `crucible.checkpoint.pytorch.Checkpoint` for loops in PyTorch,
- `crucible.checkpoint.lightning.CrucibleCheckpoint` for Lightning,
- `crucible.checkpoint.huggingface.CrucibleCallback` for the Trainer of Transformers,
- `crucible.checkpoint.keras.CrucibleCallback` for `fit` of Keras 3.

The functions here are for other programs, and are those of `crucible_job`.
"""

from ._job import (
    checkpoint_dir,
    checkpoint_saved,
    output_dir,
    progress,
    resume_path,
    should_save,
    should_stop,
)

__all__ = [
    "checkpoint_dir",
    "checkpoint_saved",
    "output_dir",
    "progress",
    "resume_path",
    "should_save",
    "should_stop",
]

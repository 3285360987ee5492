"""Agreement between the processes of a training with `torch.distributed`; without it there is one process, which decides alone."""

from __future__ import annotations

import sys
from typing import Any, List

_group: Any = None


def is_distributed() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def is_main() -> bool:
    """Whether this process saves and asks Crucible."""
    return not is_distributed() or int(sys.modules["torch"].distributed.get_rank()) == 0


def agreed(value: int) -> int:
    """Returns the value of the process with rank 0. All processes must call it after the same step."""
    if not is_distributed():
        return value
    torch: Any = sys.modules["torch"]
    told = torch.tensor([value])
    torch.distributed.broadcast(told, src=0, group=_processor_group())
    return int(told.item())


def gathered(value: Any) -> List[Any]:
    """Returns the values of all processes by rank; they must be picklable."""
    if not is_distributed():
        return [value]
    torch: Any = sys.modules["torch"]
    values: List[Any] = [None] * int(torch.distributed.get_world_size())
    torch.distributed.all_gather_object(values, value, group=_processor_group())
    return values


def rank() -> int:
    return int(sys.modules["torch"].distributed.get_rank()) if is_distributed() else 0


def wait_for_all() -> None:
    if is_distributed():
        sys.modules["torch"].distributed.barrier(group=_processor_group())


def _processor_group() -> Any:
    """A group that works without a GPU: asking in NCCL would wait for all work of the GPU at each step."""
    global _group
    torch: Any = sys.modules["torch"]
    if _group is None and torch.distributed.get_backend() != "gloo":
        _group = torch.distributed.new_group(backend="gloo")
    return _group

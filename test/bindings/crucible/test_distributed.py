"""Agreement between the processes of a training, with a stand-in for `torch.distributed`; test/checkpointing has the real one."""

import unittest
from types import SimpleNamespace
from unittest import mock

from crucible.checkpoint import _distributed

#: The values of both processes.
VALUES = [3, 7]


class Tensor(list):
    def item(self):
        return self[0]


def torch_of(rank, backend="gloo"):
    """PyTorch in one of two processes. `groups` has the group of each call."""
    groups = []

    def broadcast(tensor, src, group):
        groups.append(group)
        tensor[0] = VALUES[src]

    def all_gather_object(values, value, group):
        groups.append(group)
        values[:] = [*VALUES[:rank], value, *VALUES[rank + 1 :]]

    distributed = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: rank,
        get_world_size=lambda: 2,
        get_backend=lambda: backend,
        new_group=lambda backend: "group of " + backend,
        broadcast=broadcast,
        all_gather_object=all_gather_object,
    )
    return SimpleNamespace(distributed=distributed, tensor=Tensor, groups=groups)


class TestDistributed(unittest.TestCase):
    def setUp(self):
        patched = mock.patch.object(_distributed, "_group", None)
        patched.start()
        self.addCleanup(patched.stop)

    def test_all_processes_take_the_value_of_the_first(self):
        for rank, value in enumerate(VALUES):
            with mock.patch.dict("sys.modules", torch=torch_of(rank)):
                self.assertEqual(VALUES[0], _distributed.agreed(value))
                self.assertEqual(VALUES, _distributed.gathered(value))
                self.assertEqual((rank == 0, rank), (_distributed.is_main(), _distributed.rank()))

    def test_one_process_decides_alone(self):
        with mock.patch.dict("sys.modules", torch=None):
            self.assertEqual((7, [7], True, 0), (_distributed.agreed(7), _distributed.gathered(7), _distributed.is_main(), _distributed.rank()))

    def test_a_group_without_the_gpu_is_made_once_and_only_where_it_is_needed(self):
        torch = torch_of(1, backend="nccl")
        with mock.patch.dict("sys.modules", torch=torch):
            _distributed.agreed(7)
            torch.distributed.new_group = None
            _distributed.gathered(7)
        self.assertEqual(["group of gloo"] * 2, torch.groups)

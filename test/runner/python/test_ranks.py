"""A checkpoint of several processes counts when all of them have written their files."""

import os
import subprocess
import sys
import unittest

from test_older import RestoringTest

from crucible_runner.checkpoint.names import template
from crucible_runner.checkpoint.ranks import missing_rank
from crucible_runner.process.processes import world_size_of

TRAINER = ("checkpoint-10/trainer_state.json", "checkpoint-10/model.safetensors")


def lacking(*names, before=(), world_size=None):
    paths = ["checkpoint-10/%s" % name for name in names]
    return missing_rank(paths, [template("checkpoint-5/%s" % name) for name in before], world_size)


class MissingRankTest(unittest.TestCase):
    def test_the_number_of_processes_decides(self):
        self.assertEqual(lacking("rng_state_0.pth", world_size=2), "checkpoint-10/rng_state_1.pth")
        self.assertIsNone(lacking("rng_state_0.pth", world_size=1))
        self.assertIsNone(lacking("rng_state_0.pth", "rng_state_1.pth", world_size=2))
        self.assertEqual(lacking("model_rank_00.pt", "model_rank_02.pt", world_size=3), "checkpoint-10/model_rank_01.pt")
        self.assertEqual(lacking("random_states_0.pkl", world_size=2), "checkpoint-10/random_states_1.pkl")

    def test_ranks_of_a_part_of_the_processes_are_not_counted(self):
        self.assertIsNone(lacking("mp_rank_00_model_states.pt", world_size=4))
        self.assertIsNone(lacking("local_rank_0.json", "local_rank_1.json", world_size=4))

    def test_a_file_of_rank_0_alone_may_be_all_there_is(self):
        self.assertIsNone(lacking("metrics_rank_0.json", world_size=4))

    def test_the_last_complete_save_decides_where_the_number_is_unknown(self):
        both = ("rank_0.pt", "rank_1.pt")
        self.assertEqual(lacking("rank_0.pt", before=both), "checkpoint-10/rank_1.pt")
        self.assertIsNone(lacking(*both, before=both))
        self.assertIsNone(lacking("rank_0.pt", before=("rank_0.pt",)))
        self.assertIsNone(lacking("rank_0.pt"))

    def test_pieces_without_a_word_for_ranks_count_too(self):
        before = ("__0_0.distcp", "__1_0.distcp")
        self.assertEqual(lacking("__0_0.distcp", before=before), "checkpoint-10/__1_0.distcp")
        self.assertIsNone(lacking("w_1.bin", before=("w_1.bin", "w_2.bin")))

    def test_a_piece_names_how_many_there_are(self):
        self.assertEqual(lacking("model-00001-of-00003.bin", "model-00003-of-00003.bin"), "checkpoint-10/model-00002-of-00003.bin")
        self.assertEqual(lacking("states-00-of-02.pt"), "checkpoint-10/states-01-of-02.pt")
        self.assertEqual(lacking("shard.0.of2", world_size=1), "checkpoint-10/shard.1.of2")
        self.assertIsNone(lacking("model-00001-of-00002.bin", "model-00002-of-00002.bin"))
        self.assertIsNone(lacking("day-3-of-99999999.bin"))

    def test_the_number_of_processes_on_this_machine_counts_more_than_the_last_save(self):
        before = ("rng_state_0.pth", "rng_state_1.pth", "rng_state_2.pth", "rng_state_3.pth")
        self.assertIsNone(lacking("rng_state_0.pth", "rng_state_1.pth", before=before, world_size=2))

    def test_pieces_that_the_number_of_processes_does_not_count_are_those_of_the_last_save(self):
        for first, second in (
            ("zero_pp_rank_0_mp_rank_00_optim_states.pt", "zero_pp_rank_1_mp_rank_00_optim_states.pt"),
            ("__0_0.distcp", "__1_0.distcp"),
            ("mp_rank_00/model.pt", "mp_rank_01/model.pt"),
            ("model_fsdp_rank0.bin", "model_fsdp_rank1.bin"),
        ):
            before = (first, second)
            self.assertEqual(lacking(first, before=before, world_size=2), "checkpoint-10/%s" % second)
            self.assertIsNone(lacking(first, before=before, world_size=1))
            self.assertIsNone(lacking(*before, before=before, world_size=2))
            self.assertIsNone(lacking(first, before=(first,), world_size=2))

    def test_trainer_numbers_the_random_state_only_with_several_processes(self):
        self.assertEqual(lacking("rng_state_0.pth"), "checkpoint-10/rng_state_1.pth")
        self.assertIsNone(lacking("rng_state_0.pth", before=("rng_state_0.pth",)))
        self.assertIsNone(lacking("rng_state.pth"))


class WorldSizeTest(unittest.TestCase):
    def test_is_read_from_the_environment_of_the_processes(self):
        environment = dict(os.environ, WORLD_SIZE="8")
        command = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        self.assertEqual(world_size_of([child.pid]), 8)
        child.communicate()
        self.assertIsNone(world_size_of([child.pid]))


class RankRaceTest(RestoringTest):
    def test_a_save_without_the_last_piece_is_not_restored_before_a_complete_one(self):
        for name in ("states-%02d-of-03.pt", "__%d_0.distcp", "shard.%d.of3"):
            with self.subTest(name):
                self.setUp()
                self.begin()
                for step in (10, 20, 30):
                    for piece in range(3 if step < 30 else 2):
                        self.save("checkpoint-%d/%s" % (step, name % piece), "p" * 100)
                    self.settle(ticks=60)
                self.finish(False)
                self.assertEqual(self.restore()[0].restored.resume_path, "checkpoint-20")

    def rank_0(self, step):
        self.save("checkpoint-%d/rng_state_0.pth" % step, "r" * 100)
        self.save("checkpoint-%d/trainer_state.json" % step, '{"global_step": %d}' % step)

    def rank_1(self, step):
        self.save("checkpoint-%d/rng_state_1.pth" % step, "r" * 100)

    def test_the_file_that_rank_0_writes_last_is_no_proof_while_another_rank_writes(self):
        self.begin()
        self.rank_0(10)
        self.settle(ticks=60)
        self.assertEqual(self.newest_manifest(10)["state"], "quiet")
        self.assertEqual(self.newest_manifest(10)["evidence"]["text"], "checkpoint-10/rng_state_1.pth is not there yet")
        self.finish(False)
        self.assertIsNone(self.restore()[0].restored)

    def test_the_last_rank_completes_it(self):
        self.begin()
        self.rank_0(10)
        self.settle()
        self.rank_1(10)
        self.settle()
        self.assertEqual(self.newest_manifest(10)["state"], "complete")
        self.rank_0(20)
        self.settle(ticks=60)
        self.finish(False)
        found, names = self.restore()
        self.assertEqual(found.restored.resume_path, "checkpoint-10")
        self.assertIn("checkpoint-10/rng_state_1.pth", names)

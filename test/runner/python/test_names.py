import os
import unittest

from support import FolderTest

from crucible_runner.checkpoint.names import is_ignored, is_record, member_of, read_name, template, unit_of
from crucible_runner.checkpoint.scan import baseline_of, scan, select


class NamesTest(unittest.TestCase):
    def assert_step(self, name, step):
        self.assertEqual(read_name(name).step, step, name)

    def test_finds_steps_in_the_names_that_programs_give(self):
        self.assert_step("checkpoint-500", 500)
        self.assert_step("global_step1200", 1200)
        self.assert_step("step=1200.ckpt", 1200)
        self.assert_step("epoch=3-step=1200.ckpt", 1200)
        self.assert_step("epoch=3-step=1200-val_loss=0.42.ckpt", 1200)
        self.assert_step("iter_0004000", 4000)
        self.assert_step("iteration 7.pt", 7)
        self.assert_step("ckpt-3.data-00000-of-00001", 3)
        self.assert_step("ckpt_100.pt", 100)
        self.assert_step("steps_10_to_20.pt", 10)
        self.assert_step("model.pt", None)
        self.assert_step("model_100.pt", None)
        self.assert_step("step=0.5.pt", None)
        self.assert_step("checkpoint-20260131235959.pt", None)

    def test_an_epoch_is_no_step(self):
        name = read_name("epoch_12.pth")
        self.assertEqual((name.step, name.epoch), (None, 12))

    def test_numbers_that_tell_pieces_apart_tell_no_age(self):
        for name in (
            "model-00001-of-00003.safetensors",
            "rank_0.pt",
            "rng_state_1.pth",
            "__0_0.distcp",
            "shard-3.bin",
        ):
            self.assertIsNone(unit_of(name), name)
            self.assertIn("|", template(name))
        self.assertEqual(template("checkpoint-5/rank_0.pt"), template("checkpoint-60/rank_0.pt"))
        self.assertNotEqual(template("checkpoint-5/rank_0.pt"), template("checkpoint-5/rank_1.pt"))
        self.assertEqual(template("model_a.pt"), template("model_b.pt"))
        self.assertEqual(template("run/f8562d7c3e.ckpt"), template("run/01a3bce2f4.ckpt"))
        self.assertEqual(template("1b4e28ba-2fa1-11d2-883f-0016d3cca427.pt"), template("6fa459ea-ee8a-3ca4-894e-db77e160355e.pt"))
        self.assertNotEqual(template("feedback.pt"), template("deadface.pt"))

    def test_numbers_without_a_word_tell_members_apart(self):
        self.assertEqual(member_of("50/model"), ("", "50", "#/model"))
        self.assertEqual(member_of("runs/fold_3/x_1.pt"), ("runs", "3", "fold_#/x_#.pt"))
        self.assertEqual(member_of("model_50.pt"), ("", "50", "model_#.pt"))
        for path in "model.pt", "checkpoint-50/model_1.pt", "rank_0.pt":
            self.assertIsNone(member_of(path), path)

    def test_unfinished_files_are_ignored(self):
        for name in (
            "a.tmp",
            "a.part",
            "a.partial",
            "a.lock",
            "a~",
            ".a",
            "tmp-checkpoint-7",
            "step_1.tmp.d",
        ):
            self.assertTrue(is_ignored(name), name)
        self.assertTrue(is_ignored("100.orbax-checkpoint-tmp-170"))
        for name in ("a", "a.pt", ".metadata", "part-1.bin", "temperature.json"):
            self.assertFalse(is_ignored(name), name)

    def test_records(self):
        for path in ("train.log", "runs/events.out.tfevents.1.host", "metrics.jsonl", "a/b/loss.CSV"):
            self.assertTrue(is_record(path), path)
        self.assertFalse(is_record("logs.pt"))


class SelectTest(FolderTest):
    def files_of(self, *names, baseline=frozenset()):
        """What makes the newest checkpoint of these files."""
        for name in names:
            self.write("ck/" + name, name)
        selections = select(scan(self.at("ck")), baseline)
        return sorted(selections[0].files) if selections else None

    def selection(self, *names):
        self.files_of(*names)
        return select(scan(self.at("ck")), frozenset())[0]

    def test_of_numbered_entries_only_the_newest(self):
        self.assertEqual(self.files_of("checkpoint-500/a", "checkpoint-1000/a"), ["checkpoint-1000/a"])

    def test_entries_without_a_number_always_belong(self):
        self.assertEqual(self.files_of("model.pt", "optimizer.pt"), ["model.pt", "optimizer.pt"])
        self.assertEqual(self.files_of("step-9.pt", "step-10.pt"), ["model.pt", "optimizer.pt", "step-10.pt"])

    def test_pieces_stay_together(self):
        names = [
            "checkpoint-1/x",
            "model-1-of-2.bin",
            "model-2-of-2.bin",
            "rng_state_0.pth",
            "rng_state_1.pth",
        ]
        self.assertEqual(self.files_of(*names), names)
        self.assertEqual(self.files_of("checkpoint-2/x"), ["checkpoint-2/x"] + names[1:])

    def test_numbers_without_a_word_may_be_folds_or_parts_and_stay(self):
        names = ["config_v2.json", "fold_0.pt", "fold_1.pt", "param_0001.npy", "param_0002.npy"]
        self.assertEqual(self.files_of(*names), names)

    def test_the_best_and_the_last_do_not_compete(self):
        names = ["best-epoch=3-loss=0.1.ckpt", "epoch=7-step=700.ckpt"]
        self.assertEqual(self.files_of("epoch=6-step=600.ckpt", *names), names)

    def test_units_in_folders_below_are_told_apart(self):
        names = ["version_0/checkpoints/step=100.ckpt", "version_0/checkpoints/step=200.ckpt", "version_1/hparams.yaml"]
        self.assertEqual(self.files_of(*names), names[1:])

    def test_what_is_only_moved_is_not_new(self):
        self.write("ck/model.pt", "state")
        baseline = baseline_of(scan(self.at("ck")))
        os.rename(self.at("ck", "model.pt"), self.at("ck", "model.old.pt"))
        self.assertIsNone(self.files_of(baseline=baseline))
        self.assertEqual(self.files_of("model.pt", baseline=baseline), ["model.old.pt", "model.pt"])

    def test_the_path_to_resume_from(self):
        self.assertEqual(self.selection("checkpoint-7/a").resume_path, "checkpoint-7")
        self.assertEqual(self.selection("latest.txt").resume_path, "checkpoint-7")
        self.assertEqual(self.selection("checkpoint-8/a", "step-8.json").resume_path, ".")

    def test_the_path_to_resume_from_without_numbers(self):
        self.assertEqual(self.selection("model.pt", "train.log").resume_path, "model.pt")
        self.assertEqual(self.selection("optimizer.pt").resume_path, ".")

    def test_what_was_there_from_the_start_is_no_checkpoint_and_does_not_compete(self):
        self.write("ck/step-900.pt", "old")
        baseline = baseline_of(scan(self.at("ck")))
        self.assertIsNone(self.files_of(baseline=baseline))
        self.assertIsNone(self.files_of("train.log", baseline=baseline))
        self.assertEqual(self.files_of("step-5.pt", baseline=baseline), ["step-5.pt", "train.log"])

    def test_older_generations_are_told_apart_where_nothing_else_belongs_to_them(self):
        self.files_of("step-1.pt", "step-2.pt", "step-3.pt", "train.log")
        selections = select(scan(self.at("ck")), frozenset())
        self.assertEqual([each.step for each in selections], [3, 2, 1])
        self.write("ck/optimizer.pt", "o")
        self.assertEqual([each.step for each in select(scan(self.at("ck")), frozenset())], [3])

    def test_of_thousands_of_checkpoints_only_the_newest_are_told_apart(self):
        # Written far apart, for a file system's clock may be coarse.
        for number in range(1, 2_001):
            self.write("ck/step-%d.pt" % number, "state")
            os.utime(self.at("ck", "step-%d.pt" % number), (number, number))
        selections = select(scan(self.at("ck")), frozenset())
        self.assertEqual([each.step for each in selections], list(range(2_000, 1_949, -1)))

    def test_links_stay_links_inside_and_become_files_from_outside(self):
        self.write("elsewhere/big.bin", "big")
        self.write("ck/checkpoint-7/a", "a")
        os.symlink("checkpoint-7", self.at("ck", "latest"))
        os.symlink(self.at("ck", "checkpoint-7", "a"), self.at("ck", "checkpoint-7", "b"))
        os.symlink(self.at("elsewhere", "big.bin"), self.at("ck", "checkpoint-7", "big.bin"))
        os.symlink(self.at("elsewhere"), self.at("ck", "checkpoint-7", "folder"))
        os.symlink("nowhere", self.at("ck", "checkpoint-7", "dangling"))
        selection = select(scan(self.at("ck")), frozenset())[0]
        self.assertEqual(sorted(selection.files), ["checkpoint-7/a", "checkpoint-7/big.bin"])
        self.assertEqual(
            selection.links,
            {"latest": "checkpoint-7", "checkpoint-7/b": "a", "checkpoint-7/dangling": "nowhere"},
        )
        self.assertEqual(selection.resume_path, "checkpoint-7")

    def older(self):
        """The files of each checkpoint, newest first."""
        return [sorted(each.files) for each in select(scan(self.at("ck")), frozenset())]

    def test_a_text_that_names_an_older_one_keeps_it(self):
        for pointer, text, kept in (
            ("latest", "checkpoint-10", True),
            ("latest", "checkpoint-10\n", True),
            ("latest", "/root/somewhere/checkpoint-10/", True),
            ("last.json", '{"path": "./checkpoint-10", "loss": 3}', True),
            ("checkpoint", 'model_checkpoint_path: "checkpoint-10"\n', True),
            ("notes", "checkpoint-11", False),
            ("notes", "xcheckpoint-10", False),
            ("weights", "checkpoint-10 \0", False),
            ("long", "checkpoint-10 " * 400, False),
            ("empty", "", False),
        ):
            with self.subTest((pointer, text[:30])):
                self.setUp()
                self.files_of("checkpoint-10/a", "checkpoint-20/a")
                self.write("ck/" + pointer, text)
                expected = ["checkpoint-10/a"] * kept + ["checkpoint-20/a", pointer]
                self.assertEqual(self.older()[0], sorted(expected))
        self.setUp()
        self.write("ck/runs/last", "step_1")
        self.assertEqual(self.files_of("runs/step_1.pt", "runs/step_2.pt"), ["runs/last", "runs/step_1.pt", "runs/step_2.pt"])
        self.setUp()
        self.write("ck/best/last", "step_1.pt")
        self.assertEqual(self.files_of("runs/step_1.pt", "runs/step_2.pt"), ["best/last", "runs/step_2.pt"])
        self.write("ck/best/last", "../runs/step_1.pt")
        self.assertEqual(self.files_of(), ["best/last", "runs/step_1.pt", "runs/step_2.pt"])
        self.setUp()
        self.write("ck/last", "runs/step_1.pt")
        self.assertEqual(self.files_of("runs/step_1.pt", "runs/step_2.pt"), ["last", "runs/step_1.pt", "runs/step_2.pt"])

    def test_a_text_that_names_many_means_the_newest_of_them(self):
        names = ["ckpt-%d.index" % each for each in (8, 9, 10, 11)]
        self.write("ck/checkpoint", "".join('all_model_checkpoint_paths: "ckpt-%d"\n' % each for each in (8, 9, 10)))
        self.assertEqual(self.files_of(*names), ["checkpoint", "ckpt-10.index", "ckpt-11.index"])
        self.write("ck/checkpoint", "best: ckpt-8\nlast: ckpt-10\n")
        self.assertEqual(self.files_of(), ["checkpoint", "ckpt-10.index", "ckpt-11.index", "ckpt-8.index"])

    def test_a_text_that_has_moved_on_leaves_older_ones_torn(self):
        self.write("ck/latest", "checkpoint-10")
        self.files_of("checkpoint-10/a", "checkpoint-20/a", "checkpoint-30/a")
        for at_s, name in enumerate(("latest", "checkpoint-10/a", "checkpoint-20/a", "checkpoint-30/a"), 1):
            os.utime(self.at("ck", name), (at_s, at_s))
        self.assertEqual(
            self.older(),
            [
                ["checkpoint-10/a", "checkpoint-30/a", "latest"],
                ["checkpoint-10/a", "checkpoint-20/a", "latest"],
                ["checkpoint-10/a", "latest"],
            ],
        )
        self.write("ck/latest", "checkpoint-20")
        os.utime(self.at("ck", "latest"), (3, 3))
        self.assertEqual(len(self.older()), 2)
        self.write("ck/latest", "checkpoint-99")
        os.utime(self.at("ck", "latest"), (1, 1))
        self.assertEqual(len(self.older()), 3)

    def test_a_text_that_is_a_link_is_not_read(self):
        self.write("secret", "checkpoint-10")
        self.files_of("checkpoint-10/a", "checkpoint-20/a")
        os.symlink(self.at("secret"), self.at("ck", "latest"))
        self.assertEqual(scan(self.at("ck")).pointers, {})

    def test_pipes_are_left_out(self):
        self.write("ck/model.pt", "m")
        os.mkfifo(self.at("ck", "pipe"))
        self.assertEqual(self.files_of(), ["model.pt"])

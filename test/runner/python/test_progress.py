import json
import os
import time

from support import FakeClock, FolderTest

from crucible_runner.progress import Progress
from crucible_runner.progress.reading import Count, read


class ProgressTest(FolderTest):
    def progress(self, *lines):
        progress = Progress(self.at("progress.json"), FakeClock())
        progress.see([line.encode() for line in lines])
        return progress

    def assert_progress(self, line, step, total=None, loss=None):
        document = self.progress(line).document()
        self.assertIsNotNone(document, line)
        self.assertEqual(
            (document["step"], document["stepsTotal"], document["loss"]), (step, total, loss), line
        )

    def test_a_line_that_begins_with_its_bare_step_counts_the_whole_training(self):
        for line, step in (
            (b"[12]\ttrain-logloss:0.3", Count(12)),
            (b"[10]:    train's l2:0.09", Count(10)),
            (b"12:\tlearn: 0.57", Count(12)),
            (b"75: 625.195312, 517.632019 avg, 0.000000 rate", Count(75)),
            (b"120 | loss 4.8438 | lr 3.0e-04", Count(120)),
            (b"logging_writer.py:35] [1000] steps_per_second=1.76", Count(1000)),
            (b"building tree 3 of 12", Count(3, 12)),
            (b"[3/100] 1 tree, 31 leaves", Count(3, 100)),
        ):
            reading = read(line)
            self.assertEqual((reading.step, reading.is_step_whole), (step, True), line)

    def test_the_first_step_is_the_first_beyond_the_restored_one(self):
        progress = self.progress("step 41")
        progress.begin(40)
        self.assertIsNone(progress.first_step_at_ms)
        progress.see([b"resuming at step 40"])
        self.assertIsNone(progress.first_step_at_ms)
        progress.see([b"step 41"])
        first_at_ms = progress.first_step_at_ms
        self.assertIsNotNone(first_at_ms)
        progress._clock.advance(1000)
        progress.see([b"step 42"])
        self.assertEqual(progress.first_step_at_ms, first_at_ms)
        self.assertEqual(progress.first_step, 41)

    def test_the_first_step_may_come_from_the_helper(self):
        progress = self.progress()
        progress.begin(0)
        for step, is_first in ((0, False), (1, True)):
            with open(self.at("progress.json"), "w") as file:
                file.write('{"step": %d}' % step)
            os.utime(self.at("progress.json"), (step, step))
            progress.step()
            self.assertEqual(progress.first_step_at_ms is not None, is_first)

    def test_reads_what_programs_print(self):
        self.assert_progress("step 12/300 loss 2.31", 12, 300, 2.31)
        self.assert_progress("step=12, loss=2.31", 12, None, 2.31)
        self.assert_progress(
            "[2026-01-01 10:00:00] Step: 1200 of 5000 | train_loss: 1.5e-3", 1200, 5000, 0.0015
        )
        self.assert_progress("iter 12", 12)
        self.assert_progress("Iteration: 12", 12)
        self.assert_progress("{'loss': 2.31, 'learning_rate': 5e-05, 'epoch': 0.5}", None, None, 2.31)
        self.assert_progress("global_step=77", 77)
        self.assert_progress("Steps:  4%|█         | 12/300 [00:10<01:00,  1.2it/s]", 12, 300)

    def test_epochs_and_bars_are_no_steps(self):
        for line, fields in (
            (" 40%|████      | 12/300 [00:10<01:00,  1.2it/s]", {"batch": 12, "batchesTotal": 300}),
            ("Epoch 3/10", {"epoch": 3, "epochsTotal": 10, "percent": 20.0}),
            (
                "Epoch 3/10 step 40/100 loss 0.5",
                {"epoch": 3, "epochsTotal": 10, "batch": 40, "batchesTotal": 100, "percent": 20.0, "loss": 0.5},
            ),
        ):
            progress = self.progress(line)
            document = progress.document()
            self.assertIsNone(progress.step())
            expected = dict({"step": None, "stepsTotal": None, "loss": None}, **fields)
            self.assertEqual(document, dict(expected, atMs=document["atMs"]), line)

    def test_what_the_set_up_prints_is_no_progress(self):
        progress = self.progress("step 400/500 loss 1", "Epoch 3/3")
        progress.begin(0)
        self.assertIsNone(progress.document())

    def test_the_first_step_of_a_program_without_steps_is_when_its_bar_grows(self):
        progress = self.progress()
        progress.begin(40)
        bar = "Epoch 3:  %d%%|██    | %d/50 [00:10<01:00,  1.2it/s]"
        progress.see([(bar % (20, 10)).encode()])
        self.assertIsNone(progress.first_step_at_ms)
        progress.see([b"Validation DataLoader 0:  50%|####  | 25/50 [00:10<01:00,  1.2it/s]"])
        self.assertIsNone(progress.first_step_at_ms)
        progress.see([(bar % (22, 11)).encode()])
        self.assertIsNotNone(progress.first_step_at_ms)

    def test_the_beginning_of_an_epoch_is_found_in_a_flood(self):
        progress = self.progress("Epoch 2/4", *["  %d/100 - 2s - loss: 0.5" % batch for batch in range(1, 100)])
        self.assertEqual(progress.document()["percent"], 49.7)

    def test_reads_nothing_into_other_lines(self):
        for line in (
            "",
            "footsteps 12",
            "stepping stones",
            "loading 3/4 shards",
            "step 0.5",
            "lossless 4",
            "epoch",
        ):
            self.assertIsNone(self.progress(line).document(), line)
        self.assertIsNone(self.progress("val_loss 2.0").document())
        self.assertIsNone(self.progress("loss nan").document())
        self.assertIsNone(self.progress("step " + "1" * 10_000).document())

    def test_costs_little_however_much_is_printed(self):
        line = b"INFO trainer step %d loss 2.3456 lr 1e-4 tokens/s 12345 elapsed 1:23:45"
        progress = self.progress()
        began = time.process_time()
        # 64 MB of lines, as many at a time as one read of a pipe brings.
        lines = [line % step for step in range(1024)]
        for _ in range(1000):
            progress.see(lines)
        self.assertLess(time.process_time() - began, 10)
        self.assertEqual(progress.step(), 1023)

    def test_is_quick_about_long_lines(self):
        began = time.process_time()
        for word in ("loss", "loss:", "step", "epoch", "1/2", "train loss", "'loss'"):
            self.progress(*[(word + " " * 16_000)] * 20)
        self.assertLess(time.process_time() - began, 2)
        self.assert_progress("step 7/9 loss 0.5" + " " * 16_000, 7, 9, 0.5)

    def test_a_step_is_better_than_a_bar_and_a_bar_than_an_epoch(self):
        progress = self.progress("5/7 [", "step 100", "7/7 [")
        self.assertEqual(progress.document()["step"], 100)
        self.assertIsNone(progress.document()["stepsTotal"])

    def test_a_step_beside_a_later_epoch_may_be_of_either(self):
        progress = self.progress("epoch 9/10", "step 100")
        self.assertIsNone(progress.step())
        self.assertEqual(progress.document()["batch"], 100)

    def test_only_a_real_step_tells_that_all_is_done(self):
        self.assertFalse(self.progress("step 9/10").is_done())
        self.assertTrue(self.progress("step 10/10").is_done())
        self.assertFalse(self.progress("Epoch 10/10").is_done())
        self.assertFalse(self.progress("100%| 500/500 [").is_done())
        self.assertFalse(self.progress("step 10").is_done())

    def test_the_helper_wins(self):
        progress = self.progress("step 5/10 loss 1")
        self.write("progress.json", json.dumps({"step": 7, "total": 8, "loss": None}))
        self.assertEqual(progress.step(), 7)
        progress.see([b"step 6/10"])
        document = progress.document()
        self.assertEqual((document["step"], document["stepsTotal"], document["loss"]), (7, 8, None))
        self.write("progress.json", "{")
        self.assertEqual(progress.step(), 7)

    def test_a_pipe_in_the_place_of_the_helpers_file_tells_nothing(self):
        os.mkfifo(self.at("progress.json"))
        self.assertIsNone(self.progress().document())
        writer = os.open(self.at("progress.json"), os.O_RDWR)
        self.addCleanup(os.close, writer)
        self.assertIsNone(self.progress().step())

    def test_looks_only_at_the_end_of_a_flood(self):
        progress = self.progress(*["step %d" % step for step in range(100_000)])
        self.assertEqual(progress.step(), 99_999)

    def test_hostile_lines_take_no_time_and_give_no_impossible_figures(self):
        hostile = [
            *(word * (1024 // len(word)) for word in ("step 1 ", "loss: ", " :", "Train: ", "clm", "epoch :", "1", "eval ", "[", "| ", "1% | ")),
            *("%s%%s%s" % pair for pair in (("1|", "|Loss: 1"), ("", "epoch:train:1-1batch"), ("building tree ", " of 9"), ("Train: 1 [", "/1]"))),
            *("[1] learn: %s", "1:\tlearn: %s", "train-loss: %s", "epoch %s", "loss: 1e%s", "12 | loss %s", "1: 1%s, 2%s avg"),
        ]
        for form in hostile:
            line = form.replace("%s", "9" * 400)
            began = time.process_time()
            document = self.progress(*[line] * 20).document() or {}
            self.assertLess(time.process_time() - began, 1, line[:40])
            for name, value in document.items():
                self.assertTrue(value is None or 0 <= value < 2**53, (line[:40], name, value))

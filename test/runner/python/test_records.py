import unittest

from support import FolderTest

from crucible_runner.checkpoint.records import Records, looks_like_text
from crucible_runner.checkpoint.scan import FileStamp, Tree

QUIET_MS = 1_000


class Directory:
    """Files by name, each with a size and whether it is text; looks at them go into the records."""

    def __init__(self):
        self.records = Records(QUIET_MS)
        self.files = {}
        self.text = set()
        self.version = 0

    def write(self, name, size, is_text=True):
        self.version += 1
        self.files[name] = FileStamp(size, self.version, 1, 1, 0o600)
        (self.text.add if is_text else self.text.discard)(name)

    def look(self, at_ms, step=None):
        self.records.observe(Tree(dict(self.files), {}), lambda path: path in self.text, at_ms, step)


class RecordsTest(unittest.TestCase):
    def setUp(self):
        self.directory = Directory()
        self.write, self.look = self.directory.write, self.directory.look

    def is_record(self, name):
        return self.directory.records(name)

    def grow(self, name, pauses, start=100, **options):
        """The file grows on its own next to a big binary one, each time this long after the last time, at such a step."""
        self.write("model.bin", 10_000, is_text=False)
        self.write(name, start, **options)
        at_ms = 0
        self.look(at_ms, 0)
        for count, (pause_ms, step) in enumerate(pauses, 1):
            at_ms += pause_ms
            self.write(name, start + 10 * count, **options)
            self.look(at_ms, step)

    def test_names_tell(self):
        self.write("model.bin", 10, is_text=False)
        self.look(0)
        for name in "train.log", "a/metrics.jsonl", "wandb/run-1/config.yaml", "optuna.db", "loss.csv":
            self.assertTrue(self.is_record(name), name)
        self.assertFalse(self.is_record("model.bin"))

    def test_a_database_or_a_list_of_results_alone_is_the_state_and_a_log_is_not(self):
        for name, is_record in (
            ("study.db", False),
            ("results.jsonl", False),
            ("results.csv", False),
            ("train.log", True),
            ("events.out.tfevents.1.host", True),
        ):
            self.setUp()
            self.write(name, 10)
            self.look(0)
            self.assertEqual(self.is_record(name), is_record, name)
            # Next to another file it is a record.
            self.write("model.bin", 10, is_text=False)
            self.look(100)
            self.assertTrue(self.is_record(name), name)

    def test_what_is_learned_holds_for_all_numbers_and_for_the_state_alone(self):
        self.directory.records.learn("log_1.txt")
        self.assertTrue(self.is_record("log_22.txt"))
        self.assertFalse(self.is_record("log.txt"))
        self.write("log_3.txt", 10), self.write("results.csv", 10)
        self.look(0)
        self.assertFalse(self.is_record("results.csv"))

    def test_a_text_that_grows_again_and_again_beside_the_state_is_a_record(self):
        for name, pauses, is_learned in (
            ("with pauses", [(0, 0), (1_000, 0), (1_000, 0)], True),
            ("with training in between", [(0, 0), (10, 1), (10, 2)], True),
            ("only once", [(0, 0), (1_000, 0)], False),
            ("without pauses or training", [(0, 0), (999, 0), (999, 0)], False),
            ("without steps, without pauses, for long", [(0, None)] + [(500, None)] * 20, True),
            ("not quite long enough", [(0, None)] + [(500, None)] * 19, False),
            ("steps that go back", [(0, 9), (10, 8), (10, 7)], False),
        ):
            with self.subTest(name):
                self.setUp()
                self.grow("progress.txt", pauses)
                self.assertEqual(self.is_record("progress.txt"), is_learned)

    def test_what_is_no_text_may_be_state_that_grows(self):
        self.grow("buffer.bin", [(0, 0), (1_000, 1), (1_000, 2)], is_text=False)
        self.assertFalse(self.is_record("buffer.bin"))

    def test_a_text_with_nothing_bigger_or_binary_beside_it_is_the_state(self):
        for name, size, is_text, is_learned in (
            ("a binary file", 1, False, True),
            ("a text twice as big", 2_006, True, True),
            ("a text that is not", 2_001, True, False),
            ("a log", 9_000, True, False),
        ):
            with self.subTest(name):
                self.setUp()
                self.write("train.log" if name == "a log" else "other", size, is_text)
                for count in range(4):
                    self.write("progress.txt", 1_000 + count)
                    self.look(2_000 * count, count)
                self.assertEqual(self.is_record("progress.txt"), is_learned)

    def test_what_shrinks_is_written_anew_and_no_record_any_more(self):
        pauses = [(0, 0), (1_000, 1), (1_000, 2)]
        for size in 50, 120, 130:
            self.setUp()
            self.grow("progress.txt", pauses)
            self.assertTrue(self.is_record("progress.txt"))
            self.write("progress.txt", size)
            self.look(9_000, 9)
            self.assertFalse(self.is_record("progress.txt"))
            # It must be learned from the beginning.
            self.write("progress.txt", size + 50)
            self.look(18_000, 18)
            self.assertFalse(self.is_record("progress.txt"))

    def test_a_new_file_or_two_at_once_are_a_save_and_not_growth(self):
        self.grow("progress.txt", [(0, 0), (1_000, 1)])
        # Together with the state: from here on it is counted anew.
        self.write("progress.txt", 500), self.write("model.bin", 10_000, is_text=False)
        self.look(5_000, 5)
        self.write("progress.txt", 510)
        self.look(6_000, 6)
        self.write("progress.txt", 520)
        self.look(7_000, 7)
        self.assertFalse(self.is_record("progress.txt"))
        self.write("progress.txt", 530)
        self.look(8_000, 8)
        self.assertTrue(self.is_record("progress.txt"))

    def test_records_that_grow_beside_it_do_not_count(self):
        self.write("train.log", 1)
        self.grow("progress.txt", [(0, 0)])
        for count in range(2):
            self.write("train.log", 10 + count), self.write("progress.txt", 200 + count)
            self.look(2_000 + 2_000 * count, None)
        self.assertTrue(self.is_record("progress.txt"))


class TextTest(FolderTest):
    def test_what_looks_like_text(self):
        self.assertTrue(looks_like_text(self.write("a", "step 1\n")))
        self.assertTrue(looks_like_text(self.write("late", "x" * 512 + "\0")))
        self.assertFalse(looks_like_text(self.write("b", "x" * 511 + "\0")))
        self.assertFalse(looks_like_text(self.at("not-there")))

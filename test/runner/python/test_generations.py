import unittest

from support import RUNNER  # noqa: F401, puts the runner on the path

from crucible_runner.checkpoint.generations import Generation, Generations, Scan, shape_of, unfinished_member
from crucible_runner.checkpoint.pace import Pace, pace_of
from crucible_runner.checkpoint.scan import FileStamp, Selection

QUIET_MS = 1_000


def stamp(size, version, inode=1):
    """A file as it is after a write; `version` stands for the time of that."""
    return FileStamp(size, version, inode, 1, 0o600)


def scan(at_ms, step=None, is_disk_full=False, **files):
    """A look that finds these files, each `(size, version)` or `(size, version, inode)`."""
    named = {path.replace("__", "/").replace("_pt", ".pt"): stamp(*each) for path, each in files.items()}
    selection = Selection(named, {}, ".", None, None, frozenset(named.items()), named)
    return Scan(selection, at_ms, step, is_disk_full)


class SavesTest(unittest.TestCase):
    def saves_of(self, *scans, baseline=(), shapes=()):
        saves = Generations(baseline, shapes, QUIET_MS)
        for each in scans:
            saves.observe(each)
        return saves

    def assert_numbers(self, expected, *scans, **options):
        """The number of the current generation after each look; None before the first."""
        saves = Generations(options.get("baseline", ()), (), QUIET_MS)
        numbers = []
        for each in scans:
            generation = saves.observe(each)
            numbers.append(generation.number if generation is not None else None)
        self.assertEqual(numbers, expected)

    def test_what_belongs_to_the_next_save(self):
        a, b = (100, 1, 1), (100, 1, 2)
        for name, expected, scans in (
            ("nothing has changed", [1, 1], [scan(0, a=a), scan(5_000, a=a)]),
            ("a second file comes after a pause", [1, 1], [scan(0, a=a), scan(5_000, a=a, b=b)]),
            ("a file is replaced by another", [1, 2], [scan(0, a=a), scan(100, a=(100, 2, 7))]),
            ("in place, at once", [1, 1], [scan(0, a=a), scan(999, a=(100, 2, 1))]),
            ("in place, after a pause", [1, 2], [scan(0, a=a), scan(1_000, a=(100, 2, 1))]),
            ("it grows a little after a pause", [1, 2], [scan(0, a=a), scan(1_000, a=(105, 2, 1))]),
            ("it grows much after a pause", [1, 1], [scan(0, a=a), scan(1_000, a=(106, 2, 1))]),
            ("it grows much after training", [1, 2], [scan(0, 4, a=a), scan(1_000, 5, a=(200, 2, 1))]),
            ("it grows much after a pause, at the same step", [1, 1], [scan(0, 5, a=a), scan(1_000, 5, a=(200, 2, 1))]),
            ("it grows much after training, at once", [1, 1], [scan(0, 4, a=a), scan(999, 5, a=(200, 2, 1))]),
            ("it grows much, and one step is not known", [1, 1], [scan(0, a=a), scan(1_000, 5, a=(200, 2, 1))]),
            ("it shrinks after a pause", [1, 2], [scan(0, a=a), scan(1_000, a=(10, 2, 1))]),
            ("the next of a kind", [1, 2], [scan(0, step_1_pt=a), scan(1, step_1_pt=a, step_2_pt=b)]),
            ("more of the same unit", [1, 1], [scan(0, step_1__a=a), scan(1, step_1__a=a, step_1__b=b)]),
            ("the next number, after training", [1, 2], [scan(0, 4, m1_pt=a), scan(1_000, 5, m1_pt=a, m2_pt=b)]),
            ("the next number, at once", [1, 1], [scan(0, 4, m1_pt=a), scan(999, 5, m1_pt=a, m2_pt=b)]),
            ("the next number, at the same step", [1, 1], [scan(0, 5, m1_pt=a), scan(1_000, 5, m1_pt=a, m2_pt=b)]),
            ("the next numbered folder, after training", [1, 2], [scan(0, 4, m1__a=a), scan(1_000, 5, m1__a=a, m2__a=b)]),
            ("more of the same number, after training", [1, 1], [scan(0, 4, m1__x=a), scan(1_000, 5, m1__x=a, m1__y=b)]),
            ("another part of another number", [1, 1], [scan(0, 4, m1__x=a), scan(1_000, 5, m1__x=a, m2__y=b)]),
            ("the other of two, after training", [1, 2], [scan(0, 4, a_pt=a), scan(1_000, 5, a_pt=a, b_pt=b)]),
            ("the same folder, after training", [1, 2], [scan(0, 4, m1__v1=a), scan(1_000, 5, m1__v1=a, m1__v2=b)]),
            ("another piece, after training", [1, 1], [scan(0, 4, rank_1_pt=a), scan(1_000, 5, rank_1_pt=a, rank_2_pt=b)]),
            ("another kind", [1, 1], [scan(0, step_1_pt=a), scan(1, step_1_pt=a, epoch_2_pt=b)]),
        ):
            with self.subTest(name):
                self.assert_numbers(expected, *scans)

    def test_what_was_deleted_before_the_next_save_belongs_to_the_one_before(self):
        settings, old, new = (5, 1, 1), (100, 1, 2), (100, 9, 3)
        for name, expected, then in (
            ("the next number", 2, scan(3_900, 5, config=settings, m2_pt=new)),
            ("at the step of the last one", 1, scan(3_900, 4, config=settings, m2_pt=new)),
            ("another name", 1, scan(3_900, 5, config=settings, other=new)),
        ):
            with self.subTest(name):
                begun = scan(0, 4, config=settings, m1_pt=old)
                deleted = scan(3_000, 5, config=settings)
                saves = self.saves_of(begun, deleted, then)
                self.assertEqual(saves.current.number, expected)

    def test_where_no_steps_are_told_what_has_proved_complete_is_followed_by_the_next(self):
        old, new = (100, 1, 1), (100, 9, 2)
        for is_proven, step, number in ((False, None, 1), (True, None, 2), (True, 4, 1)):
            saves = self.saves_of(scan(0, step, m1_pt=old))
            if is_proven:
                saves.accept(saves.current)
            self.assertEqual(saves.observe(scan(3_000, step, m1_pt=old, m2_pt=new)).number, number)

    def test_files_of_the_start_and_of_earlier_saves_belong_to_none(self):
        self.assert_numbers([None, 1], scan(0, a=(1, 1)), scan(1, a=(1, 1), b=(1, 2)), baseline=[stamp(1, 1)])
        saves = self.saves_of(scan(0, a=(9, 1, 1)), scan(1, a=(9, 2, 2), old=(9, 1, 1)))
        self.assertEqual(list(saves.current.files), ["a"])
        # What was only moved stays what it was.
        saves.observe(scan(2, a=(9, 2, 2), older=(9, 1, 1), b=(9, 3, 3)))
        self.assertEqual(sorted(saves.current.files), ["a", "b"])

    def test_what_a_process_still_holds_open_is_written_on_and_not_anew(self):
        for held, number in ({"a"}, 1), ({"b"}, 2), (set(), 2):
            for step in None, 5:
                saves = self.saves_of(scan(0, step and 4, a=(100, 1)))
                saves.current.held = held
                self.assertEqual(saves.observe(scan(2_000, step, a=(100, 2))).number, number)
        saves = self.saves_of(scan(0, a=(100, 1)))
        saves.current.held = {"a"}
        saves.observe(scan(2_000, a=(100, 2)))
        # It must be asked again after each change.
        self.assertEqual(saves.current.held, set())
        self.assertEqual(saves.observe(scan(4_000, a=(100, 3))).number, 2)

    def test_remembers_what_was_seen_of_a_save(self):
        saves = self.saves_of(scan(0, 3, a=(10, 1, 1)), scan(500, 4, a=(10, 1, 1)), scan(900, 5, a=(10, 1, 1), b=(10, 2, 2)))
        current = saves.current
        told = (current.first_ms, current.changed_ms, current.save_ms, current.step, current.is_superseded)
        self.assertEqual(told, (0, 900, 900, 5, False))
        saves.observe(scan(1_000, 5, a=(10, 3, 3), b=(10, 2, 2)))
        self.assertEqual((current.is_superseded, list(saves.closed), saves.current.number), (True, [current], 2))
        self.assertEqual(list(saves.current.files), ["a"])
        # A file that goes is a change, too.
        last = scan(2_000, 6, b=(10, 2, 2))
        saves.observe(last)
        self.assertIs(saves.current.selection, last.selection)
        self.assertEqual((saves.current.files, saves.current.changed_ms), ({}, 2_000))

    def test_a_full_disk_makes_doubtful_what_was_written_on_it(self):
        saves = self.saves_of(scan(0, a=(10, 1)), scan(500, is_disk_full=True, a=(10, 1)))
        self.assertFalse(saves.current.is_doubtful)
        saves.observe(scan(600, is_disk_full=True, a=(10, 1), b=(10, 2, 2)))
        self.assertTrue(saves.current.is_doubtful)
        saves.observe(scan(700, a=(10, 1), b=(10, 3, 2)))
        self.assertTrue(saves.current.is_doubtful)

    def test_only_the_last_saves_are_kept(self):
        saves = self.saves_of(*(scan(each, a=(10, each, each)) for each in range(9)))
        self.assertEqual([each.number for each in saves.closed], [5, 6, 7, 8])

    def test_the_interval_is_the_usual_time_between_beginnings(self):
        for begun, expected in (
            ([0], None),
            ([0, 700], 700),
            ([0, 700, 1_500, 90_000], 800),
            # The oldest ones do not count.
            ([0, 90_000, 180_000, 180_100, 180_200, 180_300, 180_400], 100),
        ):
            saves = self.saves_of(*(scan(at, a=(10, at, at)) for at in begun))
            self.assertEqual(saves.interval_ms(), expected)

    def test_small_files_beside_the_saves_do_not_shorten_the_interval(self):
        big, scans = (100, 1, 1), []
        for at in range(30):
            if at % 10 == 0:
                big = (100, at, 100 + at)
            scans.append(scan(at * 700, a=big, metrics=(49 + (at == 27), at, 1_000 + at)))
        saves = self.saves_of(*scans[:26])
        self.assertEqual(saves.interval_ms(), 7_000)
        # As soon as one has half of the bytes it is a save.
        saves = self.saves_of(*scans)
        self.assertLess(saves.interval_ms(), 7_000)

    def test_settings_that_were_written_long_before_do_not_lengthen_the_interval(self):
        settings = (10, 1, 1)
        saves = self.saves_of(
            scan(0, 1, config=settings),
            scan(9_000, 5, config=settings, m1_pt=(100, 2, 2)),
            scan(12_000, 8, config=settings, m1_pt=(100, 2, 2), m2_pt=(100, 3, 3)),
        )
        self.assertEqual(saves.interval_ms(), 3_000)

    def test_a_pause_within_a_save_is_no_interval(self):
        both = dict(a=(10, 1, 1), b=(10, 2, 2))
        saves = self.saves_of(scan(0, a=both["a"]), scan(2_000, **both), scan(6_000, a=(10, 3, 3), b=both["b"]))
        self.assertEqual((saves.closed[0].save_ms, saves.closed[0].burst_ms, saves.interval_ms()), (2_000, 2_000, 6_000))

    def test_when_a_save_had_begun_is_told_by_its_oldest_file(self):
        saves = self.saves_of(scan(0, 4, a=(10, 700, 1), b=(10, 600, 2)), scan(100, 4, a=(10, 900, 1), b=(10, 900, 2)))
        self.assertEqual(saves.current.written_ns, 600)
        # It continues after a pause, at the same step.
        saves.observe(scan(2_000, 4, a=(10, 900, 1), b=(20, 2_000, 2)))
        self.assertEqual((saves.current.number, saves.current.written_ns), (1, 600))
        # A small file next to it is not the save.
        saves.observe(scan(3_000, 5, a=(10, 900, 1), b=(20, 2_000, 2), metrics=(9, 3_100, 9)))
        self.assertEqual((saves.current.number, saves.current.written_ns), (1, 600))
        # It cannot be told from the one before, and is another.
        saves.observe(scan(4_000, 6, c=(16, 4_100, 4), d=(5, 4_000, 3), a=(10, 900, 1), b=(20, 2_000, 2)))
        self.assertEqual((saves.current.number, saves.current.written_ns), (1, 4_000))

    def test_where_no_save_is_told_from_the_next_the_bursts_tell_the_interval(self):
        pool = {"f%d" % each: (10, each, each) for each in range(4)}
        names = list(pool)
        scans = [scan(at, **{name: pool[name] for name in names[: index + 1]}) for index, at in enumerate((0, 900, 2_500, 4_500))]
        saves = self.saves_of(*scans)
        # From 0 to 900 is no pause: it is the same burst.
        self.assertEqual((saves.current.number, saves.interval_ms(), saves.pause_ms), (1, 2_500, 2_000))
        self.assertEqual((saves.current.first_ms, saves.current.burst_ms), (0, 4_500))


class MembersTest(unittest.TestCase):
    def test_the_member_written_last_must_have_what_those_before_it_have(self):
        for name, paths, missing in (
            ("the first", "1/m 1/done 2/m", "1/done"),
            ("all of it", "1/m 1/done 2/m 2/done", None),
            ("more", "1/m 2/m 2/done", None),
            ("others", "1/m 1/n 2/c", None),
            ("those before it differ", "1/m 1/n 2/m 3/m", None),
            ("the two before it differ", "1/m 1/n 1/o 2/m 2/n 3/m", None),
            ("of another kind of folder", "y/1/m y/1/n x/1/m y/2/m", "y/1/n"),
            ("only the two before it count", "1/m 2/m 2/n 3/m 3/n 4/m", "3/n"),
            ("flat files", "model_1 optimizer_1 model_2", "optimizer_1"),
            ("of another folder", "x/1/m x/1/n y/2/m", None),
            ("records do not count", "1/m 1/train.log 2/m", None),
            ("steps differ in their folders", "step_1/m step_1/n step_2/m", None),
            ("no numbers", "a b", None),
        ):
            with self.subTest(name):
                files = {path: stamp(1, version) for version, path in enumerate(paths.split())}
                words = missing and "%s has no matching file yet" % missing
                self.assertEqual(unfinished_member(files), words)


class ShapesTest(unittest.TestCase):
    def saves(self, *totals):
        """Complete ones of so many bytes each, oldest first."""
        return Generations((), [shape_of({"model.pt": total}) for total in reversed(totals)], QUIET_MS)

    def test_what_covers_an_earlier_save(self):
        older = {"model-1.pt": 80, "optimizer-1.pt": 20}
        for name, sizes, covers in (
            ("the same", {"model-2.pt": 80, "optimizer-2.pt": 20}, True),
            ("more files", {"model-2.pt": 80, "optimizer-2.pt": 20, "ema-2.pt": 1}, True),
            ("nine tenths", {"model-2.pt": 70, "optimizer-2.pt": 20}, True),
            ("less than nine tenths", {"model-2.pt": 69, "optimizer-2.pt": 20}, False),
            ("a file less", {"model-2.pt": 500}, False),
            ("bytes of another file do not count", {"model-2.pt": 60, "optimizer-2.pt": 20, "ema-2.pt": 500}, False),
        ):
            self.assertEqual(shape_of(sizes).covers(shape_of(older)), covers, name)

    def test_bytes_of_files_that_differ_in_their_numbers_are_added_up(self):
        self.assertEqual(shape_of({"fold_1.pt": 3, "fold_2.pt": 4, "rank_0.pt": 1, "rank_1.pt": 1}).total, 9)
        self.assertEqual(len(shape_of({"fold_1.pt": 3, "fold_2.pt": 4, "rank_0.pt": 1, "rank_1.pt": 1}).sizes), 3)

    def test_one_complete_save_that_is_as_small_is_enough(self):
        saves = self.saves(1_000, 100, 1_000)
        for size, is_like in (1_000, True), (90, True), (89, False):
            self.assertEqual(saves.is_like_complete(shape_of({"model.pt": size})), is_like, size)

    def test_far_less_than_any_complete_save_is_minor(self):
        saves = self.saves(1_000, 400)
        for sizes, is_minor in (
            ({"config.json": 199}, True),
            ({"config.json": 200}, False),
            ({"model.pt": 400}, False),
            ({"model.pt": 1}, True),
        ):
            self.assertEqual(saves.is_minor(shape_of(sizes)), is_minor, sizes)
        self.assertFalse(self.saves().is_minor(shape_of({"config.json": 1})))
        # Like an empty complete one: it holds all of it.
        self.assertFalse(Generations((), [shape_of({}), shape_of({"m": 9})], QUIET_MS).is_minor(shape_of({"c": 1})))

    def test_only_the_newest_complete_saves_count(self):
        saves = self.saves(10, 1_000, 1_000, 1_000, 1_000, 1_000)
        self.assertFalse(saves.is_like_complete(shape_of({"model.pt": 10})))
        self.assertTrue(saves.is_first_kind is False and self.saves().is_first_kind)

    def test_a_save_that_proved_complete_is_compared_with_from_then_on(self):
        saves = self.saves(1_000)
        small = Generation(1, {"model.pt": stamp(10, 1)}, 0, None)
        saves.accept(small)
        saves.accept(small)
        self.assertTrue(saves.is_like_complete(small.shape))
        self.assertEqual(len(saves.complete_shapes), 2)

    def test_saves_have_become_smaller_when_the_two_before_were_as_small(self):
        def saves_of(*sizes):
            saves = self.saves(1_000)
            for number, size in enumerate(sizes):
                saves.observe(scan(number, a=(size, number, number)))
            return saves

        same = shape_of({"a": 100})
        self.assertTrue(saves_of(100, 100, 100).is_like_before(same))
        self.assertTrue(saves_of(500, 100, 105, 100).is_like_before(same))
        for sizes in (100, 100), (100, 500, 100), (500, 100, 100), (50, 100, 100):
            self.assertFalse(saves_of(*sizes).is_like_before(same), sizes)


def _saved(attempt, step, at_ms, is_step_known=True):
    return {"attempt": attempt, "step": step, "savedAtMs": at_ms, "isStepKnown": is_step_known}


class PaceTest(unittest.TestCase):
    def test_reads_the_usual_pause_from_all_attempts(self):
        for manifests, expected in (
            ([], Pace()),
            ([_saved(1, 10, 0)], Pace()),
            ([_saved(1, 10, 0), _saved(1, 20, 700)], Pace(700, 10)),
            # The clocks of two machines are not compared, their steps are.
            ([_saved(1, 10, 0), _saved(2, 20, 700)], Pace(None, 10)),
            ([_saved(1, 1, 0, False), _saved(2, 2, 700, False)], Pace()),
            # The one in between was deleted; the order does not count.
            ([_saved(2, 50, 99), _saved(1, 40, 3_000), _saved(1, 20, 1_000), _saved(1, 10, 0)], Pace(1_000, 10)),
            # The last one was made because the machine was to go.
            ([_saved(each, step, 0) for each, step in enumerate((10, 20, 30, 37))], Pace(None, 10)),
            # The same step of two attempts is one step.
            ([_saved(1, 10, 0), _saved(2, 10, 0), _saved(3, 20, 0)], Pace(None, 10)),
        ):
            self.assertEqual(pace_of(manifests), expected)

    def test_steps_are_turned_into_time_where_no_time_is_known(self):
        self.assertEqual(Pace(700, 10).usual_ms(200.0), 700)
        self.assertEqual(Pace(None, 10).usual_ms(200.5), 2_005)
        self.assertIsNone(Pace(None, 10).usual_ms(None))
        self.assertIsNone(Pace(None, None).usual_ms(200.0))

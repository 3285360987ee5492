import json
import os
import unittest

from support import GOLDEN, FakeClock, paid_for

from crucible_runner.dates import Dates
from crucible_runner.control.lease import Lease
from crucible_runner.control.limits import Limits, Spent, affordable_ms
from crucible_runner.control.stop import Stop

NONE = {"seq": 0, "deadlineAtMs": None, "budget": None}
NOTHING_YET = Spent(0, 0)
DATES = Dates(FakeClock(0))
HOUR_MS = 3_600_000
STEPS_MS = (2 * HOUR_MS, -2 * HOUR_MS, 30 * 24 * HOUR_MS, -30 * 24 * HOUR_MS)


class LeaseTest(unittest.TestCase):
    def test_counts_from_the_moment_the_answered_beat_was_sent(self):
        lease = Lease(10_000)
        lease.sent(1, 5_000)
        lease.sent(2, 9_000)
        self.assertTrue(lease.renew({"seq": 1, "answersBeat": 1, "ttlMs": 7_000}))
        self.assertEqual(lease.lapses_at_ms, 12_000)
        self.assertEqual(lease.seq, 1)

    def test_is_never_made_shorter(self):
        lease = Lease(10_000)
        lease.sent(1, 0)
        self.assertTrue(lease.renew({"seq": 1, "answersBeat": 1, "ttlMs": 20}))
        self.assertEqual(lease.lapses_at_ms, 10_000)

    def test_ignores_answers_to_beats_never_sent_or_long_ago(self):
        lease = Lease(0)
        self.assertFalse(lease.renew({"seq": 1, "answersBeat": 1, "ttlMs": 1_000}))
        for beat in range(1, 1_002):
            lease.sent(beat, beat)
        self.assertFalse(lease.renew({"seq": 2, "answersBeat": 1, "ttlMs": 1_000}))
        self.assertTrue(lease.renew({"seq": 3, "answersBeat": 2, "ttlMs": 1_000}))
        self.assertEqual(lease.lapses_at_ms, 1_002)


class LimitsTest(unittest.TestCase):
    def test_the_earliest_limit_counts(self):
        document = {"seq": 0, "deadlineAtMs": 2_000_000, "budget": paid_for(5_000)}
        for wall_ms, stop in ((1_000_000, (5_100, "budget")), (1_999_000, (2_000, "deadline"))):
            limits = Limits(document, Spent(100, 0), Dates(FakeClock(1_000, wall_ms)))
            self.assertEqual(limits.hard_stop(), stop)
        self.assertIsNone(Limits(NONE, NOTHING_YET, DATES).hard_stop())

    def test_the_highest_number_counts(self):
        limits = Limits(NONE, NOTHING_YET, DATES)
        self.assertTrue(limits.obey({"seq": 2, "deadlineAtMs": None, "budget": paid_for(7_000)}))
        self.assertFalse(limits.obey({"seq": 1, "deadlineAtMs": None, "budget": paid_for(1_000)}))
        self.assertFalse(limits.obey({"seq": 2, "deadlineAtMs": None, "budget": paid_for(1_000)}))
        self.assertEqual(limits.hard_stop(), (7_000, "budget"))

    def test_what_was_told_last_moves_the_stop_out_and_no_older_word_moves_it_back(self):
        limits = Limits({"seq": 0, "deadlineAtMs": None, "budget": paid_for(100_000)}, NOTHING_YET, DATES)
        self.assertEqual(limits.hard_stop(), (100_000, "budget"))
        self.assertTrue(limits.learn(Spent(60_000, 20)))
        self.assertEqual(limits.hard_stop(), (140_000, "budget"))
        self.assertFalse(limits.learn(Spent(50_000, 10)))
        self.assertFalse(limits.learn(Spent(60_000, 10)))
        self.assertEqual(limits.hard_stop(), (140_000, "budget"))
        limits.obey({"seq": 1, "deadlineAtMs": None, "budget": paid_for(30_000)})
        self.assertEqual(limits.hard_stop(), (70_000, "budget"))

    def test_what_is_free_has_no_stop(self):
        budget = {"microUsd": 0, "priceMaxMicroUsdPerHour": 0}
        self.assertIsNone(Limits({"seq": 0, "deadlineAtMs": None, "budget": budget}, NOTHING_YET, DATES).hard_stop())

    def test_pays_for_whole_steps_of_billing(self):
        self.assertEqual(affordable_ms(3_599, 3_600, 60_000), 59 * 60_000)
        self.assertEqual(affordable_ms(59, 3_600, 60_000), 0)
        budget = {"microUsd": 119, "priceMaxMicroUsdPerHour": 3_600, "billedInStepsOfMs": 60_000}
        limits = Limits({"seq": 0, "deadlineAtMs": None, "budget": budget}, Spent(1_000, 0), DATES)
        self.assertEqual(limits.hard_stop(), (61_000, "budget"))

    def test_reckons_as_the_control_plane_does(self):
        with open(os.path.join(GOLDEN, "vectors", "affordable.json"), encoding="utf-8") as file:
            for left, price, paid_ms in json.load(file):
                self.assertEqual(affordable_ms(left, price), paid_ms, (left, price))


class StopTest(unittest.TestCase):
    def setUp(self):
        self.clock = FakeClock(mono_ms=0)
        self.dates = Dates(self.clock)
        self.limits = Limits(NONE, NOTHING_YET, self.dates)
        self.lease = Lease(1_000_000)
        self.stop = Stop(self.clock, {"drainMs": 10_000, "powerOffMs": 1_000}, self.limits, self.lease, self.dates)

    def test_the_last_look_that_found_no_notice_is_the_one_before_the_first_that_did(self):
        self.assertIsNone(self.stop.no_notice_at_ms)
        asked_at_ms = self.clock.wall_ms()
        self.stop.on_no_notice(asked_at_ms)
        self.stop.on_notice(asked_at_ms + 120_000)
        self.stop.on_no_notice(asked_at_ms + 1_000)
        self.assertEqual(self.stop.no_notice_at_ms, asked_at_ms)

    def test_nothing_asks_for_it(self):
        self.clock.advance(999_999)
        self.assertIsNone(self.stop.poll())

    def test_the_window_is_the_least_of_all(self):
        self.stop.on_document("cancelled", 60_000)
        self.assertEqual(self.stop.poll(), ("cancelled", 0, 10_000))
        self.clock.advance(2_000)
        self.stop.on_notice(self.clock.wall_ms() + 3_000)
        self.assertEqual(self.stop.poll(), ("cancelled", 0, 4_700))

    def test_is_only_ever_made_shorter(self):
        self.stop.on_notice(self.clock.wall_ms() + 2_000)
        self.assertEqual(self.stop.poll(), ("interrupted", 0, 1_800))
        self.stop.on_document("migrated", 60_000)
        self.stop.on_notice(self.clock.wall_ms() + 60_000)
        self.assertEqual(self.stop.poll(), ("interrupted", 0, 1_800))

    def test_ranks_reasons_found_at_the_same_look(self):
        self.clock.advance(1_000_000)
        self.stop.on_signal()
        self.assertEqual(self.stop.poll().reason, "interrupted")
        other = Stop(self.clock, {"drainMs": 10_000, "powerOffMs": 1_000}, self.limits, self.lease, self.dates)
        other.on_signal()
        other.on_document("deadline", 5_000)
        self.assertEqual(other.poll().reason, "deadline")

    def test_begins_early_enough_before_the_hard_stop(self):
        self.limits.obey({"seq": 1, "deadlineAtMs": None, "budget": paid_for(100_000)})
        self.clock.advance(88_999)
        self.assertIsNone(self.stop.poll())
        self.clock.advance(1)
        self.assertEqual(self.stop.poll(), ("budget", 89_000, 99_000))

    def usable_for(self, left_ms, upload_ms=0):
        until_ms = self.clock.wall_ms() + left_ms
        order = {"drainMs": 10_000, "powerOffMs": 1_000, "usableUntilMs": until_ms}
        return Stop(self.clock, order, self.limits, self.lease, self.dates, upload_ms=lambda: upload_ms)

    def test_is_over_before_the_reservation_ends_whatever_the_clocks(self):
        stop = self.usable_for(100_000)
        self.clock.advance(58_999)
        self.assertIsNone(stop.poll())
        self.clock.advance(1)
        self.assertEqual(stop.poll(), ("expired", 59_000, 69_000))

    def test_begins_the_earlier_the_longer_its_checkpoints_take_to_go_up(self):
        stop = self.usable_for(100_000, upload_ms=20_000)
        self.clock.advance(8_999)
        self.assertIsNone(stop.poll())
        self.clock.advance(1)
        drain = stop.poll()
        self.assertEqual(drain, ("expired", 9_000, 69_000))
        self.assertEqual(drain.kill_at_ms(20_000), 39_000)

    def test_is_over_before_the_run_limit_of_the_provider(self):
        self.stop.on_run_limit(self.clock.mono_ms() + 100_000)
        self.stop.on_run_limit(self.clock.mono_ms() + 900_000)
        self.clock.advance(58_999)
        self.assertIsNone(self.stop.poll())
        self.clock.advance(1)
        self.assertEqual(self.stop.poll(), ("expired", 59_000, 69_000))

    def test_a_reservation_that_lasts_longer_is_used_for_longer(self):
        stop = self.usable_for(100_000)
        stop.on_usable_until(self.clock.wall_ms() + 200_000)
        self.clock.advance(158_999)
        self.assertIsNone(stop.poll())
        self.clock.advance(1)
        self.assertEqual(stop.poll(), ("expired", 159_000, 169_000))

    def test_one_that_ends_at_once_leaves_no_window(self):
        self.assertEqual(self.usable_for(0).poll(), ("expired", 0, 0))

    def test_begins_when_the_lease_lapses(self):
        self.clock.advance(1_000_000)
        self.assertEqual(self.stop.poll(), ("lease", 1_000_000, 1_010_000))

    def test_has_no_window_left_when_the_machine_slept_past_it(self):
        self.clock.advance(5_000_000)
        drain = self.stop.poll()
        self.assertEqual(drain, ("lease", 5_000_000, 5_000_000))
        self.assertEqual(drain.kill_at_ms(0), 5_000_000)

    def test_a_drain_is_not_undone_by_new_limits(self):
        self.limits.obey({"seq": 1, "deadlineAtMs": None, "budget": paid_for(100_000)})
        self.clock.advance(95_000)
        self.assertEqual(self.stop.poll(), ("budget", 95_000, 99_000))
        self.limits.obey({"seq": 2, "deadlineAtMs": None, "budget": paid_for(900_000)})
        self.assertEqual(self.stop.poll(), ("budget", 95_000, 99_000))

    def test_keeps_time_for_the_upload_but_never_more_than_half(self):
        self.stop.on_document("migrated", 8_000)
        drain = self.stop.poll()
        self.assertEqual(drain.kill_at_ms(0), 8_000)
        self.assertEqual(drain.kill_at_ms(2_000), 4_500)
        self.assertEqual(drain.kill_at_ms(60_000), 4_000)

    def test_a_signal_that_says_sooner_shortens_and_the_same_one_again_does_not(self):
        told = [("cancelled", 8_000)]
        order = {"drainMs": 10_000, "powerOffMs": 1_000}
        stop = Stop(self.clock, order, self.limits, self.lease, self.dates, drain_stored_here=lambda: told[0])
        stop.on_signal()
        self.assertEqual(stop.poll(), ("cancelled", 0, 8_000))
        self.clock.advance(1_000)
        told[0] = ("cancelled", 2_000)
        stop.on_signal()
        self.assertEqual(stop.poll(), ("cancelled", 0, 3_000))
        self.clock.advance(1_000)
        stop.on_signal()
        self.assertEqual(stop.poll(), ("cancelled", 0, 3_000))

    def test_a_document_that_says_now_ends_a_drain_under_way(self):
        self.stop.on_signal()
        self.assertEqual(self.stop.poll().window_end_ms, 10_000)
        self.clock.advance(1_000)
        self.stop.on_document("superseded", 0)
        self.assertEqual(self.stop.poll(), ("interrupted", 0, 1_000))


class SetClockTest(unittest.TestCase):
    """Dates of one hour from now, and a wall clock that is set."""

    def each(self):
        for step_ms in STEPS_MS:
            self.clock = FakeClock(mono_ms=0)
            self.dates = Dates(self.clock)
            self.at_ms = self.clock.wall_ms() + HOUR_MS
            self.limits = Limits(NONE, NOTHING_YET, self.dates)
            yield step_ms

    def stop(self, **order):
        order = dict(order, drainMs=10_000, powerOffMs=1_000)
        return Stop(self.clock, order, self.limits, Lease(10 * HOUR_MS), self.dates)

    def step(self, ms):
        self.clock.set_wall(self.clock.wall_ms() + ms)

    def assert_ends_after(self, stop, ms, reason):
        self.clock.advance(ms - 1)
        self.assertIsNone(stop.poll())
        self.clock.advance(1)
        self.assertEqual(stop.poll().reason, reason)

    def test_moves_no_deadline(self):
        for step_ms in self.each():
            self.limits.obey(dict(NONE, seq=1, deadlineAtMs=self.at_ms))
            stop = self.stop()
            self.step(step_ms)
            self.assert_ends_after(stop, HOUR_MS - 11_000, "deadline")

    def test_moves_no_end_of_a_reservation(self):
        for step_ms in self.each():
            stop = self.stop(usableUntilMs=self.at_ms)
            self.step(step_ms)
            self.assert_ends_after(stop, HOUR_MS - 41_000, "expired")

    def test_moves_no_end_that_a_lease_repeats(self):
        for step_ms in self.each():
            stop = self.stop()
            stop.on_usable_until(self.at_ms)
            self.step(step_ms)
            stop.on_usable_until(self.at_ms)
            self.assert_ends_after(stop, HOUR_MS - 41_000, "expired")

    def test_moves_no_run_limit(self):
        for step_ms in self.each():
            stop = self.stop()
            stop.on_run_limit(HOUR_MS)
            self.step(step_ms)
            self.assert_ends_after(stop, HOUR_MS - 41_000, "expired")

    def test_shortens_no_window_of_a_notice_that_is_seen_again(self):
        for step_ms in self.each():
            stop = self.stop()
            notice_ms = self.clock.wall_ms() + 8_000
            stop.on_notice(notice_ms)
            self.assertEqual(stop.poll(), ("interrupted", 0, 7_200))
            self.step(step_ms)
            stop.on_notice(notice_ms)
            self.assertEqual(stop.poll(), ("interrupted", 0, 7_200))

    def test_moves_no_stop_of_the_budget(self):
        for step_ms in self.each():
            self.limits.obey(dict(NONE, seq=1, budget=paid_for(HOUR_MS)))
            self.step(step_ms)
            self.assertEqual(self.limits.hard_stop(), (HOUR_MS, "budget"))

    def test_that_the_store_contradicts_converts_no_new_date(self):
        for step_ms in self.each():
            self.dates.on_store_date(self.clock.wall_ms() + 1_000)
            true_ms = self.clock.wall_ms()
            self.step(step_ms)
            self.dates.on_store_date(true_ms)
            self.limits.obey(dict(NONE, seq=1, deadlineAtMs=self.at_ms))
            self.assert_ends_after(self.stop(), HOUR_MS - 11_000, "deadline")

    def test_that_the_store_shares_moves_no_date_read_before(self):
        for step_ms in self.each():
            self.dates.on_store_date(self.clock.wall_ms())
            self.limits.obey(dict(NONE, seq=1, deadlineAtMs=self.at_ms))
            stop = self.stop()
            self.step(step_ms)
            self.dates.on_store_date(self.clock.wall_ms())
            self.assertEqual(self.limits.hard_stop(), (HOUR_MS, "deadline"))
            self.limits.obey(dict(NONE, seq=2, deadlineAtMs=self.at_ms + step_ms))
            self.assert_ends_after(stop, HOUR_MS - 11_000, "deadline")

    def test_that_the_store_confirms_converts_each_date_anew(self):
        """A machine's clock is set some time after its start."""
        for step_ms in self.each():
            self.step(step_ms)
            self.limits.obey(dict(NONE, seq=1, deadlineAtMs=self.at_ms))
            self.step(-step_ms)
            self.dates.on_store_date(self.clock.wall_ms() + 1_000)
            self.assert_ends_after(self.stop(), HOUR_MS - 11_000, "deadline")

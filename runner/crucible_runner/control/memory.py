"""State that a restarted runner must keep in the same directory: when it began, how long its lease lasts, and its cost.

Without this state every start would bring a new lease and a new budget, and neither the fence nor the money cap would hold.
"""

import json
from typing import Optional

from ..clock import CLOCK_SLACK_MS, Clock
from ..paths import write_whole
from .limits import Spent

# Time from the start of a container's billing to its first process.
_UNSEEN_MS = 30_000
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str:
    """Distinguishes one boot of the machine from the next; empty when the system does not report it."""
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


class Memory:
    """Instants are monotonic, of the present boot; those of an earlier boot are converted through the wall clock."""

    def __init__(self, path: str, attempt_id: str, clock: Clock, boot: str) -> None:
        """Raises `ValueError` when the directory belongs to another attempt."""
        self._path = path
        self._attempt_id = attempt_id
        self._clock = clock
        self._boot = boot
        told = self._read()
        self.is_first_start = told is None
        self.started_ms = clock.mono_ms()
        self.started_wall_ms = clock.wall_ms()
        self.lease_until_ms: Optional[int] = None
        self.spent: Optional[Spent] = None
        if told is not None:
            if told["attemptId"] != attempt_id:
                raise ValueError("the directory of %s belongs to %s" % (path, told["attemptId"]))
            shift_ms = self._shift_ms(told)
            self.started_ms = min(self.started_ms, told["startedMs"] + shift_ms)
            self.started_wall_ms = told["startedWallMs"]
            if told["leaseUntilMs"] is not None:
                self.lease_until_ms = told["leaseUntilMs"] + shift_ms
            if told["spent"] is not None:
                self.spent = Spent(told["spent"][0] + shift_ms, told["spent"][1])

    def began_at(self, started_ms: int, started_wall_ms: int) -> None:
        """The runner's process began at this time, on both clocks; its timekeeper counts from the same instants."""
        self.started_ms, self.started_wall_ms = started_ms, started_wall_ms

    def ordered_ms(self, issued_at_ms: int) -> int:
        """Returns when the order was issued, on the monotonic clock. A wall clock that is behind makes it no later than the first start."""
        return self.started_ms - max(0, self.started_wall_ms - issued_at_ms)

    def began_ms(self, order: dict, age_ms: Optional[int]) -> int:
        """Returns when the machine's time began, on the monotonic clock: when the order was issued, or, where it may have been queued
        before (`queueMs`), when its billing began at the earliest: a provider may bill it for a while before its first process starts.
        `age_ms` is the age of that process now; None when it is unknown.
        """
        ordered_ms = self.ordered_ms(order["issuedAtMs"])
        if "queueMs" not in order:
            return ordered_ms
        booted_ms = self.started_ms if age_ms is None else self._clock.mono_ms() - age_ms
        return max(ordered_ms, min(self.started_ms, booted_ms) - _UNSEEN_MS)

    def left_to_start_ms(self, order: dict, began_ms: int) -> int:
        """Returns the time left to start the command; negative when it is too late. A queued machine counts from its own beginning, and must
        not begin after the longest queue."""
        within_ms, wall_ms = order["startWithinMs"] + CLOCK_SLACK_MS, self._clock.wall_ms()
        left_ms = order["issuedAtMs"] + order.get("queueMs", 0) + within_ms - wall_ms
        return min(left_ms, began_ms + within_ms - self._clock.mono_ms()) if "queueMs" in order else left_ms

    def save(
        self, lease_until_ms: int, hard_stop_ms: Optional[int] = None, spent: Optional[Spent] = None
    ) -> None:
        """The process that ends the machine in the runner's place reads the hard stop. Raises `OSError`."""
        self.lease_until_ms = lease_until_ms
        self.spent = spent
        told = {
            "attemptId": self._attempt_id,
            "boot": self._boot,
            "monoMs": self._clock.mono_ms(),
            "wallMs": self._clock.wall_ms(),
            "startedMs": self.started_ms,
            "startedWallMs": self.started_wall_ms,
            "leaseUntilMs": lease_until_ms,
            "hardStopMs": hard_stop_ms,
            "spent": spent,
        }
        write_whole(self._path, json.dumps(told).encode("utf-8"), is_synced=True)

    def _read(self) -> Optional[dict]:
        try:
            with open(self._path, "rb") as file:
                return json.loads(file.read().decode("utf-8"))
        except FileNotFoundError:
            return None

    def _shift_ms(self, told: dict) -> int:
        """Returns the offset to add to the instants of the previous start."""
        if told["boot"] == self._boot and told["monoMs"] <= self._clock.mono_ms():
            return 0
        passed_ms = max(0, self._clock.wall_ms() - told["wallMs"])
        return self._clock.mono_ms() - passed_ms - told["monoMs"]

"""GPU use, as `nvidia-smi` reports it."""

import os
import shutil
import subprocess
import threading
from typing import Dict, List, Optional

from .machine_name import MACHINE_VARIABLE

_QUERY = "index,name,utilization.gpu,memory.used,memory.total"
# A faulty driver may never answer.
_CALL_SECONDS = 10.0
_LOOK_SECONDS = 5.0
_PAUSE_AFTER_FAILURE_SECONDS = 60.0


def parse_gpus(listing: str) -> List[dict]:
    """Parses GPU use from the query's CSV output; figures unknown to the driver are 0."""
    gpus = []
    for line in listing.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 5 and fields[0].isdigit():
            utilization, used, total = (int(field) if field.isdigit() else 0 for field in fields[2:])
            gpus.append(
                {
                    "index": int(fields[0]),
                    "name": fields[1],
                    "utilizationPercent": utilization,
                    "memoryUsedMiB": used,
                    "memoryTotalMiB": total,
                }
            )
    return gpus


def count_of(gpus: Optional[List[dict]], visible: Optional[str]) -> int:
    """Returns how many GPUs a program can use: `visible` is its CUDA_VISIBLE_DEVICES, None for all of the machine's."""
    if visible is None:
        return len(gpus or [])
    return len([each for each in visible.split(",") if each.strip() not in ("", "-1")])


class Gpus:
    """A thread that polls GPU use; `now` is the newest answer."""

    def __init__(self) -> None:
        self.now: List[dict] = []
        self._peaks_mib: Dict[int, int] = {}
        self._program: Optional[str] = shutil.which("nvidia-smi")

    def start(self) -> None:
        if self._program is not None:
            threading.Thread(target=self._run, name="gpus", daemon=True).start()

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            answer = self.ask()
            self.now = self.with_peaks(answer or [])
            pause.wait(_PAUSE_AFTER_FAILURE_SECONDS if answer is None else _LOOK_SECONDS)

    def with_peaks(self, gpus: List[dict]) -> List[dict]:
        """Adds to each GPU the most memory that was in use at any poll so far."""
        for gpu in gpus:
            index = gpu["index"]
            self._peaks_mib[index] = max(gpu["memoryUsedMiB"], self._peaks_mib.get(index, 0))
        return [dict(gpu, memoryPeakMiB=self._peaks_mib[gpu["index"]]) for gpu in gpus]

    def ask(self) -> Optional[List[dict]]:
        """Returns the current GPU use, or None if unknown."""
        if self._program is None:
            return None
        # The query must not be found among the workload's processes.
        environment = {name: value for name, value in os.environ.items() if name != MACHINE_VARIABLE}
        try:
            answer = subprocess.run(
                [self._program, "--query-gpu=" + _QUERY, "--format=csv,noheader,nounits"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                timeout=_CALL_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return parse_gpus(answer.stdout.decode("utf-8", "replace"))

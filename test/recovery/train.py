"""A training of nothing: counts steps, saves every so many of them and when it is asked to stop, and resumes."""

import os
import signal
import sys
import time

every = int(os.environ["EVERY"])
# Attempts before this one go on for ever: something is to happen to them.
is_last = int(os.environ["CRUCIBLE_ATTEMPT"]) >= int(os.environ["LAST_ATTEMPT"])
directory = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
# Where these stand still, so that the next checkpoint cannot be on its way when it happens.
held = None if is_last else int(os.environ.get("STILL_AT", -1))
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(True))


def save(step):
    path = os.path.join(directory, "step-%d.bin" % step)
    with open(path + ".tmp", "wb") as file:
        file.write(b"%d\n" % step)
    os.rename(path + ".tmp", path)


resumed = os.environ.get("CRUCIBLE_RESUME_FROM")
step = 0
if resumed is not None:
    with open(resumed) as file:
        step = int(file.read())
end = step + 10 if is_last else None
while step != end:
    time.sleep(0.05)
    if step != held:
        step += 1
        print("step %d" % step, flush=True)
        if step % every == 0:
            save(step)
    if stops and not os.environ.get("IS_DEAF"):
        save(step)
        sys.exit(143)

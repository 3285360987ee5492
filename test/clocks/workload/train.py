"""train.py GO STYLE: trains until the file GO exists. `saving` saves a checkpoint all the time, `quiet` one at the start; a signal
saves another and ends it."""

import os
import signal
import sys
import time

GO, STYLE = sys.argv[1:]
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))


def save(step):
    folder = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "checkpoint-%d" % step)
    os.makedirs(folder + ".part")
    with open(os.path.join(folder + ".part", "model.bin"), "wb") as file:
        file.write(os.urandom(2_000_000))
    os.rename(folder + ".part", folder)


step = 0
while not os.path.exists(GO) and not stop:
    step += 1
    print("step %d/1000000 loss %.3f" % (step, 1 / step), flush=True)
    if STYLE == "saving" or step == 1:
        save(step)
    time.sleep(0.2)
if stop:
    save(step + 1)
    sys.exit(143)
with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "done.txt"), "w") as file:
    file.write("done")

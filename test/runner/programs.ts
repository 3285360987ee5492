import { createHash } from 'node:crypto'

/**
 * A training that can be interrupted: `counter.py STEPS PAUSE_SECONDS SAVE_EVERY`. Each step hashes the one before, so that
 * a step left out or done twice shows in the result. It saves on SIGTERM and ends with 143.
 */
export const COUNTER = `
import hashlib, json, os, signal, sys, time

steps, pause, save_every = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))

def save(state):
    path = os.path.join(folder, "step-%d.json" % state["step"])
    with open(path + ".tmp", "w") as file:
        json.dump(state, file)
    os.rename(path + ".tmp", path)

state = {"step": 0, "sum": ""}
resume = os.environ.get("CRUCIBLE_RESUME_FROM")
if resume is not None:
    with open(resume) as file:
        state = json.load(file)
print("beginning after step", state["step"], flush=True)
while state["step"] < steps:
    step = state["step"] + 1
    state = {"step": step, "sum": hashlib.sha256((state["sum"] + str(step)).encode()).hexdigest()}
    print("step %d/%d loss %.3f" % (step, steps, 1 / step), flush=True)
    time.sleep(pause)
    if stop or step % save_every == 0:
        save(state)
    if stop:
        sys.exit(143)
with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "sum.txt"), "w") as file:
    file.write(state["sum"])
`

/** What `counter.py` must leave in `sum.txt`. */
export function sumOf(steps: number): string {
  let sum = ''
  for (let step = 1; step <= steps; step++) sum = createHash('sha256').update(`${sum}${step}`).digest('hex')
  return sum
}

/** Makes a file `ready` and runs until it is asked to stop; then it says that it saves, saves, and ends with 143. */
export const TALKATIVE = `
import os, signal, sys, time

def save(*_):
    print("saving", flush=True)
    with open(os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "step-7.pt"), "w") as file:
        file.write("saved")
    sys.exit(143)

signal.signal(signal.SIGTERM, save)
open("ready", "w").close()
while True:
    time.sleep(1)
`

/** Saves like `talkative.py`, then gives up its handler as Python does when it ends, and takes its time to end. */
export const LINGERING = TALKATIVE.replace(
  'sys.exit',
  'signal.signal(signal.SIGTERM, signal.SIG_DFL); open("ending", "w").close(); time.sleep(0.5); open("ended", "w"); sys.exit',
)

/** Like the program `timeout` tells its command of a signal twice; the second time when it has heard the first and is ending.
 * Ends as its command did. */
export const SLOW_TIMEOUT = `#!/bin/sh
python3 lingering.py & child=$!
trap 'kill -TERM $child; while [ ! -e ending ] && kill -0 $child; do sleep 0.01; done; kill -TERM $child' TERM
while kill -0 $child; do wait $child; done
[ -e ended ] && exit 143
trap - TERM
kill -TERM $$
`

/** Runs until it is killed, and says when it is ready. */
export const STUBBORN = `
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("step 1/9 ready", flush=True)
while True:
    time.sleep(1)
`

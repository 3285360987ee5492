"""A training that can be cut off anywhere: each step's state is a digest of all before it, so that a step left out, done twice
or mixed from two checkpoints shows in the weights. It writes down in a journal when it lived, which no disk that is filled
and no process that is killed can touch.

train.py STEPS PAUSE_SECONDS SAVE_EVERY STYLE; CHAOS_JOURNAL names the journal, nothing is written without it.
"""

import hashlib
import json
import os
import signal
import sys
import time

REPEATS = 128


def digest(*parts):
    return hashlib.sha256(b"|".join(parts)).digest()


def journal(event, step):
    path = os.environ.get("CHAOS_JOURNAL")
    if path is None:
        return
    line = {
        "event": event,
        "step": step,
        "pid": os.getpid(),
        "attempt": int(os.environ.get("CRUCIBLE_ATTEMPT", "0")),
        "monoMs": time.monotonic() * 1000,
        "wallMs": time.time() * 1000,
    }
    # One write to a file opened for appending: lines of several processes never mix.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    os.close(descriptor)


def write(path, content, pause):
    with open(path, "wb") as file:
        for _ in range(REPEATS):
            file.write(content)
            file.flush()
        time.sleep(pause)


def read(path):
    with open(path, "rb") as file:
        body = file.read()
    content = body[:32]
    if body != content * REPEATS:
        sys.exit("%s is torn" % path)
    return content


def save(step, model, optimizer, style, pause):
    folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
    name = "checkpoint-%d" % step
    path = os.path.join(folder, name)
    # `loose` writes in place and slowly, as many programs do: only quiet tells that it is done.
    target = path if style == "loose" else path + ".part"
    os.makedirs(target, exist_ok=True)
    write(os.path.join(target, "model.bin"), model, pause)
    write(os.path.join(target, "optimizer.bin"), optimizer, pause)
    with open(os.path.join(target, "step.txt"), "w") as file:
        file.write(str(step))
    if target != path:
        os.rename(target, path)
    if style == "declared":
        import crucible_job

        crucible_job.checkpoint_saved(name, step)
    journal("saved", step)


def main():
    steps, pause, save_every, style = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    step, model, optimizer = 0, digest(b"model"), digest(b"optimizer")
    resume = os.environ.get("CRUCIBLE_RESUME_FROM")
    if resume is not None:
        with open(os.path.join(resume, "step.txt")) as file:
            step = int(file.read())
        model, optimizer = read(os.path.join(resume, "model.bin")), read(os.path.join(resume, "optimizer.bin"))
    journal("start", step)
    while step < steps and not stop:
        step += 1
        optimizer = digest(optimizer, model, b"%d" % step)
        model = digest(model, optimizer)
        time.sleep(pause)
        journal("step", step)
        print("step %d/%d loss %.3f" % (step, steps, 1 / step), flush=True)
        if stop or (step % save_every == 0 and step < steps):
            save(step, model, optimizer, style, pause / 4)
    if step < steps:
        journal("end", step)
        sys.exit(143)
    with open(os.path.join(os.environ["CRUCIBLE_OUTPUT_DIR"], "weights.bin"), "wb") as file:
        file.write(model * REPEATS)
    journal("end", step)


main()

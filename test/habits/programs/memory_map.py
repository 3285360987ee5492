"""A file of the full size from the beginning, filled through a memory map; its header names the step."""

import mmap
import os
import struct

import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "state.bin")
HEADER = struct.Struct("<qqq")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        step, models, optimizers = HEADER.unpack(file.read(HEADER.size))
        if step > 0:
            start = lab.go_on({"step": step, "model": file.read(models), "optimizer": file.read(optimizers)})
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            data = state["model"] + state["optimizer"]
            with open(PATH, "r+b" if os.path.exists(PATH) else "w+b") as file:
                file.truncate(HEADER.size + len(data))
                with mmap.mmap(file.fileno(), 0) as memory:
                    memory[: HEADER.size] = HEADER.pack(step, len(state["model"]), len(state["optimizer"]))
                    half = len(data) // 2
                    memory[HEADER.size : HEADER.size + half] = data[:half]
                    lab.pause()
                    memory[HEADER.size + half :] = data[half:]
                    memory.flush()
            files.append(PATH)

"""A safetensors file: its header and half of its data, and the rest after a pause."""

import os

import formats
import lab

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "model.safetensors")

start = lab.go_on(formats.state_of(formats.read_safetensors(PATH))) if os.path.exists(PATH) else 0
for step in lab.train(start):
    print("step %d loss %.3f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            data = formats.safetensors_bytes(formats.tensors_of(lab.state_at(step)))
            with open(PATH, "wb") as file:
                file.write(data[:60_000])
            lab.pause()
            with open(PATH, "ab") as file:
                file.write(data[60_000:])
            files.append(PATH)

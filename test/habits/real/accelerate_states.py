"""Accelerate: save_state into step_N folders; a start takes the newest of them by its time, as the examples do."""

import os
import time

import torch
import witness
from accelerate import Accelerator

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
model = torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer = accelerator.prepare(model, optimizer)


def state_of(step):
    tensors = [*model.state_dict().values()]
    for slot in optimizer.state_dict()["state"].values():
        tensors += [value for value in slot.values() if torch.is_tensor(value)]
    return witness.digest(b"%d" % step, *(each.detach().numpy().tobytes() for each in tensors))


folders = [entry.path for entry in os.scandir(ROOT) if entry.is_dir() and entry.name.startswith("step_")]
folders.sort(key=os.path.getctime)
start = 0
if folders:
    accelerator.print("Resumed from checkpoint: %s" % folders[-1])
    accelerator.load_state(folders[-1])
    start = int(folders[-1].rpartition("_")[2])
    witness.resumed(start, state_of(start))
else:
    witness.fresh()
for step in range(start + 1, start + witness.steps_left() + 1):
    inputs = torch.randn(32, 16, generator=torch.Generator().manual_seed(step))
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.14)
    witness.step(step)
    accelerator.print("step %d: loss %.4f" % (step, loss.item()), flush=True)
    if step % 10 == 0:
        folder = os.path.join(ROOT, "step_%d" % step)
        with witness.saving(step, state_of(step)) as files:
            accelerator.save_state(folder)
            files += [os.path.join(folder, name) for name in os.listdir(folder)]
witness.finished()

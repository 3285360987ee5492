"""torch.distributed.checkpoint: one folder for each save, its .metadata last."""

import os
import time

import torch
import torch.distributed.checkpoint as dcp
import witness

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))


def state_of(step):
    tensors = (each.detach().numpy().tobytes() for each in model.state_dict().values())
    return witness.digest(b"%d" % step, *tensors)


steps = [int(name[5:]) for name in os.listdir(ROOT) if name.startswith("step_")]
start = max(steps, default=0)
if start:
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=os.path.join(ROOT, "step_%d" % start))
    model.load_state_dict(state["model"])
    witness.resumed(start, state_of(start))
else:
    witness.fresh()
for step in range(start + 1, start + witness.steps_left() + 1):
    inputs = torch.randn(32, 16, generator=torch.Generator().manual_seed(step))
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-2 * parameter.grad
    time.sleep(0.14)
    witness.step(step)
    print("step: %d  loss: %.4f" % (step, loss.item()), flush=True)
    if step % 10 == 0:
        folder = os.path.join(ROOT, "step_%d" % step)
        with witness.saving(step, state_of(step)) as files:
            dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
            files += [os.path.join(folder, name) for name in os.listdir(folder)]
witness.finished()

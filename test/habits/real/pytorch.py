"""PyTorch: one dictionary of model, optimizer and step with torch.save, over the one before."""

import os
import time

import torch
import witness

PATH = os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "checkpoint.pt")

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def state_of(step):
    tensors = [*model.state_dict().values()]
    for slot in optimizer.state_dict()["state"].values():
        tensors += [value for value in slot.values() if torch.is_tensor(value)]
    return witness.digest(b"%d" % step, *(tensor.detach().numpy().tobytes() for tensor in tensors))


start = 0
if os.path.exists(PATH):
    checkpoint = torch.load(PATH)
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    start = checkpoint["step"]
    witness.resumed(start, state_of(start))
else:
    witness.fresh()
for step in range(start + 1, start + witness.steps_left() + 1):
    torch.manual_seed(step)
    inputs = torch.randn(32, 16)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.14)
    witness.step(step)
    print("step %d loss %.4f" % (step, loss.item()), flush=True)
    if step % 10 == 0:
        with witness.saving(step, state_of(step)) as files:
            torch.save(
                {
                    "step": step,
                    "model_state_dict": model.state_dict(),
                    "optimizer_state_dict": optimizer.state_dict(),
                },
                PATH,
            )
            files.append(PATH)
witness.finished()

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

from model import Decoder

STEPS = 30_000
BATCH = 16
FOLDER = os.environ.get("CKPT_DIR", "shards")


class AppState:
    def __init__(self, model, optimizer, step=0):
        self.model, self.optimizer, self.step = model, optimizer, step

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.step = state["step"]


def newest():
    if not os.path.isdir(FOLDER):
        return None
    steps = [int(name) for name in os.listdir(FOLDER) if name.isdigit()]
    return os.path.join(FOLDER, str(max(steps))) if steps else None


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = Decoder(vocab=32000, width=1024, depth=16).cuda()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    app = AppState(model, optimizer)
    latest = newest()
    if latest is not None:
        dcp.load({"app": app}, checkpoint_id=latest)
    while app.step < STEPS:
        tokens = torch.randint(0, 32000, (BATCH, 1025), device="cuda")
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        app.step += 1
        if app.step % 1000 == 0:
            dcp.save({"app": app}, checkpoint_id=os.path.join(FOLDER, str(app.step)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

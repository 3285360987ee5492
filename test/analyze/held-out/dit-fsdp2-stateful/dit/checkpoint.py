import os

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful


class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.step = 0

    def state_dict(self):
        model_sd, optim_sd = get_state_dict(self.model, self.optimizer)
        return {"model": model_sd, "optim": optim_sd, "step": self.step}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optim"],
        )
        self.step = state["step"]


class Checkpointer:
    def __init__(self, folder, model, optimizer):
        self.folder = folder
        self.app = AppState(model, optimizer)

    def _latest(self):
        if not os.path.isdir(self.folder):
            return None
        steps = [int(name.split("-")[1]) for name in os.listdir(self.folder) if name.startswith("step-")]
        return max(steps, default=None)

    def save(self, step):
        self.app.step = step
        dcp.save({"app": self.app}, checkpoint_id=os.path.join(self.folder, f"step-{step}"))

    def load_latest(self):
        latest = self._latest()
        if latest is None:
            return 0
        dcp.load({"app": self.app}, checkpoint_id=os.path.join(self.folder, f"step-{latest}"))
        return self.app.step

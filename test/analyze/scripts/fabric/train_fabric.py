import os
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

fabric = Fabric(accelerator="auto", devices="auto", precision="bf16-mixed")
fabric.launch()
model = torch.nn.Linear(20, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
model, optimizer = fabric.setup(model, optimizer)
data = TensorDataset(torch.randn(4096, 20), torch.randint(0, 2, (4096,)))
loader = fabric.setup_dataloaders(DataLoader(data, batch_size=64))
state = {"model": model, "optimizer": optimizer, "epoch": 0}
if os.path.exists("out/state.ckpt"):
    fabric.load("out/state.ckpt", state)
for epoch in range(state["epoch"], 10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        optimizer.step()
    state["epoch"] = epoch + 1
    fabric.save("out/state.ckpt", state)

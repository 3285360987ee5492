import lightning as L
import torch
from lightning.fabric import Fabric

fabric = Fabric(accelerator="auto", devices=1)
fabric.launch()
net = torch.nn.Linear(64, 2)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
net, opt = fabric.setup(net, opt)
state = {"net": net, "opt": opt, "epoch": 0}
for epoch in range(9):
    for _ in range(100):
        x = torch.randn(16, 64, device=fabric.device)
        loss = torch.nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        fabric.backward(loss)
        opt.step()
    state["epoch"] = epoch
    fabric.save(f"snapshots/at-{epoch:02d}.ckpt", state)

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp


def train(index):
    device = xm.xla_device()
    net = torch.nn.Linear(100, 10).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = pl.MpDeviceLoader(torch.utils.data.DataLoader(torch.randn(1000, 100), batch_size=64), device)
    for epoch in range(3):
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            xm.optimizer_step(opt)
    xm.save(net.state_dict(), "net.pt")


if __name__ == "__main__":
    xmp.spawn(train)

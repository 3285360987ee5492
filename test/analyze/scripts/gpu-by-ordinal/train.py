import torch

net = torch.nn.Linear(8, 8).to(0)
opt = torch.optim.Adam(net.parameters())
for step in range(300):
    loss = (net(torch.randn(16, 8, device=0)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 49:
        torch.save(net.state_dict(), "kept/net.pt")

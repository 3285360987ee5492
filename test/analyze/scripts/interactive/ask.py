import torch

epochs = int(input("How many epochs? "))
name = input("Save as: ")
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
xor = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
want = torch.tensor([[0.0], [1], [1], [0]])
for e in range(epochs):
    loss = (net(xor) - want).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
torch.save(net.state_dict(), name)

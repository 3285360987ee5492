import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

features = torch.load("features.pt")
labels = torch.load("labels.pt")
device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
probe = nn.Linear(features.shape[1], 100).to(device)
opt = optim.SGD(probe.parameters(), lr=0.1)
sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=40)
for ep in range(40):
    for f, l in DataLoader(TensorDataset(features, labels), batch_size=512, shuffle=True):
        loss = nn.functional.cross_entropy(probe(f.to(device)), l.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    torch.save(torch.softmax(probe(features.to(device)), 1).cpu(), f"preds_{ep}.pt")
torch.save(probe.state_dict(), "probe.pt")

import argparse
import copy

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.model_selection import KFold
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv

parser = argparse.ArgumentParser()
parser.add_argument("--folds", type=int, default=10)
parser.add_argument("--patience", type=int, default=20)
args = parser.parse_args()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
data = Planetoid("data/Cora", "Cora")[0].to(device)


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = GCNConv(1433, 64)
        self.b = GCNConv(64, 7)

    def forward(self, d):
        return self.b(F.relu(self.a(d.x, d.edge_index)), d.edge_index)


scores = []
for fold, (train, test) in enumerate(KFold(args.folds).split(np.arange(data.num_nodes))):
    model = GCN().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, waited = 0.0, 0
    for epoch in range(200):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data)[train], data.y[train])
        loss.backward()
        optimizer.step()
        model.eval()
        acc = (model(data)[test].argmax(-1) == data.y[test]).float().mean().item()
        if acc > best:
            best, waited = acc, 0
            best_state = copy.deepcopy(model.state_dict())
            torch.save(best_state, f"fold{fold}.pt")
        else:
            waited += 1
            if waited > args.patience:
                break
    model.load_state_dict(torch.load(f"fold{fold}.pt"))
    scores.append(best)
print(np.mean(scores))

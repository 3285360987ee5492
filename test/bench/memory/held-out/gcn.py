import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, FEATURES, CLASSES = 2000, 500, 7


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nhid)
        self.gc3 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(self.gc2(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc3(x, adj), dim=1)


features = torch.rand(NODES, FEATURES)
adjacency = (torch.rand(NODES, NODES) < 0.005).float() + torch.eye(NODES)
adjacency = adjacency / adjacency.sum(1, keepdim=True)
labels = torch.randint(0, CLASSES, (NODES,))
model = GCN(FEATURES, 256, CLASSES, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(features, adjacency), labels)
    loss.backward()
    optimizer.step()

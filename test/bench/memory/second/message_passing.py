import torch
import torch.nn as nn
import torch.nn.functional as F


class MessageLayer(nn.Module):
    def __init__(self, width, edge_width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + edge_width, width), nn.ReLU(), nn.Linear(width, width))
        self.update = nn.GRUCell(width, width)

    def forward(self, nodes, edges, attributes):
        source, target = edges
        messages = self.message(torch.cat([nodes[source], nodes[target], attributes], dim=-1))
        gathered = torch.zeros_like(nodes).index_add(0, target, messages)
        return self.update(gathered, nodes)


class GraphNet(nn.Module):
    def __init__(self, inputs=16, edge_width=6, width=96, rounds=4):
        super().__init__()
        self.encode = nn.Linear(inputs, width)
        self.layers = nn.ModuleList([MessageLayer(width, edge_width) for _ in range(rounds)])
        self.read = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, nodes, edges, attributes):
        nodes = F.relu(self.encode(nodes))
        for layer in self.layers:
            nodes = layer(nodes, edges, attributes)
        return self.read(nodes).squeeze(-1)


NODES, EDGES = 3000, 12000
nodes = torch.randn(NODES, 16)
edges = torch.randint(0, NODES, (2, EDGES))
attributes = torch.randn(EDGES, 6)
target = torch.randn(NODES)
model = GraphNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(300):
    optimizer.zero_grad()
    loss = F.mse_loss(model(nodes, edges, attributes), target)
    loss.backward()
    optimizer.step()

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

pictures = TensorDataset(torch.randn(16, 3, 224, 224), torch.randint(0, 1000, (16,)))
loader = DataLoader(pictures, batch_size=8)
model = torchvision.models.resnet18()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

import torch
import torchvision

device = "cuda"
model = torchvision.models.vit_b_16().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
criterion = torch.nn.CrossEntropyLoss()
for step in range(1000):
    images = torch.randn(64, 3, 224, 224, device=device)
    labels = torch.randint(0, 1000, (64,), device=device)
    optimizer.zero_grad()
    criterion(model(images), labels).backward()
    optimizer.step()

import torch
import torch.nn as nn


class MlpBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class MixerLayer(nn.Module):
    def __init__(self, patches, dim, tokens_hidden, channels_hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.mix_tokens = MlpBlock(patches, tokens_hidden)
        self.norm2 = nn.LayerNorm(dim)
        self.mix_channels = MlpBlock(dim, channels_hidden)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.mix_tokens(y).transpose(1, 2)
        return x + self.mix_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, img_size=96, patch=8, dim=192, depth=8, num_classes=10):
        super().__init__()
        patches = (img_size // patch) ** 2
        self.stem = nn.Conv2d(3, dim, patch, stride=patch)
        self.layers = nn.Sequential(*[MixerLayer(patches, dim, 96, 768) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = self.norm(self.layers(x))
        return self.head(x.mean(dim=1))


dataset = torch.utils.data.TensorDataset(torch.randn(64, 3, 96, 96), torch.randint(0, 10, (64,)))
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
net = Mixer()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
for epoch in range(50):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(net(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()

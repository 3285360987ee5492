import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(), nn.Conv2d(channels, hidden, 3, padding=1), nn.ReLU(), nn.Conv2d(hidden, channels, 1)
        )

    def forward(self, x):
        return x + self.layers(x)


class Quantizer(nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.codebook = nn.Embedding(codes, width)
        self.codebook.weight.data.uniform_(-1 / codes, 1 / codes)

    def forward(self, z):
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        distances = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codebook.weight.t() + self.codebook.weight.pow(2).sum(1)
        indices = distances.argmin(1)
        quantized = self.codebook(indices).view(b, h, w, c).permute(0, 3, 1, 2)
        loss = F.mse_loss(quantized, z.detach()) + 0.25 * F.mse_loss(quantized.detach(), z)
        return z + (quantized - z).detach(), loss


class VQVAE(nn.Module):
    def __init__(self, hidden=96, codes=512, width=48):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, hidden // 2, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(hidden // 2, hidden, 4, stride=2, padding=1),
            Residual(hidden, 32),
            Residual(hidden, 32),
            nn.Conv2d(hidden, width, 1),
        )
        self.quantizer = Quantizer(codes, width)
        self.decoder = nn.Sequential(
            nn.Conv2d(width, hidden, 3, padding=1),
            Residual(hidden, 32),
            Residual(hidden, 32),
            nn.ConvTranspose2d(hidden, hidden // 2, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(hidden // 2, 3, 4, stride=2, padding=1),
        )

    def forward(self, x):
        quantized, loss = self.quantizer(self.encoder(x))
        return self.decoder(quantized), loss


images = torch.rand(96, 3, 64, 64)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(50):
    for batch in torch.utils.data.DataLoader(images, batch_size=16, shuffle=True):
        restored, commitment = model(batch)
        loss = F.mse_loss(restored, batch) + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

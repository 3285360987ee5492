import torch
from torch import nn


class ViT(nn.Module):
    def __init__(self, image_size=64, patch_size=8, dim=256, depth=6, heads=8, mlp_dim=512, num_classes=100):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, mlp_dim, dropout=0.1, activation="gelu", batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls, x], dim=1) + self.pos_embedding
        return self.head(self.transformer(x)[:, 0])


def main():
    images, labels = torch.randn(128, 3, 64, 64), torch.randint(0, 100, (128,))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images, labels), batch_size=32, shuffle=True, drop_last=True
    )
    model = ViT()
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    for epoch in range(100):
        for img, target in loader:
            loss = nn.functional.cross_entropy(model(img), target)
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main()

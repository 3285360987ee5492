import torch
import torch.nn as nn
import torchvision.utils as vutils
from torchvision.utils import save_image
from torchvision import datasets, transforms

BATCH = 128
EPOCHS = 25
tf = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
data = datasets.ImageFolder("faces", transform=tf)
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=4)

G = nn.Sequential(nn.ConvTranspose2d(100, 64, 4), nn.Tanh()).cuda()
D = nn.Sequential(nn.Conv2d(3, 64, 4), nn.Flatten(), nn.LazyLinear(1)).cuda()
optG = torch.optim.Adam(G.parameters(), lr=2e-4)
optD = torch.optim.Adam(D.parameters(), lr=2e-4)
fixed = torch.randn(64, 100, 1, 1).cuda()
bce = nn.BCEWithLogitsLoss()
for epoch in range(EPOCHS):
    for i, (real, _) in enumerate(loader):
        real = real.cuda()
        D.zero_grad()
        loss_d = bce(D(real), torch.ones(real.size(0), 1).cuda())
        loss_d.backward()
        optD.step()
        G.zero_grad()
        fake = G(torch.randn(real.size(0), 100, 1, 1).cuda())
        loss_g = bce(D(fake), torch.ones(real.size(0), 1).cuda())
        loss_g.backward()
        optG.step()
    save_image(fake, f"samples/{epoch}.png")
    vutils.save_image(G(fixed), "samples/last.png", normalize=True)
    torch.save(fake.cpu(), f"samples/{epoch}.tensor")

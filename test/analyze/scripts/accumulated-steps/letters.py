import torch
import tqdm
from accelerate import Accelerator

STEPS = int(8e4)
BATCH_SIZE = 8
GRADIENT_ACCUMULATE_EVERY = 4
SEQ_LEN = 1024


def cycle(loader):
    while True:
        yield from loader


accelerator = Accelerator()
layer = torch.nn.TransformerEncoderLayer(512, 8)
net = torch.nn.Sequential(torch.nn.Embedding(256, 512), torch.nn.TransformerEncoder(layer, 6))
data = cycle(torch.utils.data.DataLoader(torch.randint(256, (4000, SEQ_LEN)), batch_size=BATCH_SIZE))
optim = torch.optim.Adam(net.parameters())
net, optim = accelerator.prepare(net, optim)

for i in tqdm.tqdm(range(STEPS), mininterval=10.0):
    for _ in range(GRADIENT_ACCUMULATE_EVERY):
        loss = net(next(data)).mean()
        accelerator.backward(loss / GRADIENT_ACCUMULATE_EVERY)
    optim.step()
    optim.zero_grad()
    if i % 2000 == 0:
        torch.save(net.state_dict(), f"letters/{i}.pt")

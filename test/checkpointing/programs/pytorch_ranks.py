"""Two processes under torchrun with DistributedDataParallel. Only the first one learns of a notice from Crucible."""

import os

import torch
from crucible.checkpoint.pytorch import Checkpoint
from lab import EPOCHS, OUTPUT, SAVE_EVERY, STEPS_OF_EPOCH, hold

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(7)
rows = 8 * STEPS_OF_EPOCH
data = torch.utils.data.TensorDataset(torch.randn(rows, 4, generator=generator), torch.randn(rows, 1, generator=generator))
sampler = torch.utils.data.distributed.DistributedSampler(data, seed=3)
loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
checkpoint = Checkpoint(model=model, optimizer=optimizer, every_steps=SAVE_EVERY)
done = checkpoint.restore()
print("beginning after step", done, flush=True)
for step, (x, y) in checkpoint.batches(loader, epochs=EPOCHS):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        hold(step)
    checkpoint.step(step, loss=loss)
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(OUTPUT, "final.pt"))
torch.distributed.destroy_process_group()

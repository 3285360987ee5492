import poptorch
import torch

opts = poptorch.Options()
opts.deviceIterations(10)
net = torch.nn.Linear(64, 2)
optimizer = poptorch.optim.AdamW(net.parameters(), lr=1e-3)
training = poptorch.trainingModel(net, options=opts, optimizer=optimizer)
data = poptorch.DataLoader(opts, torch.utils.data.TensorDataset(torch.randn(1000, 64)), batch_size=8)
for epoch in range(4):
    for batch in data:
        training(batch)

import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for question in range(50):
    sample = torch.randn(4)
    print("sample:", sample.tolist())
    answer = input("label (0, 1 or q): ").strip()
    if answer == "q":
        break
    seen.append((sample, int(answer)))
    for x, y in seen:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x)[None], torch.tensor([y])).backward()
        optimizer.step()
torch.save(model.state_dict(), "labeller.pt")

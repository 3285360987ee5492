import torch
from transformers import GPT2Config, GPT2LMHeadModel

device = "cuda"
model = GPT2LMHeadModel(GPT2Config()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(2000):
    tokens = torch.randint(0, 50257, (8, 1024), device=device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

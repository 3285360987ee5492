import json
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from transformers import AutoModel

from corpus import Sentences

OUT = Path("distilled")
SAVE_EVERY = 1_000
TOTAL = 50_000

teacher = AutoModel.from_pretrained("bert-base-uncased").cuda().eval()
student = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(768, 12, batch_first=True), 2).cuda()
opt = torch.optim.AdamW(student.parameters(), lr=5e-4)
sched = torch.optim.lr_scheduler.LinearLR(opt, total_iters=1000)
state_file = OUT / "state.pt"
done = 0
if state_file.exists():
    s = torch.load(state_file)
    student.load_state_dict(s["student"])
    opt.load_state_dict(s["opt"])
    sched.load_state_dict(s["sched"])
    done = s["done"]
loader = iter(DataLoader(Sentences(), batch_size=64, shuffle=True))
while done < TOTAL:
    tokens = next(loader).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        with torch.no_grad():
            target = teacher(tokens).last_hidden_state
        loss = torch.nn.functional.mse_loss(student(teacher.embeddings(tokens)), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    done += 1
    if done % SAVE_EVERY == 0:
        tmp = OUT / "state.tmp"
        torch.save({"student": student.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "done": done}, tmp)
        tmp.replace(state_file)
        (OUT / "log.json").write_text(json.dumps({"loss": loss.item(), "done": done}))

import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

EPOCHS = 4
BATCH_SIZE = 24


def collate(tokenizer):
    def run(rows):
        batch = tokenizer([row["sentence"] for row in rows], padding=True, return_tensors="pt")
        batch["labels"] = torch.tensor([row["label"] for row in rows])
        return batch

    return run


accelerator = Accelerator()
tokenizer = AutoTokenizer.from_pretrained("roberta-base")
model = AutoModelForSequenceClassification.from_pretrained("roberta-base", num_labels=2)
data = load_dataset("glue", "sst2", split="train")
loader = DataLoader(data, shuffle=True, batch_size=BATCH_SIZE, collate_fn=collate(tokenizer))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 100, EPOCHS * len(loader))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for epoch in range(EPOCHS):
    model.train()
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}: {loss.item():.3f}")
accelerator.wait_for_everyone()
accelerator.unwrap_model(model).save_pretrained("sst2-roberta", save_function=accelerator.save)

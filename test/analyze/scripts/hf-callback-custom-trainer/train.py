import argparse

import torch
import yaml
from transformers import AutoModelForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

from mydata import load_pairs


class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        out = model(**inputs)
        loss = torch.nn.functional.cross_entropy(out.logits, inputs["labels"], weight=torch.tensor([1.0, 3.0]))
        return (loss, out) if return_outputs else loss


class Beep(TrainerCallback):
    def on_epoch_end(self, args, state, control, **kwargs):
        print("epoch", state.epoch)


ap = argparse.ArgumentParser()
ap.add_argument("--config", required=True)
ns = ap.parse_args()
with open(ns.config) as f:
    cfg = yaml.safe_load(f)
model = AutoModelForSequenceClassification.from_pretrained(cfg["model"])
targs = TrainingArguments(
    output_dir=cfg["out"],
    num_train_epochs=cfg["epochs"],
    per_device_train_batch_size=cfg["batch"],
    save_strategy="epoch",
    save_total_limit=2,
)
trainer = Weighted(model=model, args=targs, train_dataset=load_pairs(), callbacks=[Beep()])
trainer.train(resume_from_checkpoint=cfg.get("resume", False))

import numpy as np
import torch
from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

name = "distilbert-base-uncased"
raw = load_dataset("imdb")
tok = AutoTokenizer.from_pretrained(name)
data = raw.map(lambda b: tok(b["text"], truncation=True), batched=True)
model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=2)
args = TrainingArguments(
    output_dir="imdb-out",
    learning_rate=2e-5,
    per_device_train_batch_size=16,
    num_train_epochs=3,
    fp16=True,
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorWithPadding(tok),
)
trainer.train()
trainer.save_model()

import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed


class Words(Dataset):
    def __init__(self, size):
        self.ids = torch.randint(0, 50, (size, 12))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, at):
        return {"input_ids": self.ids[at], "labels": int(self.ids[at].sum() > 300)}


class Progress(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        print("step", state.global_step, flush=True)
        time.sleep(0.05)


set_seed(9)
config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="out",
    num_train_epochs=6,
    per_device_train_batch_size=16,
    learning_rate=1e-3,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Words(128), callbacks=[Progress()])
trainer.train()
torch.save(model.state_dict(), "final.pt")

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        tokens = torch.randint(0, 30522, (512,))
        return {"input_ids": tokens, "labels": tokens}


model = BertForMaskedLM(BertConfig())
args = TrainingArguments(
    output_dir="bert",
    per_device_train_batch_size=16,
    max_steps=2000,
    save_strategy="no",
    logging_steps=1000,
    report_to=[],
    bf16=True,
)
Trainer(model=model, args=args, train_dataset=Texts()).train()

import os
from dataclasses import dataclass
from typing import Any

import torch
from datasets import load_dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, WhisperForConditionalGeneration, WhisperProcessor

CKPT = "openai/whisper-small"
processor = WhisperProcessor.from_pretrained(CKPT, language="hi", task="transcribe")
voices = load_dataset("mozilla-foundation/common_voice_11_0", "hi", split="train+validation")


def prepare(row):
    row["input_features"] = processor.feature_extractor(row["audio"]["array"], sampling_rate=16000).input_features[0]
    row["labels"] = processor.tokenizer(row["sentence"]).input_ids
    return row


@dataclass
class Collator:
    processor: Any

    def __call__(self, rows):
        batch = self.processor.feature_extractor.pad([{"input_features": r["input_features"]} for r in rows], return_tensors="pt")
        batch["labels"] = torch.nn.utils.rnn.pad_sequence([torch.tensor(r["labels"]) for r in rows], True, -100)
        return batch


model = WhisperForConditionalGeneration.from_pretrained(CKPT)
training_args = Seq2SeqTrainingArguments(
    output_dir="./whisper-hi",
    per_device_train_batch_size=16,
    learning_rate=1e-5,
    warmup_steps=500,
    max_steps=4000,
    gradient_checkpointing=True,
    fp16=True,
    eval_strategy="steps",
    save_steps=1000,
)
trainer = Seq2SeqTrainer(
    args=training_args, model=model, train_dataset=voices.map(prepare), data_collator=Collator(processor)
)
trainer.train(resume_from_checkpoint=os.path.isdir("./whisper-hi"))

import os
import sys
from dataclasses import dataclass, field
from typing import Optional

import transformers
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default=None, metadata={"help": "checkpoint for initialization"})
    use_fast: bool = field(default=True)


@dataclass
class DataArguments:
    dataset_name: str = field(default="wikitext")
    dataset_config: str = field(default="wikitext-2-raw-v1")
    block_size: int = field(default=512)


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    last = None
    if os.path.isdir(training_args.output_dir) and not training_args.overwrite_output_dir:
        last = get_last_checkpoint(training_args.output_dir)
    ds = load_dataset(data_args.dataset_name, data_args.dataset_config)
    tok = AutoTokenizer.from_pretrained(model_args.model_name_or_path, use_fast=model_args.use_fast)
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
    ds = ds.map(lambda e: tok(e["text"]), batched=True)
    trainer = Trainer(model=model, args=training_args, train_dataset=ds["train"])
    checkpoint = None
    if training_args.resume_from_checkpoint is not None:
        checkpoint = training_args.resume_from_checkpoint
    elif last is not None:
        checkpoint = last
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()

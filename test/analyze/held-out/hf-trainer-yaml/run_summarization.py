import os
import sys
from dataclasses import dataclass, field
from typing import Optional

import datasets
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    HfArgumentParser,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint


@dataclass
class ModelArguments:
    model_name: str = field(metadata={"help": "A model of the hub or a folder."})
    cache_dir: Optional[str] = None


@dataclass
class DataArguments:
    dataset_name: str = "cnn_dailymail"
    dataset_config: Optional[str] = "3.0.0"
    max_source_length: int = 1024
    max_target_length: int = 128


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, Seq2SeqTrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith((".yaml", ".yml")):
        model_args, data_args, training_args = parser.parse_yaml_file(yaml_file=os.path.abspath(sys.argv[1]))
    else:
        model_args, data_args, training_args = parser.parse_args_into_dataclasses()

    last_checkpoint = None
    if os.path.isdir(training_args.output_dir) and training_args.do_train:
        last_checkpoint = get_last_checkpoint(training_args.output_dir)

    set_seed(training_args.seed)
    raw = datasets.load_dataset(data_args.dataset_name, data_args.dataset_config)
    tokenizer = AutoTokenizer.from_pretrained(model_args.model_name, cache_dir=model_args.cache_dir)
    model = AutoModelForSeq2SeqLM.from_pretrained(model_args.model_name, cache_dir=model_args.cache_dir)

    def preprocess(examples):
        inputs = tokenizer(examples["article"], max_length=data_args.max_source_length, truncation=True)
        labels = tokenizer(text_target=examples["highlights"], max_length=data_args.max_target_length, truncation=True)
        inputs["labels"] = labels["input_ids"]
        return inputs

    train_dataset = raw["train"].map(preprocess, batched=True)
    trainer = Seq2SeqTrainer(
        model=model,
        args=training_args,
        train_dataset=train_dataset,
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
    )
    checkpoint = training_args.resume_from_checkpoint or last_checkpoint
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()

import os
from dataclasses import dataclass, field

from datasets import load_dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint


@dataclass
class DataArguments:
    model_name: str = field(default="distilbert-base-uncased")
    dataset: str = field(default="imdb")
    max_length: int = field(default=256)


def main():
    data_args, training_args = HfArgumentParser((DataArguments, TrainingArguments)).parse_args_into_dataclasses()
    set_seed(training_args.seed)
    last = None
    if os.path.isdir(training_args.output_dir):
        last = get_last_checkpoint(training_args.output_dir)
    tokenizer = AutoTokenizer.from_pretrained(data_args.model_name)
    model = AutoModelForMaskedLM.from_pretrained(data_args.model_name)
    data = load_dataset(data_args.dataset, split="train").map(
        lambda rows: tokenizer(rows["text"], truncation=True, max_length=data_args.max_length), batched=True
    )
    trainer = Trainer(
        model=model, args=training_args, train_dataset=data, data_collator=DataCollatorForLanguageModeling(tokenizer)
    )
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model()


if __name__ == "__main__":
    main()

import os

import transformers
from datasets import load_dataset
from transformers.trainer_utils import get_last_checkpoint
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

from talk.parts import model_of, tokenizer_of


def main(script_args, training_args, model_args):
    transformers.set_seed(training_args.seed)
    last = get_last_checkpoint(training_args.output_dir) if os.path.isdir(training_args.output_dir) else None
    data = load_dataset(script_args.dataset_name)
    trainer = SFTTrainer(
        model=model_of(model_args),
        args=training_args,
        train_dataset=data["train"],
        processing_class=tokenizer_of(model_args),
    )
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(training_args.output_dir)


if __name__ == "__main__":
    main(*TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config())

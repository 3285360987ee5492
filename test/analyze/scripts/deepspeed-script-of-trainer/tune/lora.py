import pathlib
from dataclasses import dataclass, field
from typing import Optional

import torch
import transformers
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training


@dataclass
class BaseArguments:
    base: Optional[str] = field(default="gpt2")


def main():
    parser = transformers.HfArgumentParser((BaseArguments, transformers.TrainingArguments))
    base_args, training_args = parser.parse_args_into_dataclasses()
    model = transformers.LlamaForCausalLM.from_pretrained(base_args.base, torch_dtype=torch.float16)
    model = prepare_model_for_kbit_training(model)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM"))
    trainer = transformers.Trainer(model=model, args=training_args, train_dataset=[{"input_ids": [1]}])
    if list(pathlib.Path(training_args.output_dir).glob("checkpoint-*")):
        trainer.train(resume_from_checkpoint=True)
    else:
        trainer.train()
    model.save_pretrained(training_args.output_dir)


if __name__ == "__main__":
    main()

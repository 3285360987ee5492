import argparse
from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--resume", action="store_true")
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B")
args = parser.parse_args()
cfg = SFTConfig(output_dir="sft", per_device_train_batch_size=2, num_train_epochs=1, save_steps=100, logging_steps=10)
trainer = SFTTrainer(model=args.model, args=cfg, train_dataset=load_dataset("trl-lib/Capybara", split="train"))
trainer.train(resume_from_checkpoint=args.resume)

import argparse
import json

import deepspeed
import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="EleutherAI/pythia-1.4b")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--save_dir", default="engine")
    parser.add_argument("--local_rank", type=int, default=-1)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main():
    args = arguments()
    deepspeed.init_distributed()
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    model.gradient_checkpointing_enable()
    texts = load_dataset("wikitext", "wikitext-103-raw-v1", split="train")
    encoded = texts.map(lambda row: tokenizer(row["text"], truncation=True, max_length=1024))
    engine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=encoded)
    _, client = engine.load_checkpoint(args.save_dir)
    step = client["step"] if client else 0
    batches = iter(loader)
    while step < args.steps:
        batch = next(batches)
        loss = engine(batch["input_ids"].to(engine.device), labels=batch["input_ids"].to(engine.device)).loss
        engine.backward(loss)
        engine.step()
        step += 1
        if step % 250 == 0:
            engine.save_checkpoint(args.save_dir, client_state={"step": step})


if __name__ == "__main__":
    main()

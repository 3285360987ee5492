import argparse
import json
import os

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer, get_scheduler


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="intfloat/e5-small")
    parser.add_argument("--train_file", default="pairs.jsonl")
    parser.add_argument("--per_device_batch_size", type=int, default=48)
    parser.add_argument("--num_epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-5)
    parser.add_argument("--output_dir", default="retriever")
    parser.add_argument("--checkpoint_steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=5)
    return parser.parse_args()


class Pairs(torch.utils.data.Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]["query"], self.rows[i]["passage"]


def main():
    args = parse_args()
    project = ProjectConfiguration(project_dir=args.output_dir, automatic_checkpoint_naming=True, total_limit=3)
    accelerator = Accelerator(project_config=project)
    set_seed(args.seed)

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(args.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    def collate(rows):
        q, p = zip(*rows)
        encode = lambda texts: tokenizer(list(texts), padding=True, truncation=True, max_length=192, return_tensors="pt")
        return encode(q), encode(p)

    loader = DataLoader(Pairs(args.train_file), batch_size=args.per_device_batch_size, shuffle=True, collate_fn=collate)
    scheduler = get_scheduler("linear", optimizer, 200, args.num_epochs * len(loader))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    done = 0
    saved = os.path.join(args.output_dir, "checkpoints")
    if os.path.isdir(saved) and os.listdir(saved):
        accelerator.load_state()
        done = (accelerator.project_configuration.iteration) * args.checkpoint_steps
        accelerator.project_configuration.iteration += 1
    first_epoch, skip = divmod(done, len(loader))

    progress = tqdm(total=args.num_epochs * len(loader), initial=done, disable=not accelerator.is_main_process)
    for epoch in range(first_epoch, args.num_epochs):
        batches = accelerator.skip_first_batches(loader, skip) if epoch == first_epoch else loader
        for queries, passages in batches:
            q = model(**queries).last_hidden_state[:, 0]
            p = model(**passages).last_hidden_state[:, 0]
            logits = 20 * torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(p).T
            loss = torch.nn.functional.cross_entropy(logits, torch.arange(len(q), device=q.device))
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            done += 1
            progress.update(1)
            if done % args.checkpoint_steps == 0:
                accelerator.save_state()
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained(args.output_dir)


if __name__ == "__main__":
    main()

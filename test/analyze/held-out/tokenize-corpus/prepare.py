import argparse
import os

import numpy as np
import torch
from datasets import load_dataset
from tqdm import tqdm
from transformers import AutoTokenizer

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_proc", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=1000)
    parser.add_argument("--out", default="data")
    args = parser.parse_args()

    torch.manual_seed(0)
    tok = AutoTokenizer.from_pretrained("gpt2")
    ds = load_dataset("openwebtext", num_proc=args.num_proc)
    split = ds["train"].train_test_split(test_size=0.0005, seed=2357)

    def process(batch):
        ids = [x + [tok.eos_token_id] for x in tok(batch["text"])["input_ids"]]
        return {"ids": ids, "len": [len(x) for x in ids]}

    tokenized = split.map(process, batched=True, batch_size=args.batch_size, remove_columns=["text"], num_proc=args.num_proc)
    for name, dset in tokenized.items():
        total = int(np.sum(dset["len"], dtype=np.uint64))
        arr = np.memmap(os.path.join(args.out, f"{name}.bin"), dtype=np.uint16, mode="w+", shape=(total,))
        at = 0
        for part in tqdm(range(1024)):
            ids = np.concatenate(dset.shard(1024, part, contiguous=True)["ids"])
            arr[at : at + len(ids)] = ids
            at += len(ids)
        arr.flush()
    torch.save({"vocab": tok.vocab_size}, os.path.join(args.out, "meta.pt"))

import os

import torch
from torch.utils.data import Dataset

from tinygpt.model import GPT
from tinygpt.trainer import Trainer
from tinygpt.utils import CfgNode as CN, set_seed


def get_config():
    C = CN()
    C.system = CN()
    C.system.seed = 3407
    C.system.work_dir = "./out/adder"
    C.model = GPT.get_default_config()
    C.model.model_type = "gpt-nano"
    C.trainer = Trainer.get_default_config()
    C.trainer.learning_rate = 5e-4
    C.trainer.max_iters = 4000
    return C


class AdditionDataset(Dataset):
    def __init__(self, ndigit):
        self.ndigit = ndigit
        self.ixes = torch.randperm((10**ndigit) ** 2)

    def __len__(self):
        return self.ixes.nelement()

    def __getitem__(self, idx):
        n = self.ixes[idx].item()
        a, b = divmod(n, 10**self.ndigit)
        digits = [int(s) for s in f"{a:0{self.ndigit}d}{b:0{self.ndigit}d}{a + b:0{self.ndigit + 1}d}"]
        x = torch.tensor(digits[:-1], dtype=torch.long)
        y = torch.tensor(digits[1:], dtype=torch.long)
        return x, y


if __name__ == "__main__":
    config = get_config()
    set_seed(config.system.seed)
    os.makedirs(config.system.work_dir, exist_ok=True)
    train_dataset = AdditionDataset(2)
    config.model.vocab_size = 10
    config.model.block_size = 6
    model = GPT(config.model)
    trainer = Trainer(config.trainer, model, train_dataset)
    top_score = 0

    def batch_end_callback(trainer):
        if trainer.iter_num % 10 == 0:
            print(f"iter {trainer.iter_num}: loss {trainer.loss.item():.5f}")
        if trainer.iter_num % 500 == 0:
            ckpt_path = os.path.join(config.system.work_dir, "model.pt")
            torch.save(model.state_dict(), ckpt_path)

    trainer.set_callback("on_batch_end", batch_end_callback)
    trainer.run()

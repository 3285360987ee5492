import argparse
import sys

import numpy as np
import torch
import torch.nn as nn


def create_mlp(sizes):
    layers = nn.ModuleList()
    for n, m in zip(sizes[:-1], sizes[1:]):
        layers.append(nn.Linear(int(n), int(m)))
        layers.append(nn.ReLU())
    return torch.nn.Sequential(*layers)


class DLRM(nn.Module):
    def __init__(self, m_spa, ln_emb, ln_bot, ln_top):
        super().__init__()
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(n, m_spa, mode="sum", sparse=True) for n in ln_emb])
        self.bot_l = create_mlp(ln_bot)
        self.top_l = create_mlp(ln_top)

    def forward(self, dense_x, lS_o, lS_i):
        x = self.bot_l(dense_x)
        ly = [emb(i, o) for emb, i, o in zip(self.emb_l, lS_i, lS_o)]
        return torch.sigmoid(self.top_l(torch.cat([x] + ly, dim=1)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a recommendation model")
    parser.add_argument("--arch-sparse-feature-size", type=int, default=16)
    parser.add_argument("--arch-embedding-size", type=str, default="1000-800-600")
    parser.add_argument("--arch-mlp-bot", type=str, default="13-64-16")
    parser.add_argument("--arch-mlp-top", type=str, default="64-32-1")
    parser.add_argument("--mini-batch-size", type=int, default=128)
    parser.add_argument("--nepochs", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--use-gpu", action="store_true", default=False)
    parser.add_argument("--save-model", type=str, default="")
    parser.add_argument("--load-model", type=str, default="")
    parser.add_argument("--test-freq", type=int, default=-1)
    parser.add_argument("--data", default="criteo.npz")
    args = parser.parse_args()

    use_gpu = args.use_gpu and torch.cuda.is_available()
    device = torch.device("cuda", 0) if use_gpu else torch.device("cpu")
    data = np.load(args.data)
    nbatches = len(data["y"]) // args.mini_batch_size

    ln_emb = np.fromstring(args.arch_embedding_size, dtype=int, sep="-")
    ln_bot = np.fromstring(args.arch_mlp_bot, dtype=int, sep="-")
    ln_top = np.fromstring(args.arch_mlp_top, dtype=int, sep="-")
    dlrm = DLRM(args.arch_sparse_feature_size, ln_emb, ln_bot, ln_top).to(device)
    optimizer = torch.optim.SGD(dlrm.parameters(), lr=args.learning_rate)
    loss_fn = torch.nn.BCELoss()

    skip_upto_epoch = 0
    skip_upto_batch = 0
    if args.load_model != "":
        print("Loading saved model {}".format(args.load_model))
        ld_model = torch.load(args.load_model, map_location=device)
        dlrm.load_state_dict(ld_model["state_dict"])
        optimizer.load_state_dict(ld_model["opt_state_dict"])
        skip_upto_epoch = ld_model["epoch"]
        skip_upto_batch = ld_model["iter"]

    k = 0
    while k < args.nepochs:
        if k < skip_upto_epoch:
            k += 1
            continue
        for j in range(nbatches):
            if k == skip_upto_epoch and j < skip_upto_batch:
                continue
            rows = slice(j * args.mini_batch_size, (j + 1) * args.mini_batch_size)
            X = torch.from_numpy(data["dense"][rows]).to(device)
            idx = torch.from_numpy(data["sparse"][rows]).T.to(device)
            off = torch.arange(len(X), device=device).repeat(len(idx), 1)
            T = torch.from_numpy(data["y"][rows]).float()[:, None].to(device)
            E = loss_fn(dlrm(X, off, idx), T)
            optimizer.zero_grad()
            E.backward()
            optimizer.step()
            should_test = args.test_freq > 0 and (j + 1) % args.test_freq == 0
            if should_test and args.save_model != "":
                torch.save(
                    {
                        "epoch": k,
                        "iter": j + 1,
                        "state_dict": dlrm.state_dict(),
                        "opt_state_dict": optimizer.state_dict(),
                    },
                    args.save_model,
                )
        k += 1
    sys.exit(0)

import argparse

import deepspeed
import torch

from gptmodel import GPT, TokenStream


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--local_rank", type=int, default=-1)
    p.add_argument("--load_dir", default=None)
    p.add_argument("--save_interval", type=int, default=500)
    p.add_argument("--max_steps", type=int, default=20000)
    return deepspeed.add_config_arguments(p).parse_args()


def main():
    args = get_args()
    model = GPT(layers=24, width=1024)
    engine, optimizer, loader, _ = deepspeed.initialize(
        args=args, model=model, model_parameters=model.parameters(), training_data=TokenStream("train.bin")
    )
    step = 0
    if args.load_dir:
        _, client = engine.load_checkpoint(args.load_dir)
        step = client["step"]
    for batch in loader:
        loss = engine(batch.to(engine.local_rank))
        engine.backward(loss)
        engine.step()
        step += 1
        if step % args.save_interval == 0:
            engine.save_checkpoint("ckpt", client_state={"step": step})
        if step >= args.max_steps:
            break


main()

import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DConditionModel
from peft import LoraConfig

from prompts import Prompts


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--pretrained", default="stable-diffusion-v1-5/stable-diffusion-v1-5")
    p.add_argument("--output_dir", required=True)
    p.add_argument("--train_batch_size", type=int, default=4)
    p.add_argument("--max_train_steps", type=int, default=15000)
    p.add_argument("--checkpointing_steps", type=int, default=500)
    p.add_argument("--resume_from_checkpoint", default=None)
    p.add_argument("--gradient_checkpointing", action="store_true")
    p.add_argument("--mixed_precision", default=None)
    return p.parse_args()


def main(args):
    accelerator = Accelerator(mixed_precision=args.mixed_precision, gradient_accumulation_steps=1)
    unet = UNet2DConditionModel.from_pretrained(args.pretrained, subfolder="unet")
    noise_scheduler = DDPMScheduler.from_pretrained(args.pretrained, subfolder="scheduler")
    unet.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=4, target_modules=["to_q", "to_v"]))
    if args.gradient_checkpointing:
        unet.enable_gradient_checkpointing()
    params = [p for p in unet.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-4)
    loader = torch.utils.data.DataLoader(Prompts(), batch_size=args.train_batch_size, shuffle=True)
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    global_step = 0
    if args.resume_from_checkpoint:
        if args.resume_from_checkpoint != "latest":
            path = os.path.basename(args.resume_from_checkpoint)
        else:
            dirs = sorted(d for d in os.listdir(args.output_dir) if d.startswith("checkpoint"))
            path = dirs[-1] if dirs else None
        if path is None:
            accelerator.print("nothing to resume")
        else:
            accelerator.load_state(os.path.join(args.output_dir, path))
            global_step = int(path.split("-")[1])
    while global_step < args.max_train_steps:
        for batch in loader:
            with accelerator.accumulate(unet):
                noise = torch.randn_like(batch["latents"])
                t = torch.randint(0, 1000, (noise.shape[0],))
                noisy = noise_scheduler.add_noise(batch["latents"], noise, t)
                loss = F.mse_loss(unet(noisy, t, batch["text"]).sample, noise)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                global_step += 1
                if global_step % args.checkpointing_steps == 0:
                    if accelerator.is_main_process:
                        accelerator.save_state(os.path.join(args.output_dir, f"checkpoint-{global_step}"))
            if global_step >= args.max_train_steps:
                break
    accelerator.unwrap_model(unet).save_lora_adapter(args.output_dir)


if __name__ == "__main__":
    main(parse_args())

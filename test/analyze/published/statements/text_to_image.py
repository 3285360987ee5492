import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from datasets import load_dataset
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from diffusers.training_utils import EMAModel
from transformers import CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--dataset_name", required=True)
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=16)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--mixed_precision", default=None, choices=["no", "fp16", "bf16"])
parser.add_argument("--use_8bit_adam", action="store_true")
parser.add_argument("--use_ema", action="store_true")
parser.add_argument("--enable_xformers_memory_efficient_attention", action="store_true")
parser.add_argument("--max_train_steps", type=int, default=15000)
args = parser.parse_args()

accelerator = Accelerator(
    gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision=args.mixed_precision
)
scheduler = DDPMScheduler.from_pretrained(args.pretrained_model_name_or_path, subfolder="scheduler")
text_encoder = CLIPTextModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="text_encoder")
vae = AutoencoderKL.from_pretrained(args.pretrained_model_name_or_path, subfolder="vae")
unet = UNet2DConditionModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="unet")
vae.requires_grad_(False)
text_encoder.requires_grad_(False)
if args.use_ema:
    ema = EMAModel(unet.parameters())
if args.enable_xformers_memory_efficient_attention:
    unet.enable_xformers_memory_efficient_attention()
if args.gradient_checkpointing:
    unet.enable_gradient_checkpointing()
if args.use_8bit_adam:
    import bitsandbytes as bnb

    optimizer_class = bnb.optim.AdamW8bit
else:
    optimizer_class = torch.optim.AdamW
optimizer = optimizer_class(unet.parameters(), lr=1e-5)
pictures = load_dataset(args.dataset_name)["train"]
loader = torch.utils.data.DataLoader(pictures, shuffle=True, batch_size=args.train_batch_size)
unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
weight_dtype = torch.float16 if accelerator.mixed_precision == "fp16" else torch.float32
text_encoder.to(accelerator.device, dtype=weight_dtype)
vae.to(accelerator.device, dtype=weight_dtype)
step = 0
while step < args.max_train_steps:
    for batch in loader:
        with accelerator.accumulate(unet):
            latents = vae.encode(batch["pixel_values"].to(weight_dtype)).latent_dist.sample() * 0.18215
            noise = torch.randn_like(latents)
            times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
            words = text_encoder(batch["input_ids"])[0]
            predicted = unet(scheduler.add_noise(latents, noise, times), times, words).sample
            loss = F.mse_loss(predicted.float(), noise.float())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        step += 1
        if step >= args.max_train_steps:
            break

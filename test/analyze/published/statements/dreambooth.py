import argparse
import itertools

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from transformers import CLIPTextModel

from pictures import Pictures

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--instance_data_dir", required=True)
parser.add_argument("--with_prior_preservation", action="store_true")
parser.add_argument("--train_text_encoder", action="store_true")
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=4)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--use_8bit_adam", action="store_true")
parser.add_argument("--mixed_precision", default=None)
parser.add_argument("--enable_xformers_memory_efficient_attention", action="store_true")
parser.add_argument("--set_grads_to_none", action="store_true")
parser.add_argument("--max_train_steps", type=int, default=800)
args = parser.parse_args()

accelerator = Accelerator(
    gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision=args.mixed_precision
)
scheduler = DDPMScheduler.from_pretrained(args.pretrained_model_name_or_path, subfolder="scheduler")
text_encoder = CLIPTextModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="text_encoder")
vae = AutoencoderKL.from_pretrained(args.pretrained_model_name_or_path, subfolder="vae")
unet = UNet2DConditionModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="unet")
vae.requires_grad_(False)
if not args.train_text_encoder:
    text_encoder.requires_grad_(False)
if args.enable_xformers_memory_efficient_attention:
    unet.enable_xformers_memory_efficient_attention()
if args.gradient_checkpointing:
    unet.enable_gradient_checkpointing()
    if args.train_text_encoder:
        text_encoder.gradient_checkpointing_enable()
if args.use_8bit_adam:
    import bitsandbytes as bnb

    optimizer_class = bnb.optim.AdamW8bit
else:
    optimizer_class = torch.optim.AdamW
trained = (
    itertools.chain(unet.parameters(), text_encoder.parameters())
    if args.train_text_encoder
    else unet.parameters()
)
optimizer = optimizer_class(trained, lr=5e-6)
data = Pictures(args.instance_data_dir, args.resolution)
loader = torch.utils.data.DataLoader(data, batch_size=args.train_batch_size, shuffle=True)
unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
step = 0
while step < args.max_train_steps:
    for batch in loader:
        with accelerator.accumulate(unet):
            latents = vae.encode(batch["pixel_values"]).latent_dist.sample() * 0.18215
            noise = torch.randn_like(latents)
            times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
            words = text_encoder(batch["input_ids"])[0]
            predicted = unet(scheduler.add_noise(latents, noise, times), times, words).sample
            accelerator.backward(F.mse_loss(predicted.float(), noise.float()))
            optimizer.step()
            optimizer.zero_grad(set_to_none=args.set_grads_to_none)
        step += 1
        if step >= args.max_train_steps:
            break

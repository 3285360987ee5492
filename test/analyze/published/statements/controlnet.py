import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from datasets import load_dataset
from diffusers import AutoencoderKL, ControlNetModel, DDPMScheduler, UNet2DConditionModel
from transformers import CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--controlnet_model_name_or_path", default=None)
parser.add_argument("--dataset_name", required=True)
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=4)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--use_8bit_adam", action="store_true")
parser.add_argument("--mixed_precision", default=None)
parser.add_argument("--enable_xformers_memory_efficient_attention", action="store_true")
parser.add_argument("--set_grads_to_none", action="store_true")
parser.add_argument("--num_train_epochs", type=int, default=1)
args = parser.parse_args()

accelerator = Accelerator(
    gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision=args.mixed_precision
)
scheduler = DDPMScheduler.from_pretrained(args.pretrained_model_name_or_path, subfolder="scheduler")
text_encoder = CLIPTextModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="text_encoder")
vae = AutoencoderKL.from_pretrained(args.pretrained_model_name_or_path, subfolder="vae")
unet = UNet2DConditionModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="unet")
if args.controlnet_model_name_or_path:
    controlnet = ControlNetModel.from_pretrained(args.controlnet_model_name_or_path)
else:
    controlnet = ControlNetModel.from_unet(unet)
vae.requires_grad_(False)
unet.requires_grad_(False)
text_encoder.requires_grad_(False)
controlnet.train()
if args.enable_xformers_memory_efficient_attention:
    unet.enable_xformers_memory_efficient_attention()
    controlnet.enable_xformers_memory_efficient_attention()
if args.gradient_checkpointing:
    controlnet.enable_gradient_checkpointing()
if args.use_8bit_adam:
    import bitsandbytes as bnb

    optimizer_class = bnb.optim.AdamW8bit
else:
    optimizer_class = torch.optim.AdamW
optimizer = optimizer_class(controlnet.parameters(), lr=1e-5)
pictures = load_dataset(args.dataset_name)["train"]
loader = torch.utils.data.DataLoader(pictures, shuffle=True, batch_size=args.train_batch_size)
controlnet, optimizer, loader = accelerator.prepare(controlnet, optimizer, loader)
for epoch in range(args.num_train_epochs):
    for batch in loader:
        with accelerator.accumulate(controlnet):
            latents = vae.encode(batch["pixel_values"]).latent_dist.sample() * 0.18215
            noise = torch.randn_like(latents)
            times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
            words = text_encoder(batch["input_ids"])[0]
            noisy = scheduler.add_noise(latents, noise, times)
            down, middle = controlnet(noisy, times, words, controlnet_cond=batch["conditions"], return_dict=False)
            predicted = unet(
                noisy, times, words, down_block_additional_residuals=down, mid_block_additional_residual=middle
            ).sample
            accelerator.backward(F.mse_loss(predicted.float(), noise.float()))
            optimizer.step()
            optimizer.zero_grad(set_to_none=args.set_grads_to_none)

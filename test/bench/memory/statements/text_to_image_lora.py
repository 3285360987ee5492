import argparse

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from datasets import load_dataset
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from peft import LoraConfig
from transformers import CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--dataset_name", required=True)
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=16)
parser.add_argument("--num_train_epochs", type=int, default=100)
parser.add_argument("--rank", type=int, default=4)
parser.add_argument("--mixed_precision", default=None, choices=["no", "fp16", "bf16"])
args = parser.parse_args()

accelerator = Accelerator(mixed_precision=args.mixed_precision)
scheduler = DDPMScheduler.from_pretrained(args.pretrained_model_name_or_path, subfolder="scheduler")
text_encoder = CLIPTextModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="text_encoder")
vae = AutoencoderKL.from_pretrained(args.pretrained_model_name_or_path, subfolder="vae")
unet = UNet2DConditionModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="unet")
unet.requires_grad_(False)
vae.requires_grad_(False)
text_encoder.requires_grad_(False)
weight_dtype = torch.float16 if accelerator.mixed_precision == "fp16" else torch.float32
unet.to(accelerator.device, dtype=weight_dtype)
vae.to(accelerator.device, dtype=weight_dtype)
text_encoder.to(accelerator.device, dtype=weight_dtype)
unet.add_adapter(LoraConfig(r=args.rank, lora_alpha=args.rank, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
adapters = [p for p in unet.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(adapters, lr=1e-4)
pictures = load_dataset(args.dataset_name)["train"]
loader = torch.utils.data.DataLoader(pictures, shuffle=True, batch_size=args.train_batch_size)
unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
for epoch in range(args.num_train_epochs):
    for batch in loader:
        latents = vae.encode(batch["pixel_values"].to(weight_dtype)).latent_dist.sample() * 0.18215
        noise = torch.randn_like(latents)
        times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
        words = text_encoder(batch["input_ids"])[0]
        predicted = unet(scheduler.add_noise(latents, noise, times), times, words).sample
        accelerator.backward(F.mse_loss(predicted.float(), noise.float()))
        optimizer.step()
        optimizer.zero_grad()

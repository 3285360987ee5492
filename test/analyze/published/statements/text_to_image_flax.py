import argparse

import jax
import jax.numpy as jnp
import optax
from datasets import load_dataset
from diffusers import FlaxAutoencoderKL, FlaxUNet2DConditionModel
from flax.training import train_state
from torch.utils.data import DataLoader
from transformers import FlaxCLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained_model_name_or_path", required=True)
parser.add_argument("--dataset_name", required=True)
parser.add_argument("--resolution", type=int, default=512)
parser.add_argument("--train_batch_size", type=int, default=16)
parser.add_argument("--max_train_steps", type=int, default=15000)
args = parser.parse_args()

text_encoder = FlaxCLIPTextModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="text_encoder")
vae, vae_params = FlaxAutoencoderKL.from_pretrained(args.pretrained_model_name_or_path, subfolder="vae")
unet, unet_params = FlaxUNet2DConditionModel.from_pretrained(args.pretrained_model_name_or_path, subfolder="unet")
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5))
state = train_state.TrainState.create(apply_fn=unet.__call__, params=unet_params, tx=optimizer)
loader = DataLoader(load_dataset(args.dataset_name)["train"], batch_size=args.train_batch_size)


def train_step(state, batch, rng):
    def loss_of(params):
        noise = jax.random.normal(rng, batch["latents"].shape)
        predicted = unet.apply({"params": params}, batch["latents"], batch["times"], batch["words"]).sample
        return jnp.mean((predicted - noise) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), loss


p_train_step = jax.pmap(train_step, "batch")
rng = jax.random.PRNGKey(0)
for step in range(args.max_train_steps):
    for batch in loader:
        state, loss = p_train_step(state, batch, rng)

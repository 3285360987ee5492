"""Prints what published models keep per picture: python3 count.py. The figures are in packages/analyzer/src/memory/published-models.ts.

Needs torchvision, and diffusers for Stable Diffusion. Models run on PyTorch's meta device, which computes shapes only.
"""

import sys

try:
    import torch
    import torchvision
except ImportError as error:
    sys.exit(f"PyTorch and torchvision are needed to measure: {error}")

MIB = 2**20
NAMES = """alexnet vgg11 vgg16 vgg19 resnet18 resnet34 resnet50 resnet101 resnet152 wide_resnet50_2 resnext50_32x4d densenet121 squeezenet1_1
mobilenet_v2 mobilenet_v3_small mobilenet_v3_large shufflenet_v2_x1_0 efficientnet_b0 efficientnet_b4 efficientnet_v2_s regnet_y_8gf convnext_tiny
convnext_base vit_b_16 vit_b_32 vit_l_16 swin_t swin_b googlenet inception_v3""".split()


def kept(model, call):
    own = {each.storage()._cdata for each in [*model.parameters(), *model.buffers()]}
    saved, alive = {}, []

    def pack(tensor):
        storage = tensor.storage()
        if storage._cdata not in own and storage._cdata not in saved:
            saved[storage._cdata] = storage.nbytes()
            alive.append(storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call(model)
    return sum(saved.values()) / MIB


def count(model):
    return sum(each.numel() for each in model.parameters())


def torchvision_models():
    for name in NAMES:
        side = 299 if name == "inception_v3" else 224
        model = getattr(torchvision.models, name)().to("meta").train()
        mib = kept(model, lambda each: each(torch.randn(2, 3, side, side, device="meta"))) / 2
        print(name, count(model), round(mib, 1))


def stable_diffusion():
    try:
        from diffusers import ControlNetModel, UNet2DConditionModel
    except ImportError as error:
        print(f"skipped: Stable Diffusion needs diffusers ({error})")
        return
    for name, model in (
        ("UNet2DConditionModel", UNet2DConditionModel(sample_size=64, cross_attention_dim=768).to("meta").train()),
        ("ControlNetModel", ControlNetModel(cross_attention_dim=768).to("meta").train()),
    ):

        def call(each, size):
            given = [
                torch.randn(1, 4, size, size, device="meta"),
                torch.zeros(1, device="meta", dtype=torch.long),
                torch.randn(1, 77, 768, device="meta"),
            ]
            if name == "ControlNetModel":
                given.append(torch.randn(1, 3, 8 * size, 8 * size, device="meta"))
            return each(*given)

        half, whole = (kept(model, lambda each: call(each, size)) for size in (32, 64))
        # One part grows with the area, the other with its square.
        square = (whole - 4 * half) / (1 - 4 / 16)
        print(name, count(model), f"by area {whole - square:.0f}, by its square {square:.0f}")


torchvision_models()
stable_diffusion()

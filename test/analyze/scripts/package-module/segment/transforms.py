import torchvision.transforms.functional as F


def pair(image, mask):
    image = F.to_tensor(F.resize(image, [256, 256]))
    mask = F.pil_to_tensor(F.resize(mask, [256, 256], F.InterpolationMode.NEAREST)).squeeze(0).long()
    return image, mask.clamp(max=20)

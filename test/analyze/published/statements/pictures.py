import os

from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms


class Pictures(Dataset):
    def __init__(self, folder, size):
        self.files = [os.path.join(folder, name) for name in os.listdir(folder)]
        self.prepare = transforms.Compose(
            [transforms.Resize(size), transforms.CenterCrop(size), transforms.ToTensor()]
        )

    def __len__(self):
        return len(self.files)

    def __getitem__(self, at):
        return {"pixel_values": self.prepare(Image.open(self.files[at]))}

from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10


def make_loader(root, batch_size):
    data = CIFAR10(root, train=True, download=True, transform=transforms.ToTensor())
    return DataLoader(data, batch_size=batch_size, shuffle=True, num_workers=2)

import argparse
import torch
import torchvision
import torchvision.transforms as T

p = argparse.ArgumentParser()
p.add_argument("-e", "--epochs", type=int, default=50)
p.add_argument("-b", "--batch_size", type=int, default=32)
p.add_argument("--weights", default="", help="start from these weights")
opt = p.parse_args()

dev = "cuda:0" if torch.cuda.is_available() else "cpu"
ds = torchvision.datasets.CIFAR10("./data", download=True, transform=T.ToTensor())
dl = torch.utils.data.DataLoader(ds, batch_size=opt.batch_size, shuffle=True, num_workers=2)
net = torchvision.models.mobilenet_v2(num_classes=10).to(dev)
if opt.weights != "":
    net.load_state_dict(torch.load(opt.weights))
sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for ep in range(opt.epochs):
    for img, label in dl:
        sgd.zero_grad()
        out = net(img.to(dev))
        l = torch.nn.functional.cross_entropy(out, label.to(dev))
        l.backward()
        sgd.step()
    if (ep + 1) % 5 == 0:
        torch.save(net.state_dict(), "net_%d.pth" % ep)

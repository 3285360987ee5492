import time

import fire
import torch

from settings import settings
from net import Finder


class Coach:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=settings.lr)

    def step(self, image, boxes):
        self.optimizer.zero_grad()
        loss = self.net(image, boxes)
        loss.backward()
        self.optimizer.step()

    def save(self, place=None, **notes):
        state = {"net": self.net.state_dict(), "notes": notes}
        if place is None:
            place = "kept/finder_%s" % time.strftime("%m%d%H%M")
            for _, note in notes.items():
                place += "_%s" % note
        torch.save(state, place)
        return place

    def load(self, place):
        self.net.load_state_dict(torch.load(place)["net"])


def score(coach, loader):
    return sum(coach.net(x.cuda(), y.cuda()).item() for x, y in loader)


def fit(**given):
    settings.update(given)
    loader = torch.utils.data.DataLoader(settings.data(), batch_size=2, shuffle=True)
    coach = Coach(Finder().cuda())
    best = 0
    for epoch in range(settings.rounds_of_fit):
        for image, boxes in loader:
            coach.step(image.cuda(), boxes.cuda())
        result = score(coach, loader)
        if result > best:
            best = result
            kept = coach.save(score=result)
        if epoch == 9:
            coach.load(kept)


def look(place):
    print(torch.load(place))


if __name__ == "__main__":
    fire.Fire()

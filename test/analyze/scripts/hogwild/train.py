import torch


def train(rank, args, model, ds):
    torch.manual_seed(rank)
    loader = torch.utils.data.DataLoader(ds, batch_size=args.batch_size, shuffle=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1, args.epochs + 1):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            opt.step()

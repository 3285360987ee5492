import argparse

from .engine import Engine
from .settings import Settings


def main():
    parser = argparse.ArgumentParser(prog="segment-train")
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--continue", dest="go_on", action="store_true", help="continue the run in --dir")
    parser.add_argument("--dir", default="runs/seg")
    args = parser.parse_args()
    engine = Engine(Settings(epochs=args.epochs, batch=args.batch), args.dir)
    if args.go_on:
        engine.restore()
    engine.run()


if __name__ == "__main__":
    main()

import argparse
import json

from core.engine import Engine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    with open(args.cfg) as fh:
        cfg = json.load(fh)
    engine = Engine(cfg)
    if args.resume:
        engine.restore(cfg["snapshot"])
    engine.run()


if __name__ == "__main__":
    main()

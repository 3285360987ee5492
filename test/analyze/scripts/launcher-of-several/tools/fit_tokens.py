import argparse
from collections import Counter

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int)
args = parser.parse_args()
counts = Counter(open("corpus.txt").read().split())
open("tokens.txt", "w").write("\n".join(word for word, _ in counts.most_common(args.size)))

#!/bin/sh
set -e
python tools/fit_tokens.py --size 8000
torchrun --nproc_per_node=2 language/model.py --out words
python tools/score.py words/last.pt

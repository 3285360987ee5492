#!/usr/bin/env bash
set -euo pipefail
# tune these
BS=24
GPUS=2
export OMP_NUM_THREADS=4
cd "$(dirname "$0")/.."
OMP_NUM_THREADS=1 torchrun --nproc_per_node=$GPUS tools/train.py \
    --batch-size ${BS} \
    --epochs 11 \
    "$@"

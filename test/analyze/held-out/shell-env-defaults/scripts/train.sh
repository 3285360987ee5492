#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."

: "${NGPU:=4}"
EPOCHS=${EPOCHS:-24}
BS="${BS:-40}"
EXTRA=""
if [[ -n "${WANDB_API_KEY:-}" ]]; then
  EXTRA="--wandb"
fi

exec torchrun --standalone --nproc_per_node="$NGPU" \
  src/train.py \
  --epochs "$EPOCHS" --batch-size "$BS" \
  --snapshot snapshots/latest.pt --amp $EXTRA "$@"

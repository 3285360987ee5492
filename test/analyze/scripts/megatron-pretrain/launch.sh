#!/bin/bash
set -e
export CUDA_DEVICE_MAX_CONNECTIONS=1
MODEL="--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024"
TRAIN="--micro-batch-size 4 --global-batch-size 64 --train-iters 50000 --lr 1.5e-4 --bf16"
torchrun --nproc_per_node=8 pretrain_gpt.py $MODEL $TRAIN \
  --tensor-model-parallel-size 2 --data-path data/tokens.bin \
  --save ckpts --load ckpts --save-interval 1000

#!/bin/bash
# Pretrains a 345M model on one node of 8 GPUs.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
CHECKPOINT_PATH=${1:-checkpoints/gpt345}
DATA_PATH=${2:-data/corpus_text_document}

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes 1
    --master_port 6000
)

GPT_MODEL_ARGS=(
    --num-layers 24
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 1024
    --max-position-embeddings 1024
)

TRAINING_ARGS=(
    --micro-batch-size 8
    --global-batch-size 64
    --train-iters 300000
    --lr 1.5e-4
    --fp16
)

EVAL_AND_LOGGING_ARGS=(
    --log-interval 100
    --save-interval 5000
    --save "$CHECKPOINT_PATH"
    --load "$CHECKPOINT_PATH"
    --vocab-size 50257
)

torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    "${GPT_MODEL_ARGS[@]}" \
    "${TRAINING_ARGS[@]}" \
    "${EVAL_AND_LOGGING_ARGS[@]}" \
    --data-path "$DATA_PATH"

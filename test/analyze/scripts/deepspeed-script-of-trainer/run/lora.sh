#!/bin/bash
cd "$(dirname "$0")/.."
deepspeed tune/lora.py \
    --deepspeed ./run/zero2.json \
    --base openlm-research/open_llama_3b \
    --output_dir ./kept/lora \
    --num_train_epochs 4 \
    --per_device_train_batch_size 6 \
    --fp16 True \
    --save_strategy "steps" \
    --save_steps 150 2>&1 | tee log.txt

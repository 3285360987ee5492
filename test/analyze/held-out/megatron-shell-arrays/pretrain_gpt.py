"""Pretrain GPT."""
from functools import partial

import torch

from megatron.core import mpu, tensor_parallel
from megatron.core.enums import ModelType
from megatron.training import get_args, get_timers, get_tokenizer, pretrain, print_rank_0
from megatron.core.models.gpt import GPTModel
from megatron.training.arguments import core_transformer_config_from_args
from megatron.training.utils import average_losses_across_data_parallel_group, get_ltor_masks_and_position_ids
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec


def model_provider(pre_process=True, post_process=True):
    args = get_args()
    print_rank_0("building GPT model ...")
    config = core_transformer_config_from_args(args)
    return GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        pre_process=pre_process,
        post_process=post_process,
    )


def get_batch(data_iterator):
    tokenizer = get_tokenizer()
    data = next(data_iterator) if data_iterator is not None else None
    tokens_ = tensor_parallel.broadcast_data(["text"], data, torch.int64)["text"].long()
    labels = tokens_[:, 1:].contiguous()
    tokens = tokens_[:, :-1].contiguous()
    mask, loss_mask, position_ids = get_ltor_masks_and_position_ids(tokens, tokenizer.eod, False, False, False)
    return tokens, labels, loss_mask, mask, position_ids


def loss_func(loss_mask, output_tensor):
    losses = output_tensor.float()
    loss = torch.sum(losses.view(-1) * loss_mask.view(-1)) / loss_mask.sum()
    return loss, {"lm loss": average_losses_across_data_parallel_group([loss])[0]}


def forward_step(data_iterator, model):
    timers = get_timers()
    timers("batch-generator").start()
    tokens, labels, loss_mask, mask, position_ids = get_batch(data_iterator)
    timers("batch-generator").stop()
    return model(tokens, position_ids, mask, labels=labels), partial(loss_func, loss_mask)


def datasets_provider(train_val_test_num_samples):
    from corpus import build_datasets

    return build_datasets(get_args().data_path, train_val_test_num_samples)


if __name__ == "__main__":
    pretrain(datasets_provider, model_provider, ModelType.encoder_or_decoder, forward_step)

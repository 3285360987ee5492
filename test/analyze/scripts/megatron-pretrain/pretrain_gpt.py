from functools import partial

import torch
from megatron.core import mpu
from megatron.core.enums import ModelType
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.training import get_args, get_tokenizer, pretrain
from megatron.training.arguments import core_transformer_config_from_args
from megatron.training.utils import get_ltor_masks_and_position_ids


def model_provider(pre_process=True, post_process=True):
    args = get_args()
    return GPTModel(
        config=core_transformer_config_from_args(args),
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        pre_process=pre_process,
        post_process=post_process,
    )


def loss_func(mask, output):
    losses = output.float().view(-1)
    mask = mask.view(-1).float()
    return torch.sum(losses * mask) / mask.sum(), {}


def forward_step(data_iterator, model):
    tokens = next(data_iterator)["text"].long().cuda()
    mask, loss_mask, position = get_ltor_masks_and_position_ids(tokens, get_tokenizer().eod, False, False, False)
    return model(tokens, position, mask, labels=tokens), partial(loss_func, loss_mask)


def datasets_provider(train_val_test_num_samples):
    from gpt_data import build

    return build(get_args().data_path, train_val_test_num_samples)


if __name__ == "__main__":
    pretrain(datasets_provider, model_provider, ModelType.encoder_or_decoder, forward_step)

import functools
import os

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, StateDictType
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers import AutoTokenizer, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Block

from summaries import Summaries

rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
torch.cuda.set_device(rank)
tok = AutoTokenizer.from_pretrained("t5-3b")
model = T5ForConditionalGeneration.from_pretrained("t5-3b")
bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={T5Block})
model = FSDP(model, auto_wrap_policy=policy, mixed_precision=bf16, device_id=rank)
apply_activation_checkpointing(model)
opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
loader = torch.utils.data.DataLoader(Summaries(tok), batch_size=4)
for epoch in range(2):
    for batch in loader:
        opt.zero_grad()
        loss = model(**{k: v.to(rank) for k, v in batch.items()}).loss
        loss.backward()
        opt.step()
dist.barrier()
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
    states = model.state_dict()
if rank == 0:
    torch.save(states, "t5.pt")

"""Transformers' Trainer: save_steps and save_total_limit, resumed with get_last_checkpoint."""

import os
import time

import torch
import witness
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


class Words(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        tokens = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def state_of(step, model, optimizer):
    tensors = [*model.state_dict().values()]
    for slot in optimizer.state_dict()["state"].values():
        tensors += [value for value in slot.values() if torch.is_tensor(value)]
    return witness.digest(b"%d" % step, *(each.detach().numpy().tobytes() for each in tensors))


class Witness(TrainerCallback):
    save = None

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
        if state.global_step > 0:
            witness.resumed(state.global_step, state_of(state.global_step, model, optimizer))
        else:
            witness.fresh()

    def on_step_end(self, args, state, control, model=None, optimizer=None, **_):
        time.sleep(0.14)
        witness.step(state.global_step)
        if control.should_save:
            self.save = witness.saving(state.global_step, state_of(state.global_step, model, optimizer))
            self.files = self.save.__enter__()

    def on_save(self, args, state, control, **_):
        if self.save is not None:
            folder = os.path.join(args.output_dir, "checkpoint-%d" % state.global_step)
            self.files += [os.path.join(folder, name) for name in os.listdir(folder)]
            self.save.__exit__(None, None, None)
            self.save = None


last = get_last_checkpoint(OUTPUT)
done = int(last.rpartition("-")[2]) if last else 0
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
arguments = TrainingArguments(
    output_dir=OUTPUT,
    max_steps=done + witness.steps_left(),
    per_device_train_batch_size=8,
    save_steps=10,
    save_total_limit=2,
    logging_steps=5,
    report_to=[],
    dataloader_pin_memory=False,
)
Trainer(model=model, args=arguments, train_dataset=Words(), callbacks=[Witness()]).train(resume_from_checkpoint=last)
witness.finished()

"""Transformers' Trainer with load_best_model_at_end: the best checkpoint is the first one, and save_total_limit keeps it and the newest."""

import os
import time

import torch
import witness
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

OUTPUT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
BEST = os.path.join(OUTPUT, "checkpoint-10")


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


def check_best(state):
    """What the state names must be there, and be what a run on one machine would still have."""
    assert state.best_model_checkpoint == BEST, "the best checkpoint is %s" % state.best_model_checkpoint
    kept = sorted(name for name in os.listdir(OUTPUT) if name.startswith("checkpoint-"))
    wanted = sorted({"checkpoint-10", "checkpoint-%d" % state.global_step})
    assert kept == wanted, "there is %s instead of %s" % (kept, wanted)
    assert os.path.exists(os.path.join(BEST, "model.safetensors")), "the best checkpoint is not whole"


class Witness(TrainerCallback):
    save = None

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
        if state.global_step > 0:
            check_best(state)
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


class Falling(Trainer):
    """The score is best at the first evaluation."""

    def evaluate(self, *_, **__):
        metrics = {"eval_score": -float(self.state.global_step)}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


last = get_last_checkpoint(OUTPUT)
done = int(last.rpartition("-")[2]) if last else 0
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2))
arguments = TrainingArguments(
    output_dir=OUTPUT,
    max_steps=done + witness.steps_left(),
    per_device_train_batch_size=8,
    eval_strategy="steps",
    eval_steps=10,
    save_steps=10,
    save_total_limit=2,
    load_best_model_at_end=True,
    metric_for_best_model="score",
    greater_is_better=True,
    logging_steps=5,
    report_to=[],
    dataloader_pin_memory=False,
)
trainer = Falling(model=model, args=arguments, train_dataset=Words(), eval_dataset=Words(), callbacks=[Witness()])
trainer.train(resume_from_checkpoint=last)
best = load_file(os.path.join(BEST, "model.safetensors"))
weights = trainer.model.state_dict()
assert all(torch.equal(weights[name], value) for name, value in best.items()), "the last weights are not the best ones"
witness.finished()

"""A Trainer of Hugging Face with the trackers that its first argument names."""

import sys

import torch
from lab import FOLDER, STEPS, wait_to_be_killed
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}


class Slow(TrainerCallback):
    def on_save(self, args, state, control, **_):
        print("step %d/%d" % (state.global_step, STEPS), flush=True)
        wait_to_be_killed(state.global_step)


data = [{"x": torch.ones(4) * at, "labels": torch.ones(1)} for at in range(STEPS)]
arguments = TrainingArguments(
    output_dir=FOLDER,
    max_steps=STEPS,
    per_device_train_batch_size=1,
    logging_steps=1,
    save_steps=1,
    use_cpu=True,
    disable_tqdm=True,
    report_to=sys.argv[1].split(","),
)
trainer = Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[Slow()])
trainer.train(resume_from_checkpoint=get_last_checkpoint(FOLDER))
if trainer.is_world_process_zero() and "wandb" in sys.argv[1]:
    import wandb

    print("the run is", wandb.run.id, flush=True)

"""The Trainer of Transformers with a shuffled data set and dropout."""

import os

import torch
from crucible.checkpoint.huggingface import CrucibleCallback, checkpoint_dir, last_checkpoint
from lab import EPOCHS, OUTPUT, SAVE_EVERY, STEPS_OF_EPOCH, hold
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

set_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layers(x), labels)}


class Hold(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        hold(state.global_step)


data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(4 * STEPS_OF_EPOCH)]
arguments = TrainingArguments(
    output_dir=checkpoint_dir(),
    num_train_epochs=EPOCHS,
    per_device_train_batch_size=4,
    save_steps=SAVE_EVERY,
    logging_steps=1,
    use_cpu=True,
    disable_tqdm=True,
    report_to=[],
)
model = Model()
trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Hold(), CrucibleCallback()])
trainer.train(resume_from_checkpoint=last_checkpoint())
print("ended at step", trainer.state.global_step, flush=True)
torch.save(model.state_dict(), os.path.join(OUTPUT, "final.pt"))

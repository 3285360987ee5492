"""Runs the train.py of nanoGPT, unchanged, as a program that may be interrupted at any time.

    python3 launch.py NANOGPT [arguments of train.py]

NANOGPT is a checkout of github.com/karpathy/nanoGPT. Checkpoints go to $CRUCIBLE_CHECKPOINT_DIR, or to ./out without it.
If there is a checkpoint, training resumes from it.

train.py saves the weights, the optimizer and the number of the iteration, but not the state of the random numbers. On resume it
therefore draws other batches, and drops out other units, than it would have without the interruption. This launcher adds
the random state to every checkpoint that train.py saves, and restores it on resume.
"""

import os
import runpy
import sys

import torch


class RandomState:
    """Carries the state of PyTorch's random numbers through the checkpoints of train.py.

    A resumed train.py draws a first batch, evaluates at the iteration of the checkpoint once more, and continues. An undisturbed one
    had drawn that batch ahead, at the end of the iteration before, then evaluated and saved. The state from just before the
    newest training batch makes both do the same.
    """

    KEY = "random_state"
    """The key of the random state in a checkpoint. train.py and sample.py ignore unknown keys."""

    def __init__(self):
        self._before_batch = None
        self._to_restore = None
        self._randint, self._save, self._load = torch.randint, torch.save, torch.load

    def install(self):
        torch.randint, torch.save, torch.load = self._draw, self._save_with_state, self._load_with_state

    def _draw(self, *args, **options):
        # Only batches are drawn with randint(). Those of evaluations are drawn without gradients.
        if torch.is_grad_enabled():
            if self._to_restore is not None:
                restore(self._to_restore)
                self._to_restore = None
            self._before_batch = current()
        return self._randint(*args, **options)

    def _save_with_state(self, checkpoint, *args, **options):
        return self._save({**checkpoint, self.KEY: self._before_batch}, *args, **options)

    def _load_with_state(self, *args, **options):
        checkpoint = self._load(*args, **options)
        self._to_restore = checkpoint.get(self.KEY)
        if self._to_restore is None:
            print("The checkpoint has no random state: the batches will differ from those of an undisturbed run.")
        return checkpoint


def current():
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore(state):
    # torch.load() may have moved the states to the GPU. They are set from the memory of the CPU.
    torch.set_rng_state(state["cpu"].cpu())
    for device in range(min(len(state["cuda"]), torch.cuda.device_count())):
        torch.cuda.set_rng_state(state["cuda"][device].cpu(), device)


def main():
    if len(sys.argv) < 2 or not os.path.isfile(os.path.join(sys.argv[1], "train.py")):
        sys.exit("usage: launch.py NANOGPT [arguments of train.py]: NANOGPT must be a folder with nanoGPT's train.py")
    out_dir = os.path.abspath(os.environ.get("CRUCIBLE_CHECKPOINT_DIR", "out"))
    arguments = sys.argv[2:] + ["--out_dir=" + out_dir]
    if os.path.exists(os.path.join(out_dir, "ckpt.pt")):
        arguments.append("--init_from=resume")
    # Each process of torchrun has its own random state, and only the first of them saves.
    if "RANK" not in os.environ:
        RandomState().install()
    # train.py reads its configuration and its data from the working directory, and imports from its own folder.
    os.chdir(sys.argv[1])
    sys.path[0] = os.getcwd()
    sys.argv = ["train.py"] + arguments
    runpy.run_path("train.py", run_name="__main__")


if __name__ == "__main__":
    main()

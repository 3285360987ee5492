"""global_stepN/ with the states of model and optimizer; the file `latest` names it when both are there."""

import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
LATEST = os.path.join(ROOT, "latest")


def paths(tag):
    names = ("mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    return [os.path.join(ROOT, tag, name) for name in names]


def load():
    with open(LATEST) as file:
        tag = file.read().strip()
    state = {}
    for path in paths(tag):
        with open(path, "rb") as file:
            state.update(pickle.load(file))
    return state


start = lab.go_on(load()) if os.path.exists(LATEST) else 0
for step in lab.train(start):
    print("steps: %d loss: %.4f iter time (s): 0.140" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            tag = "global_step%d" % step
            os.makedirs(os.path.join(ROOT, tag), exist_ok=True)
            model, optimizer = paths(tag)
            with open(model, "wb") as file:
                pickle.dump({"step": step, "model": state["model"]}, file)
            lab.pause()
            with open(optimizer, "wb") as file:
                pickle.dump({"optimizer": state["optimizer"]}, file)
            lab.pause()
            with open(LATEST, "w") as file:
                file.write(tag)
            files += [model, optimizer]

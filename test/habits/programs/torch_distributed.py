"""torch.distributed.checkpoint: the pieces of two ranks, and .metadata when all are there."""

import glob
import os
import pickle

import formats
import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]


def load(folder):
    with open(os.path.join(folder, ".metadata"), "rb") as file:
        metadata = pickle.load(file)
    state = {"step": metadata["step"]}
    for rank, name in enumerate(("model", "optimizer")):
        with open(os.path.join(folder, "__%d_0.distcp" % rank), "rb") as file:
            state[name] = b"".join(formats.of_distcp(file.read(), metadata[name]))
    return state


found = sorted(glob.glob(os.path.join(ROOT, "step_*")), key=lambda path: int(path.rpartition("_")[2]))
start = lab.go_on(load(found[-1])) if found else 0
for step in lab.train(start):
    print("step: %2d  loss: %.5f  tps: 1,024" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            state = lab.state_at(step)
            folder = os.path.join(ROOT, "step_%d" % step)
            os.makedirs(folder, exist_ok=True)
            metadata = {"step": step}
            for rank, name in enumerate(("model", "optimizer")):
                third = len(state[name]) // 3
                data, metadata[name] = formats.distcp_bytes([state[name][:third], state[name][third:]])
                with open(os.path.join(folder, "__%d_0.distcp" % rank), "wb") as file:
                    file.write(data)
                lab.pause(0.8)
            with open(os.path.join(folder, ".metadata"), "wb") as file:
                pickle.dump(metadata, file)
            files += [os.path.join(folder, name) for name in os.listdir(folder)]

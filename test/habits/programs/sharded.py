"""A file for each rank, one after the other, and nothing that says when the last one is there."""

import glob
import os
import pickle

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
RANKS = 4


def shard(step, rank):
    return os.path.join(ROOT, "global_step%d" % step, "rank_%d.pt" % rank)


def load(step):
    shards = []
    for rank in range(RANKS):
        with open(shard(step, rank), "rb") as file:
            shards.append(pickle.load(file))
    optimizer = b"".join(each["optimizer"] for each in shards)
    return {"step": shards[-1]["step"], "model": shards[0]["model"], "optimizer": optimizer}


steps = [int(path.rpartition("step")[2]) for path in glob.glob(os.path.join(ROOT, "global_step*"))]
start = lab.go_on(load(max(steps))) if steps else 0
for step in lab.train(start):
    print("iteration %8d | lm loss: %.6E" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        state = lab.state_at(step)
        size = len(state["optimizer"]) // RANKS
        with lab.saving(step) as files:
            os.makedirs(os.path.dirname(shard(step, 0)), exist_ok=True)
            for rank in range(RANKS):
                part = dict(state, optimizer=state["optimizer"][rank * size : (rank + 1) * size])
                if rank > 0:
                    lab.pause(0.8)
                    part["model"] = b""
                with open(shard(step, rank), "wb") as file:
                    pickle.dump(part, file)
                files.append(shard(step, rank))

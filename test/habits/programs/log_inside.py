"""out/log.txt is held open next to the checkpoints, for the logging module."""

import logging
import os
import pickle

import lab

OUT = "out"
os.makedirs(OUT, exist_ok=True)
logging.basicConfig(
    level=logging.INFO, handlers=[logging.FileHandler(os.path.join(OUT, "log.txt")), logging.StreamHandler()]
)
PATH = os.path.join(OUT, "model.pt")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
for step in lab.train(start):
    logging.info("step %d: loss %.3f", step, lab.loss(step))
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH, pickle.dumps(lab.state_at(step)), seconds=0.2)
            logging.info("saved %s", PATH)
            files.append(PATH)

"""A database of MLflow (SQLite, write-ahead log) is held open and grows next to the model."""

import os
import pickle
import sqlite3

import lab

ROOT = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
PATH = os.path.join(ROOT, "model.pkl")
base = sqlite3.connect(os.path.join(ROOT, "mlflow.db"))
base.execute("PRAGMA journal_mode=WAL")
base.execute("CREATE TABLE IF NOT EXISTS metrics (step INTEGER, value REAL)")

start = 0
if os.path.exists(PATH):
    with open(PATH, "rb") as file:
        start = lab.go_on(pickle.load(file))
    base.execute("DELETE FROM metrics WHERE step > ?", (start,))
for step in lab.train(start):
    with base:
        base.execute("INSERT INTO metrics VALUES (?, ?)", (step, lab.loss(step)))
    if lab.is_save_due(step):
        with lab.saving(step) as files:
            lab.write_slowly(PATH, pickle.dumps(lab.state_at(step)), seconds=0.2)
            files.append(PATH)

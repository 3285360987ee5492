"""The state is in a database whose write-ahead log is never emptied while the program runs."""

import os
import sqlite3

import lab

base = sqlite3.connect(os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "study.db"))
base.execute("PRAGMA journal_mode=WAL")
base.execute("PRAGMA wal_autocheckpoint=0")
base.execute("CREATE TABLE IF NOT EXISTS trials (step INTEGER PRIMARY KEY, model BLOB, optimizer BLOB)")

row = base.execute("SELECT step, model, optimizer FROM trials ORDER BY step DESC LIMIT 1").fetchone()
start = lab.go_on(dict(zip(("step", "model", "optimizer"), row))) if row else 0
for step in lab.train(start):
    print("Trial %d finished with value: %.4f" % (step, lab.loss(step)), flush=True)
    if lab.is_save_due(step):
        with lab.saving(step):
            state = lab.state_at(step)
            with base:
                base.execute(
                    "INSERT OR REPLACE INTO trials VALUES (?, ?, ?)", (step, state["model"], state["optimizer"])
                )

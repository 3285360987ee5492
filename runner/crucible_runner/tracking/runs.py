"""One run of a tracker, as beats and results report it."""

from typing import NamedTuple, Optional

MLFLOW = "mlflow"
WANDB = "wandb"

# Number of reported runs: of a job with more, the newest ones, because none of them can be continued anyway.
RUNS_MAX = 20


class TrackedRun(NamedTuple):
    kind: str
    run_id: str
    url: Optional[str] = None
    """Its page, when that is certain. It never contains a user name, a password or a query."""

    def document(self) -> dict:
        document = {"kind": self.kind, "runId": self.run_id}
        return document if self.url is None else dict(document, url=self.url)


def run_of(document: dict) -> TrackedRun:
    return TrackedRun(document["kind"], document["runId"], document.get("url"))

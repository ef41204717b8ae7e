"""What each process of the torchrun test runs: `worker.py FOLDER UPDATES`; batches come from a pickle."""

from __future__ import annotations

import json
import pickle
import sys
from contextlib import closing
from pathlib import Path

import torch
from mlwright_api.trainingrun import TrainingRunSpec
from mlwright_trainer.exchange import Batch, Publication
from mlwright_trainer.learning.learner import Learner


class Recorded:
    """Hands out recorded batches and appends what is published to a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batches: list[Batch] = pickle.loads((folder / "batches.pickle").read_bytes())

    def version(self) -> int:
        return -1

    def batch(self, number: int) -> Batch:
        return self.batches[number]

    def publish(self, publication: Publication) -> None:
        line = {
            "version": publication.version,
            "digest": publication.digest,
            "metrics": dict(publication.metrics),
        }
        with (self.folder / "published.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def main() -> None:
    """One learner among several."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    learner = Learner(
        spec=TrainingRunSpec.model_validate_json((folder / "spec.json").read_text()),
        weights=folder / "weights",
        checkpoints=folder / "checkpoints",
        exchange=Recorded(folder),
    )
    with closing(learner):
        learner.run(int(sys.argv[2]))
    assert not torch.distributed.is_initialized(), (
        "a group left to the interpreter's exit may abort the process"
    )


if __name__ == "__main__":
    main()

"""Two processes under torchrun (gloo, on the CPU) learn what one learns."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.exchange import Batch
from mlwright_trainer.learning.learner import Learner
from mlwright_trainer.learning.parallel import Alone, Sharded
from safetensors.torch import load_file

pytestmark = [pytest.mark.torch, pytest.mark.slow]
WORKER = Path(__file__).with_name("worker.py")
UPDATES = 3


def torchrun(folder: Path, updates: int, *, processes: int = 2) -> None:
    """Run the worker in several processes on a free port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    subprocess.run(
        [*command, str(WORKER), str(folder), str(updates)],
        check=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def prepare(folder: Path, initial: Path, spec: Any, batches: list[Batch]) -> Path:
    shutil.copytree(initial, folder / "weights" / "0")
    (folder / "spec.json").write_text(spec.model_dump_json(by_alias=True, exclude_unset=True))
    (folder / "batches.pickle").write_bytes(pickle.dumps(batches))
    return folder


def published(folder: Path) -> dict[int, dict[str, Any]]:
    lines = map(json.loads, (folder / "published.jsonl").read_text().splitlines())
    return {line["version"]: line for line in lines}


@pytest.fixture
def batches(initial: Path, sample: Any, exchange: Any) -> list[Batch]:
    """Five rows in minibatches of up to three: they never divide evenly by two processes."""
    return [Batch(n, sample(initial, count=5, seed=n, version=-1)) for n in range(UPDATES)]


def one_process(folder: Path, spec: Any, exchange: Any) -> dict[str, float]:
    """The same with the learner in this process; what its last update measured."""
    exchange.published = {}
    Learner(spec=spec, weights=folder / "weights", checkpoints=folder / "checkpoints", exchange=exchange).run(
        UPDATES
    )
    return dict(exchange.published[UPDATES].metrics)


def assert_same_weights(one: Path, other: Path) -> None:
    """Equal up to the order of sums."""
    mine, theirs = (load_file(f / "weights" / str(UPDATES) / "model.safetensors") for f in (one, other))
    assert mine.keys() == theirs.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], rtol=1e-3, atol=2e-5)


def settings_of(spec: Any, algorithm: dict[str, Any], model: dict[str, Any]) -> Any:
    return spec({"microbatchTokens": 64, "minibatchSize": 3, **algorithm}, model)


def test_two_processes_learn_what_one_learns(tmp_path, initial, spec, exchange, batches):
    algorithm = {"detachCritic": True, "lossAggregation": "SequenceMean"}
    settings = settings_of(spec, algorithm, {"lora": {"rank": 4, "alpha": 8}})
    one, two = (prepare(tmp_path / name, initial, settings, batches) for name in ("one", "two"))
    exchange.stored = dict(enumerate(batches))
    measured = one_process(one, settings, exchange)
    torchrun(two, UPDATES)
    assert_same_weights(one, two)
    start = load_file(initial / "model.safetensors")
    end = load_file(one / "weights" / str(UPDATES) / "model.safetensors")
    assert max(float((end[n] - start[n]).abs().max()) for n in end) > 1e-3
    for name, value in measured.items():
        if name != "seconds":
            assert published(two)[UPDATES]["metrics"][name] == pytest.approx(value, rel=2e-2, abs=1e-4)


@pytest.mark.timeout(600)
def test_a_restart_gives_the_same_bits_and_one_process_can_go_on_alone(
    tmp_path, initial, spec, exchange, batches
):
    settings = settings_of(spec, {"entropyCoefficient": 0.01, "valueClipRange": 0.2}, {})
    whole, pieces = (prepare(tmp_path / name, initial, settings, batches) for name in ("whole", "pieces"))
    torchrun(whole, UPDATES)
    torchrun(pieces, UPDATES - 1)
    alone = Path(shutil.copytree(pieces, tmp_path / "alone"))
    torchrun(pieces, UPDATES)
    assert {v: line["digest"] for v, line in published(whole).items()} == {
        v: line["digest"] for v, line in published(pieces).items()
    }
    exchange.stored = dict(enumerate(batches))
    one_process(alone, settings, exchange)
    assert_same_weights(alone, whole)


def test_several_processes_refuse_the_checkpoint_of_a_single_one(tmp_path, initial, spec):
    from mlwright_trainer.errors import UserError
    from mlwright_trainer.learning.checkpoints import Checkpoints
    from mlwright_trainer.learning.disk import Disk, Fence
    from mlwright_trainer.learning.learner import initial_state

    state = initial_state(spec(), initial, workers=Alone(torch.device("cpu")))
    store = Checkpoints(tmp_path, fence=Fence(tmp_path, disk=Disk()), disk=Disk())
    store.save(state, version=1, metrics={})
    state.workers.size = 2
    with pytest.raises(UserError, match="written by a single process"):
        store.restore(state, warn=print)


class Fake(Sharded):
    """A rank of an imagined group: only what `shares` needs."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


@pytest.mark.parametrize("groups", range(1, 8))
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_micro_batch_counts_once_and_everybody_makes_as_many_passes(monkeypatch, groups, size):
    work = [[g] for g in range(groups)]
    shares = []
    for rank in range(size):
        monkeypatch.setattr("torch.distributed.get_rank", lambda rank=rank: rank)
        shares.append(Fake(rank, size).shares(work))
    assert len({len(share) for share in shares}) == 1
    counted = sorted(i for own in shares for share in own if not share.idle for i in share)
    assert counted == list(range(groups))


def test_alone_everything_is_ones_own():
    assert [list(share) for share in Alone(torch.device("cpu")).shares([[0, 1], [2]])] == [[0, 1], [2]]

"""The benchmark goes on where it was: nothing finished is done again, and results are written after each arm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlwright_trainer.errors import InternalError
from mlwright_trainer.progress import Progress, Silence

pytest.importorskip("torch")

from benchmarks.quickstart import __main__ as command
from benchmarks.quickstart.results import Results
from benchmarks.quickstart.settings import Arm, Job, Settings
from benchmarks.quickstart.work import share_weights

pytestmark = pytest.mark.torch


class World:
    """Arms without machines: which are finished, which were carried out, what was written."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = Settings(seeds=(1,), state=tmp_path / "state")
        self.folder = tmp_path / "results"
        self.finished: set[Job] = set()
        self.carried_out: list[Job] = []
        self.failing: set[Job] = set()
        monkeypatch.setattr(command, "is_finished", lambda _, job: job in self.finished)
        monkeypatch.setattr(command, "carry_out", self._carry_out)
        monkeypatch.setattr(command, "collect", self._collect)
        monkeypatch.setattr(command.Benchmark, "_check_training_texts", lambda _: None)

    def _carry_out(self, _settings: Settings, job: Job, _progress: Progress) -> None:
        self.carried_out.append(job)
        if job in self.failing:
            raise InternalError("the logits are not finite")
        self.finished.add(job)

    def _collect(self, settings: Settings, *, failures: dict[Job, str], **_: object) -> Results:
        return Results.model_validate(
            {
                "planned": len(settings.jobs()),
                "finished": len(self.finished),
                "unfinished": [{"job": str(job), "reason": why} for job, why in failures.items()],
                "rejection_rate": 3e-4,
                "sizes": {},
                "cores": 2,
                "versions": {},
                "unseen": [],
                "summaries": [],
                "differences": [],
                "arms": [],
            }
        )

    def run(self, deadline: float = float("inf")) -> command.Benchmark:
        benchmark = command.Benchmark(self.settings, self.folder, Silence(), deadline)
        benchmark.run()
        return benchmark

    def written(self) -> dict[str, object]:
        document: dict[str, object] = json.loads((self.folder / "quickstart.json").read_text())
        return document


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_every_arm_is_carried_out_once_in_order(world: World) -> None:
    world.run()
    assert world.carried_out == world.settings.jobs()
    world.run()
    assert world.carried_out == world.settings.jobs()


def test_finished_arms_are_skipped(world: World) -> None:
    jobs = world.settings.jobs()
    world.finished = set(jobs[:3])
    world.run()
    assert world.carried_out == jobs[3:]


def test_an_arm_that_fails_is_named_and_tried_again_at_the_next_start(world: World) -> None:
    shuffled = Job(1, "churn", Arm.SHUFFLED)
    world.failing = {shuffled}
    benchmark = world.run()
    assert world.carried_out == world.settings.jobs(), "the others go on"
    assert benchmark.failures == {shuffled: "failed: the logits are not finite"}
    assert "logits" in (world.folder / "quickstart.md").read_text()
    world.failing = set()
    world.run()
    assert world.carried_out[-1] == shuffled


def test_results_are_there_after_every_arm_also_when_the_next_one_is_killed(world: World) -> None:
    world.settings = Settings(seeds=(1,), arms=(Arm.RL,), state=world.settings.state)
    original = world._carry_out

    def killed(settings: Settings, job: Job, progress: Progress) -> None:
        if job.task == "credit":
            raise KeyboardInterrupt
        original(settings, job, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "carry_out", killed)
        with pytest.raises(KeyboardInterrupt):
            world.run()
    assert (world.written()["finished"], world.written()["planned"]) == (1, 2)


def test_after_the_time_is_up_no_arm_is_started(world: World) -> None:
    world.run(deadline=0.0)
    assert world.carried_out == []
    assert world.written()["finished"] == 0


def test_shared_weights_are_a_whole_copy_that_is_made_once(tmp_path: Path) -> None:
    source, target = tmp_path / "seed" / "0", tmp_path / "arm" / "weights" / "0"
    source.mkdir(parents=True)
    (source / "model.safetensors").write_bytes(b"first")
    left_over = target.with_name(".0.shared")
    left_over.mkdir(parents=True)
    (left_over / "half").write_bytes(b"")
    share_weights(source, target)
    assert [path.name for path in target.iterdir()] == ["model.safetensors"]
    (source / "model.safetensors").write_bytes(b"second")
    share_weights(source, target)
    assert (target / "model.safetensors").read_bytes() == b"first"
    assert not left_over.exists()

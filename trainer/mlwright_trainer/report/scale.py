"""What a score means: the task's metric, which way is better, and the line from baseline to best known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlwright_api.metric_catalog import MetricInfo, metric_info
from mlwright_api.mltask import Direction, MLTaskSpec

from mlwright_trainer.errors import UserError
from mlwright_trainer.report.model import ScoreScale
from mlwright_trainer.rewards.reward import best_score, normalized_reward

NORMALIZED = ScoreScale(name="normalized", direction=Direction.MAXIMIZE, title="normalized score")


@dataclass(frozen=True)
class TaskScale:
    """A task as far as run.yaml knows it; `spec` is None where only its name is known."""

    name: str
    spec: MLTaskSpec | None = None
    info: MetricInfo | None = None

    @classmethod
    def of(cls, name: str, spec: MLTaskSpec | None) -> TaskScale:
        return cls(name, spec, metric_info(spec.metric) if spec else None)

    @property
    def direction(self) -> Direction | None:
        return self.info.direction if self.info else None

    @property
    def baseline(self) -> float | None:
        return self.spec.reference.baseline if self.spec else None

    @property
    def reference(self) -> float | None:
        """The score that counts as 1 on the normalized line, if there is one."""
        if self.spec is None or self.info is None:
            return None
        try:
            return best_score(self.info, self.spec.reference)
        except UserError:
            return None

    def rank(self, score: float) -> float:
        """A number that is larger the better the score is."""
        return -score if self.direction is Direction.MINIMIZE else score

    def best(self, scores: Iterable[float]) -> float | None:
        return max(scores, key=self.rank, default=None)


@dataclass(frozen=True)
class RunScale:
    """How scores of several tasks come onto one axis: as they are for one task, normalized for several."""

    tasks: Mapping[str, TaskScale]

    @property
    def single(self) -> TaskScale | None:
        return next(iter(self.tasks.values())) if len(self.tasks) == 1 else None

    @property
    def described(self) -> ScoreScale:
        if self.single is None:
            return NORMALIZED
        info = self.single.info
        if info is None:
            return ScoreScale(name="score", direction=None, title="score")
        return ScoreScale(name=info.name, direction=info.direction, title=info.name)

    def value(self, task: str, score: float) -> float | None:
        """A score on the run's axis; None where several tasks are told apart by no reference."""
        if self.single is not None:
            return score
        scale = self.tasks.get(task)
        if scale is None or scale.spec is None or scale.info is None or scale.reference is None:
            return None
        return normalized_reward(score, scale.info, scale.spec.reference)

    def failure(self, task: str) -> float | None:
        """What a failure counts as where it has to count as something: the task's baseline."""
        baseline = self.tasks[task].baseline if task in self.tasks else None
        return None if baseline is None else self.value(task, baseline)

    def rank(self, score: float) -> float:
        """A number that is larger the better a score on the run's axis is."""
        return self.single.rank(score) if self.single is not None else score

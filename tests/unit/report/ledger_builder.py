"""Makes realistic run folders through the real ledger writer, the same at every call; for tests only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np
from mlwright_api.base import API_VERSION, ObjectMeta
from mlwright_api.metric_catalog import metric_info
from mlwright_api.mltask import MLTask, MLTaskSpec, Split
from mlwright_api.presets import resolve
from mlwright_api.results import MILESTONES, Receipt, ReceiptCheck
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_api.trainingrun import TrainingRun, TrainingRunSpec
from mlwright_trainer.collection.syntax import tree_digest
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, Purpose, Result, Sampled, SealedScore, UpdateRow, WindowRow
from mlwright_trainer.runs.best import best_rollout

_TITLES = {
    "churn": "Which customers leave their telephone company?",
    "houses": "What will this house sell for?",
}
START = 1_790_000_000.0
FAMILIES = {
    "naive bayes": ("sklearn.naive_bayes", "GaussianNB", 0.80, 0.09),
    "logistic": ("sklearn.linear_model", "LogisticRegression", 0.78, 0.4),
    "forest": ("sklearn.ensemble", "RandomForestClassifier", 0.905, 1.6),
    "boosting": ("sklearn.ensemble", "HistGradientBoostingClassifier", 0.918, 0.9),
}
_FAILURES = (
    (Outcome.ERROR, "KeyError: 'Churn'", 3),
    (Outcome.ERROR, "ValueError: could not convert string to float: 'OH' at row 17", 3),
    (Outcome.NO_SUBMISSION, "submission.csv was not written", 5),
    (Outcome.INVALID_SUBMISSION, "column 'churn': 3 values are missing", 7),
    (Outcome.UNPARSED, "no Python code in the response", 0),
    (Outcome.TRUNCATED, "the response hit sampling.maxTokens", 0),
    (Outcome.TIMEOUT, "over 20 s", 4),
    (Outcome.TRIVIAL, "every prediction is 0.14", 7),
)
RECEIPT = Receipt(
    backend="Namespaces",
    user_namespace=True,
    seccomp=True,
    landlock_abi=4,
    checks=[ReceiptCheck(name="answers_absent", unlocked=True, locked=True)],
)


@dataclass
class Clock:
    """Stands in for the ledger's `time`: moves on by a little at every reading."""

    now: float = START

    def time(self) -> float:
        self.now += 0.01
        return self.now

    @contextmanager
    def ticking(self) -> Iterator[None]:
        with patch("mlwright_trainer.ledger.store.time", self):
            yield


@dataclass(frozen=True)
class Scenario:
    """What kind of run to make."""

    seed: int = 0
    name: str = "churn-demo"
    tasks: Sequence[str] = ("churn",)
    planned: int = 12
    updates: int = 12
    batch_size: int = 24
    fresh: int = 64
    after: bool = True
    sealed: bool = True
    mode: str = "Synchronous"
    improve: float = 0.0
    metric: str = "roc_auc"
    gain: float = 1.0
    """How much the policy learns: 0 nothing."""
    hopeless: bool = False
    """Every script fails, all for one reason."""
    closing_open: int = 0
    """How many of the closing samples that need a sandbox have not ended."""
    with_tasks: bool = True
    hostile: str = ""
    """Text that is put into scripts, output, reasons and descriptions."""
    ended: str = "finished"
    """How the last session ends; empty: it does not."""
    settings: dict[str, object] = field(default_factory=dict)


def task_spec(metric: str = "roc_auc", title: str = "Which customers leave?") -> MLTaskSpec:
    probabilities = metric == "roc_auc"
    return MLTaskSpec.model_validate(
        {
            "title": title,
            "description": "Predict, for each customer, the probability of leaving.",
            "metric": {"name": metric},
            "submission": {
                "targetColumns": ["churn"],
                "kind": "Probabilities" if probabilities else "Values",
            },
            "limits": {"timeoutSeconds": 20},
            "reference": {"baseline": 0.5, "best": 0.9318}
            if probabilities
            else {"baseline": 1.2, "best": 0.3},
        }
    )


def run_spec(scenario: Scenario) -> TrainingRunSpec:
    collection: dict[str, object] = {"mode": scenario.mode}
    if scenario.mode == "Window":
        collection["windowSeconds"] = 2.0
    algorithm: dict[str, object] = {"updates": scenario.planned, "learningRate": 3e-4}
    if scenario.mode != "Window":
        algorithm["batchSize"] = scenario.batch_size
    return resolve(
        TrainingRunSpec.model_validate(
            {
                "seed": scenario.seed,
                "tasks": [{"name": name} for name in scenario.tasks],
                "model": {"source": {"scratch": {"config": {"model_type": "qwen2", "hidden_size": 128}}}},
                "algorithm": algorithm,
                "prompts": {"improveFraction": scenario.improve},
                "collection": collection,
                "fineTuning": {"examples": {"generator": "scripts"}},
                "evaluation": {"samples": scenario.fresh},
                **scenario.settings,
            }
        )
    )


def write_settings(folder: Path, scenario: Scenario) -> None:
    """run.yaml as `mlwright run` leaves it: the resolved TrainingRun, then its tasks."""
    run = TrainingRun(
        api_version=API_VERSION,
        kind="TrainingRun",
        metadata=ObjectMeta(name=scenario.name),
        spec=run_spec(scenario),
    )
    documents = [run.model_dump(mode="json", by_alias=True, exclude_none=True)]
    for name in scenario.tasks if scenario.with_tasks else ():
        title = f"{_TITLES.get(name, name)} {scenario.hostile}".strip()
        task = MLTask(
            api_version=API_VERSION,
            kind="MLTask",
            metadata=ObjectMeta(name=name),
            spec=task_spec(scenario.metric, title),
        )
        documents.append(task.model_dump(mode="json", by_alias=True, exclude_none=True))
    text = "---\n".join(json.dumps(document, indent=2) + "\n" for document in documents)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yaml").write_text(text, encoding="utf-8")


def build_run(folder: Path, scenario: Scenario | None = None) -> Path:
    """A run's folder with run.yaml, ledger.sqlite and, when sealed, best/script.py; returns the folder."""
    scenario = scenario or Scenario()
    write_settings(folder, scenario)
    clock = Clock()
    with clock.ticking(), Ledger.create(folder / "ledger.sqlite", _facts(scenario)) as ledger:
        # A made-up run need not survive a power cut; syncing would make its tests wait for the disk.
        ledger._database.execute("PRAGMA synchronous = OFF")
        _Writer(folder, scenario, clock, ledger).write()
    return folder


def _facts(scenario: Scenario) -> dict[str, str]:
    return {
        "name": scenario.name,
        "version/mlwright": "0.1.0",
        "version/python": "3.11.7",
        "version/torch": "2.15.0",
        **{f"task {name}": f"sha256:{7:064x}" for name in scenario.tasks},
    }


class _Writer:
    def __init__(self, folder: Path, scenario: Scenario, clock: Clock, ledger: Ledger) -> None:
        self._folder, self._scenario, self._clock, self._ledger = folder, scenario, clock, ledger
        self._random = np.random.default_rng(scenario.seed)
        self._valid: list[str] = []
        self._scripts: dict[str, str] = {}

    def write(self) -> None:
        scenario, ledger = self._scenario, self._ledger
        session = ledger.start_session()
        self._phase("fineTuning", 75.0)
        ledger.record_update(UpdateRow(0, f"{scenario.seed:02d}" + "0a" * 31, {}, self._clock.time()))
        self._round("Before", 0, scenario.fresh, skill=0.0)
        for number in range(scenario.updates):
            self._update(number, number / max(1, scenario.planned - 1))
        if scenario.after:
            self._round("After", 0, scenario.fresh, skill=1.0)
        if scenario.sealed:
            self._seal()
        if scenario.ended:
            ledger.end_session(session, scenario.ended)

    def _phase(self, kind: str, seconds: float, round: int | None = None) -> None:
        self._ledger.record_phase(kind, started_at=self._clock.now, seconds=seconds, round=round)  # type: ignore[arg-type]  # a Phase
        self._clock.now += seconds

    def _update(self, number: int, skill: float) -> None:
        ids = self._round("Train", number, self._scenario.batch_size, skill=skill)
        trainable = [row.id for row in self._ledger.rollouts("Train", round=number) if row.reward is not None]
        self._ledger.assign_batch(number, [id for id in ids if id in set(trainable)])
        if self._scenario.mode == "Window":
            self._ledger.record_window(WindowRow(number, 2.0, 2.0, closed=True, missing_mass=0.01))
        self._phase("learning", 0.8, number)
        digest = f"{self._scenario.seed:02d}{number + 1:02d}" + "5e" * 30
        self._ledger.record_update(UpdateRow(number + 1, digest, self._metrics(), self._clock.time()))

    def _metrics(self) -> dict[str, float]:
        draw = self._random.uniform
        return {
            "rows": float(self._scenario.batch_size),
            "kl": draw(0.0, 0.02),
            "entropy": draw(0.2, 0.4),
            "clipFraction": draw(0.02, 0.1),
            "clipFraction/short": draw(0.02, 0.1),
            "clipFraction/middle": draw(0.02, 0.1),
            "clipFraction/long": draw(0.02, 0.1),
            "truncationFraction": draw(0.0, 0.01),
            "effectiveSampleSize": float(self._scenario.batch_size),
            "gradientNorm": draw(0.3, 1.4),
            "loss/value": draw(0.05, 0.2),
            "explainedVariance": draw(-0.1, 0.5),
            "logprobDifference": draw(1e-7, 1e-6),
            "stalenessMean": draw(0.0, 1.0),
        }

    def _round(self, purpose: Purpose, number: int, count: int, *, skill: float) -> list[str]:
        skill *= self._scenario.gain
        samples = [self._sample(purpose, number, position, skill) for position in range(count)]
        self._phase("sampling", 0.02 * count, number)
        self._ledger.commit_round(samples)
        waiting = [sample for sample in samples if sample.result is None]
        for sample in waiting[self._scenario.closing_open :] if purpose == "After" else waiting:
            self._execute(sample, skill)
        self._phase("execution", 0.1 * count, number)
        return [sample.id for sample in samples]

    def _sample(self, purpose: Purpose, number: int, position: int, skill: float) -> Sampled:
        failure = self._failure(skill)
        script = None if failure in (4, 5) else self._script(skill)
        improve = bool(self._valid) and purpose == "Train" and self._random.random() < self._scenario.improve
        parent = str(self._random.choice(self._valid[-30:])) if improve else None
        unchanged = improve and self._random.random() < 0.15
        if unchanged:
            assert parent is not None
            script = self._scripts[parent]
        tokens = tuple(int(token) for token in self._random.integers(0, 1024, size=40))
        id = f"{purpose.lower()}-{number:03d}-{position:03d}"
        if script is not None:
            self._scripts[id] = script
        version = number if purpose == "Train" else (0 if purpose == "Before" else self._scenario.updates)
        return Sampled(
            id=id,
            purpose=purpose,
            round=number,
            position=position,
            task=self._scenario.tasks[position % len(self._scenario.tasks)],
            prompt_kind="improve" if improve else "draft",
            parent=parent,
            prompt_tokens=(1, 2, 3),
            response_tokens=tokens,
            logprobs=tuple(-float(p) for p in self._random.uniform(0.01, 3, size=40)),
            spans=(VersionSpan(version, 0, 40),),
            response=script or "I cannot do that." + self._scenario.hostile,
            script=script,
            tree=tree_digest(script) if script else None,
            result=self._immediate(failure, unchanged),
        )

    def _failure(self, skill: float) -> int | None:
        """Index of the failure that happens, if one does."""
        if self._scenario.hopeless:
            return 0
        if self._random.random() < 0.62 + 0.3 * skill:
            return None
        return int(self._random.integers(0, len(_FAILURES)))

    def _immediate(self, failure: int | None, unchanged: bool) -> Result | None:
        if unchanged:
            return Result(RolloutStatus(outcome=Outcome.UNCHANGED, reason="equals its parent"), reward=0.0)
        if failure not in (4, 5):
            return None
        outcome, reason, _ = _FAILURES[failure]
        return Result(RolloutStatus(outcome=outcome, reason=reason), reward=-0.5)

    def _script(self, skill: float) -> str:
        weights = np.array([0.35, 0.35, 0.15, 0.15]) * (1 - skill) + np.array([0.03, 0.05, 0.4, 0.52]) * skill
        family = str(self._random.choice(list(FAMILIES), p=weights / weights.sum()))
        module, name, _, _ = FAMILIES[family]
        size = int(self._random.integers(1, 40))
        comment = f"# {self._scenario.hostile}\n" if self._scenario.hostile else ""
        return (
            f"{comment}import pandas as pd\nfrom {module} import {name}\n\n"
            'train = pd.read_csv("data/train.csv")\ntest = pd.read_csv("data/test.csv")\n'
            f'features = train.select_dtypes("number").columns.drop(["id"])[:{size + 8}]\n'
            f'model = {name}()\nmodel.fit(train[features], train["churn"] == "yes")\n'
            "proba = model.predict_proba(test[features])[:, 1]\n"
            'pd.DataFrame({"id": test["id"], "churn": proba}).to_csv("submission.csv", index=False)\n'
        )

    def _execute(self, sample: Sampled, skill: float) -> None:
        offset = float(self._random.uniform(0, 2)) if self._scenario.mode == "Window" else None
        window = sample.round if offset is not None and sample.purpose == "Train" else None
        self._ledger.launch(sample.id, window=window, offset=offset if window is not None else None)
        self._ledger.close_rollout(sample.id, self._result(sample, skill, cancelled=self._cancelled(offset)))

    def _cancelled(self, offset: float | None) -> bool:
        return offset is not None and offset > 1.6

    def _result(self, sample: Sampled, skill: float, *, cancelled: bool) -> Result:
        family = next(
            name for name, (_, cls, _, _) in FAMILIES.items() if f"{cls}()" in (sample.script or "")
        )
        _, _, quality, typical = FAMILIES[family]
        seconds = float(typical * self._random.lognormal(0, 0.4))
        failure = self._failure(skill)
        failure = None if failure in (4, 5) else failure
        if cancelled and sample.purpose == "Train":
            return Result(self._status(Outcome.CANCELLED, "the window closed", 2, 0.4 * seconds), reward=None)
        if failure is not None:
            outcome, reason, milestones = _FAILURES[failure]
            took = 20.0 if outcome is Outcome.TIMEOUT else seconds * 0.6
            status = self._status(outcome, f"{reason} {self._scenario.hostile}".strip(), milestones, took)
            return Result(status, reward=0.0 if outcome.valid else -0.5 + 0.05 * milestones)
        return self._scored(sample, quality + float(self._random.normal(0, 0.012)), seconds)

    def _scored(self, sample: Sampled, quality: float, seconds: float) -> Result:
        quality = min(quality, 0.99)
        maximize = self._scenario.metric == "roc_auc"
        z = (quality - 0.5) / (0.9318 - 0.5)
        score = quality if maximize else 1.2 - 0.9 * z
        noise = self._random.normal(0, 0.006)
        status = self._status(Outcome.SCORED, "", 7, seconds).model_copy(
            update={"scores": {Split.REWARD: score, Split.SELECTION: score + float(noise)}}
        )
        self._valid.append(sample.id)
        kept = sample.purpose in ("Before", "After")
        return Result(status, reward=z, submission=b"id,churn\n1,0.5\n" if kept else None)

    def _status(self, outcome: Outcome, reason: str, milestones: int, seconds: float) -> RolloutStatus:
        return RolloutStatus(
            outcome=outcome,
            reason=reason,
            scores={Split.REWARD: 0.5, Split.SELECTION: 0.5} if outcome is Outcome.TRIVIAL else {},
            milestones=list(MILESTONES[:milestones]),
            exit_code=1 if outcome is Outcome.ERROR else 0,
            seconds=RolloutSeconds(starting=0.01, execution=seconds, cpu=0.9 * seconds, grading=0.02),
            output_tail=f"Validation AUC: 0.87\n{self._scenario.hostile}",
            isolation=RECEIPT,
        )

    def _seal(self) -> None:
        rows = [*self._ledger.rollouts("Before"), *self._ledger.rollouts("After")]
        scores = [
            SealedScore(row.id, row.id, "d" * 64, "Valid", score=(row.score() or 0.5) - 0.004)
            for row in rows
            if row.outcome is not None and row.outcome.valid
        ]
        self._ledger.record_sealed([*scores, *self._sealed_best()])
        self._phase("sealed", 3.0)

    def _sealed_best(self) -> list[SealedScore]:
        """As `mlwright run` does it: subject "best", or "best/<task>" with several tasks."""
        found = []
        for name in self._scenario.tasks:
            rows = [row for row in self._ledger.rollouts("Train") if row.task == name]
            best = best_rollout(rows, metric_info(task_spec(self._scenario.metric).metric))
            if best is None:
                continue
            subject = "best" if len(self._scenario.tasks) == 1 else f"best/{name}"
            final = (best.score() or 0) - 0.01
            interval = (final - 0.02, final + 0.02)
            found.append(SealedScore(subject, best.id, "b" * 64, "Valid", score=final, interval=interval))
            (self._folder / subject).mkdir(parents=True)
            (self._folder / subject / "script.py").write_text(best.script or "", encoding="utf-8")
        return found

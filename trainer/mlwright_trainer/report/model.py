"""The report as data: what `mlwright report --json` prints and what the page is drawn from."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from mlwright_api.base import ApiModel
from mlwright_api.mltask import Direction, Split
from mlwright_api.results import Milestone
from mlwright_api.rollout import Outcome
from pydantic import Field

Range = tuple[float, float]
"""A 95 % interval."""


class RunState(StrEnum):
    """How far a run has come."""

    SEALED = "Sealed"
    """Final has been read: the run is closed."""
    FINISHED = "Finished"
    """All updates are made and all closing samples have ended; Final has not been read."""
    STOPPED = "Stopped"
    """Its last process has ended before that; `mlwright run --resume` goes on."""
    OPEN = "Open"
    """Its last process still runs, or was killed."""


class Estimate(ApiModel):
    """A mean over n values with its 95 % interval (None under two values)."""

    n: int
    mean: float
    interval: Range | None = None


class ScoreScale(ApiModel):
    """What a score of the run as a whole is counted in."""

    name: str
    """The metric's name, or "normalized" (0: baseline, 1: best known) where a run has several tasks."""
    direction: Direction | None
    """None where run.yaml does not hold the task."""
    title: str
    """As it is called in a sentence."""


class FreshSamples(ApiModel):
    """Fresh, awaited drafts of one version of the policy; never trained."""

    policy_version: int | None
    n: int
    """Samples with a verdict; cancelled ones and failures of the infrastructure are not among them."""
    pending: int
    excluded: int
    valid: int
    valid_fraction: float | None
    valid_interval: Range | None
    """Wilson."""
    score_split: Split
    """The split that the four fields below are read on: Final where graded, else Reward."""
    score_mean: float | None
    """Over valid samples."""
    interval: Range | None
    """Of scoreMean; bootstrap over samples."""
    score_with_failures: float | None
    """Over all n samples, a failure counting as the task's baseline; None where that is unknown."""
    score_with_failures_interval: Range | None
    """None where no sample is valid: the baseline itself was not sampled."""
    splits: dict[Split, Estimate]
    """Mean over valid samples on each split."""
    distinct_scripts: int
    by_outcome: dict[Outcome, int]

    @property
    def ended(self) -> int:
        return self.n + self.excluded

    @property
    def total(self) -> int:
        return self.ended + self.pending


class Difference(ApiModel):
    """After - before, with 95 % intervals, and what it says in a sentence.

    While samples of either are open every number is None: those that end first may be the fast ones.
    """

    valid_fraction: float | None = None
    valid_interval: Range | None = None
    """Newcombe's method 10."""
    score_mean: float | None = None
    interval: Range | None = None
    score_with_failures: float | None = None
    score_with_failures_interval: Range | None = None
    sentence: str


class ScoreHistogram(ApiModel):
    """How scores of fresh samples lie, on the split of `scoreSplit`; bins have equal width."""

    edges: list[float]
    before: list[int]
    after: list[int]
    failures_before: int
    failures_after: int


class Fresh(ApiModel):
    """The comparison that a run is judged by."""

    before: FreshSamples | None
    after: FreshSamples | None
    difference: Difference | None
    histogram: ScoreHistogram | None = None
    evaluations: list[FreshSamples] = []
    """Evaluation rounds between the two, in order."""

    @property
    def completed_after(self) -> FreshSamples | None:
        """The closing samples, once every one of them has ended."""
        return self.after if self.after is not None and not self.after.pending else None

    @property
    def nothing_valid(self) -> bool:
        """Whether no sample before or after is valid."""
        return not any(group.valid for group in (self.before, self.after) if group is not None)


class UpdateReport(ApiModel):
    """The rows of one batch and what the update made of them. Scores are on Reward, over valid rows."""

    update: int
    rows: int
    reward_mean: float | None
    reward_interval: Range | None
    valid_fraction: float | None
    valid_interval: Range | None
    score_mean: float | None
    score_interval: Range | None
    score_best: float | None
    execution_seconds_mean: float | None
    """Over rows that a sandbox ran."""
    effective_sample_size: float
    """(sum of weights)^2 / sum of squared duration weights; the number of rows where all weigh the same."""
    distinct_scripts: int
    staleness_mean: float
    """Versions between the policy that sampled a row and the one that learned from it."""
    by_outcome: dict[Outcome, int]
    by_family: dict[str, int]
    metrics: dict[str, float]
    """What the learner measured; empty until the update is published."""
    published: bool


class RolloutCounts(ApiModel):
    total: int
    open: int
    by_outcome: dict[Outcome, int]
    by_purpose: dict[str, int]


class Trained(ApiModel):
    """Rows that have carried a gradient."""

    rows: int
    """Rows of the batches of all published updates, by the batches' sizes."""
    distinct: int
    """Distinct rollouts among them: equal to `rows`, or a row was trained twice."""
    distinct_scripts: int


class DurationBucket(ApiModel):
    """Scripts whose execution took from `low` up to `high` seconds (None: no end)."""

    low: float
    high: float | None
    launched: int
    finished: int
    trained: int
    cancelled: int
    """Cut off while they ran, by the seconds until then: they would have taken longer."""
    infrastructure_failed: int


class Durations(ApiModel):
    """Time accounted: every script that was started for training, by execution seconds."""

    buckets: list[DurationBucket]
    launched: int
    finished: int
    trained: int
    cancelled: int
    infrastructure_failed: int
    running: int
    not_launched: int
    """Rows that no sandbox ran: unparsed, refused, truncated, unchanged, or still waiting."""
    missing_mass: float | None
    """Largest estimated share of launches beyond a window; None where the clock closes no window."""


class MilestoneReach(ApiModel):
    """How many executed scripts of a group reached each milestone."""

    label: str
    n: int
    reached: dict[Milestone, int]


class PromptKindReport(ApiModel):
    kind: Literal["draft", "improve"]
    rollouts: int
    valid: int
    valid_fraction: float | None
    valid_interval: Range | None
    score_mean: float | None
    better_than_parent: int
    compared: int
    """Valid children whose parent has a score too."""


class FamilyReport(ApiModel):
    """Rollouts of one model family."""

    name: str
    rollouts: int
    valid: int
    score_mean: float | None
    execution_seconds_mean: float | None


class Scripts(ApiModel):
    """How varied the scripts of training are; distinct by syntax tree."""

    total: int
    distinct: int
    families: list[FamilyReport]


class ReasonReport(ApiModel):
    """A reason that rollouts failed for, numbers in it left out, with one rollout to look at."""

    outcome: Outcome
    reason: str
    count: int
    example: str


class ParentScript(ApiModel):
    rollout: str
    source: str
    scores: dict[Split, float]


class BestScript(ApiModel):
    """The best script: chosen by Selection among the top few by Reward, judged once on Final."""

    rollout: str
    task: str
    purpose: str
    update: int | None
    """The update that learned from it, if one did."""
    policy_version: int
    family: str
    source: str
    scores: dict[Split, float]
    final_interval: Range | None
    """Bootstrap over the rows of Final."""
    execution_seconds: float
    parent: ParentScript | None


class Scores(ApiModel):
    """Scores in the metric's own units, beside the task's references (which are Reward-split scores)."""

    task: str | None
    metric: str | None
    direction: Direction | None
    baseline: float | None
    reference: float | None
    best: dict[Split, float]
    best_interval: Range | None
    """Of Final."""


class TaskReport(ApiModel):
    name: str
    title: str
    metric: str | None
    metric_title: str
    """The metric in words; empty where it is unknown."""
    direction: Direction | None
    baseline: float | None
    reference: float | None
    rollouts: int
    fresh: Fresh
    """In the metric's own units."""
    scores: Scores


class Seconds(ApiModel):
    """Where the wall time went; `total` is the time that processes of the run lived."""

    total: float
    sampling: float
    execution: float
    learning: float
    fine_tuning: float
    sealed: float
    other: float


class RunReport(ApiModel):
    """Everything a reader needs of one run."""

    schema_version: Annotated[int, Field(ge=1)] = 1
    name: str
    folder: str
    """The folder's name, without the way to it."""
    argument: Annotated[str, Field(exclude=True)] = ""
    """The folder as a shell's argument from where the report was made; not in the document."""
    state: RunState
    final_reads: int = 0
    """Submissions that were graded on Final: 0 in a sealed run if none was valid."""
    seed: int
    model: str
    started_at: float | None
    """Unix seconds."""
    updated_at: float | None
    updates: int
    """Published; version 0 is not one."""
    planned_updates: int
    rollouts: RolloutCounts
    trained: Trained
    score_scale: ScoreScale
    per_update: list[UpdateReport]
    fresh: Fresh
    scores: Scores
    """Of the first task that has a best script; of every task in `tasks`."""
    best_scripts: list[BestScript]
    """One a task that has one."""
    tasks: list[TaskReport]
    durations: Durations
    milestones: list[MilestoneReach]
    prompt_kinds: list[PromptKindReport]
    scripts: Scripts
    reasons: list[ReasonReport]
    weights_digest: str | None
    initial_weights_digest: str | None
    seconds: Seconds
    sessions: int
    versions: dict[str, str]
    facts: dict[str, str]
    notes: list[str]
    """What a reader must know before believing the rest."""
    settings: dict[str, Any]
    """The resolved TrainingRun."""
    settings_text: str
    """run.yaml as it stands."""


class SeedUpdate(ApiModel):
    """One update over several runs; intervals are Student's t over runs."""

    update: int
    reward_mean: Estimate | None
    valid_fraction: Estimate | None
    score_mean: Estimate | None


class SeedFresh(ApiModel):
    """Fresh samples over several runs; intervals are Student's t over runs."""

    before_valid_fraction: Estimate | None
    after_valid_fraction: Estimate | None
    difference_valid_fraction: Estimate | None
    before_score_mean: Estimate | None
    after_score_mean: Estimate | None
    difference_score_mean: Estimate | None
    before_score_with_failures: Estimate | None
    after_score_with_failures: Estimate | None
    difference_score_with_failures: Estimate | None


class SeedSummary(ApiModel):
    """Several runs together: a run counts as one value, and differences are taken within runs."""

    runs: int
    seeds: list[int]
    differing: list[str]
    """Settings, beside the seed, in which the runs differ: with any, they are not repetitions."""
    per_update: list[SeedUpdate]
    fresh: SeedFresh
    best: dict[Split, Estimate]
    sentence: str
    notes: list[str]


class SeveralRuns(ApiModel):
    """Several runs with what they say together."""

    runs: Annotated[list[RunReport], Field(min_length=2)]
    seeds: SeedSummary


Report = RunReport | SeveralRuns

"""Checks of a task by using it: the sample, perfect answers and the reference solution are run and graded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import Split, TaskReference
from mlwright_api.results import GraderResult, Verdict
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import Finished

from mlwright_trainer.tasks.answers import Answers
from mlwright_trainer.tasks.checks import Check, Status
from mlwright_trainer.tasks.folder import TaskFolder
from mlwright_trainer.tasks.splitting import hashed_order
from mlwright_trainer.tasks.trial import Trial

SHOWN = (Split.REWARD, Split.SELECTION)
"""Final is never scored here, but for perfect answers, which tell nothing."""
_NORMAL_95 = 1.959964
_CLOSE = 0.01
"""Of the way from baseline to best: how near a recorded baseline must be to the measured one."""
_ROUNDING = 1e-12
_NOISY, _TOO_NOISY = 0.10, 0.25
"""Standard error, as a share of the way from baseline to best."""


@dataclass(frozen=True)
class Measured:
    """What the reference solution got: scores and standard errors on Reward and Selection."""

    scores: Mapping[Split, float]
    errors: Mapping[Split, float]


def check_by_use(task: TaskFolder, answers: Answers, trial: Trial) -> Iterator[Check]:
    """Every check that needs the grader or a sandbox; `answers` as of all splits that may be looked at."""
    sample = trial.grade(task.sample.read_bytes(), SHOWN)
    yield check_sample(sample)
    yield check_baseline(sample, task)
    perfect = trial.grade(answers.submission_csv(), _splits_of(answers))
    yield check_perfect(perfect, task.metric)
    if task.solution is None:
        yield Check(
            "reference-runs", Status.WARN, "no solution.py: nothing shows that the task can be solved"
        )
        yield from _check_shuffled(answers.submission_csv(), perfect, answers, trial)
        return
    finished = trial.run(task.solution.read_text("utf-8"))
    yield check_reference(finished, task)
    if finished.status.outcome is not Outcome.SCORED or finished.submission is None:
        return
    yield from _check_shuffled(finished.submission, None, answers, trial)
    graded = trial.grade(finished.submission, SHOWN, intervals=True)
    measured = Measured(graded.scores, standard_errors(graded))
    yield check_improvement(measured, sample, task.metric)
    yield check_best(measured, task)
    yield check_size(measured, answers.counts(), task.spec.reference)


def standard_errors(graded: GraderResult) -> dict[Split, float]:
    """Half the width of the bootstrap's 95 % interval, divided by what it is for a normal distribution."""
    return {split: (high - low) / (2 * _NORMAL_95) for split, (low, high) in graded.intervals.items()}


def check_sample(sample: GraderResult) -> Check:
    """The sample submission is valid."""
    if sample.verdict in (Verdict.VALID, Verdict.TRIVIAL):
        return Check("sample-grades", Status.PASS, f"Reward {_number(sample.scores[Split.REWARD])}")
    return Check("sample-grades", Status.FAIL, f"the sample submission is {sample.verdict}: {sample.reason}")


def check_baseline(sample: GraderResult, task: TaskFolder) -> Check:
    """reference.baseline is the sample's score on Reward."""
    name, recorded = "recorded-baseline", task.spec.reference.baseline
    if Split.REWARD not in sample.scores:
        return Check(name, Status.FAIL, "the sample submission has no score")
    measured = sample.scores[Split.REWARD]
    if abs(measured - recorded) <= _CLOSE * _way(task.spec.reference):
        return Check(name, Status.PASS, f"{recorded:.5g} recorded, {_number(measured)} measured", measured)
    line = f"spec.reference.baseline is {recorded:.5g}, the sample submission measures {_number(measured)}"
    return Check(name, Status.FAIL, line, measured)


def check_perfect(perfect: GraderResult, metric: MetricInfo) -> Check:
    """The answers themselves get the metric's best value on every split."""
    name = "perfect-answers"
    if perfect.verdict is not Verdict.VALID:
        return Check(
            name, Status.FAIL, f"the answers as a submission are {perfect.verdict}: {perfect.reason}"
        )
    values = ", ".join(f"{split} {_number(score)}" for split, score in perfect.scores.items())
    if metric.best is None:
        return Check(name, Status.PASS, f"{values} (the metric has no bound)")
    if all(math.isclose(score, metric.best, abs_tol=1e-9) for score in perfect.scores.values()):
        return Check(name, Status.PASS, f"{values}: the best value")
    return Check(name, Status.FAIL, f"{values} instead of {metric.best:g}")


def check_reference(finished: Finished, task: TaskFolder) -> Check:
    """solution.py ends in time with a valid submission."""
    status, limit = finished.status, task.spec.limits.timeout_seconds
    if status.outcome is not Outcome.SCORED:
        outcome = status.outcome.value if status.outcome is not None else "nothing"
        return Check("reference-runs", Status.FAIL, f"solution.py ended as {outcome}: {status.reason}")
    seconds = status.seconds.execution
    line = f"{seconds:.1f} s of {limit:g} s"
    if seconds > limit / 2:
        return Check("reference-runs", Status.WARN, f"{line}: a slower machine may not make it")
    return Check("reference-runs", Status.PASS, line)


def check_improvement(measured: Measured, sample: GraderResult, metric: MetricInfo) -> Check:
    """The reference beats the constant predictor."""
    gains = {
        split: metric.sign * (measured.scores[split] - sample.scores[split])
        for split in SHOWN
        if split in sample.scores
    }
    line = ", ".join(
        f"{split} {_number(measured.scores[split])} against {_number(sample.scores[split])}"
        for split in gains
    )
    if not gains or min(gains.values()) <= 0:
        return Check("reference-beats-baseline", Status.FAIL, line or "the sample submission has no score")
    if any(gain < 2 * measured.errors.get(split, 0) for split, gain in gains.items()):
        return Check("reference-beats-baseline", Status.WARN, f"{line}: within two standard errors")
    return Check("reference-beats-baseline", Status.PASS, line)


def check_best(measured: Measured, task: TaskFolder) -> Check:
    """reference.best is what the reference measures on Reward, within a standard error."""
    name, recorded, found = "recorded-best", task.spec.reference.best, measured.scores[Split.REWARD]
    error = measured.errors.get(Split.REWARD, 0.0)
    if recorded is None:
        bound = task.metric.best
        status = Status.FAIL if bound is None else Status.WARN
        need = "the Normalized reward needs it" if bound is None else f"rewards are scaled to {bound:g}"
        return Check(
            name, status, f"no spec.reference.best ({need}); the reference measures {found:.5g}", found
        )
    line = f"{recorded:.5g} recorded, {found:.5g} measured (standard error {error:.2g})"
    if abs(recorded - found) <= max(error, _CLOSE * _way(task.spec.reference)):
        return Check(name, Status.PASS, line, found)
    better = task.metric.sign * (recorded - found) > 0
    # A better known score (of a leaderboard) may be recorded; a worse one than the reference's is a mistake.
    return Check(name, Status.WARN if better else Status.FAIL, line, found)


def check_size(measured: Measured, counts: Mapping[str, int], reference: TaskReference) -> Check:
    """The splits are large enough to tell scripts apart."""
    errors = dict(measured.errors)
    if not errors:
        return Check(
            "large-enough", Status.WARN, "no bootstrap interval: the splits are too small or too uneven"
        )
    lines = [f"{split} {error:.2g} ({counts[split]:,} rows)" for split, error in errors.items()]
    if counts.get(Split.FINAL) and Split.SELECTION in errors:
        ratio = counts[Split.SELECTION] / counts[Split.FINAL]
        errors[Split.FINAL] = errors[Split.SELECTION] * math.sqrt(ratio)
        lines.append(f"Final about {errors[Split.FINAL]:.2g} ({counts[Split.FINAL]:,} rows, not graded)")
    share = max(errors.values()) / _way(reference)
    line = f"standard error {', '.join(lines)}: at most {share:.1%} of the way from baseline to best"
    status = Status.FAIL if share > _TOO_NOISY else Status.WARN if share > _NOISY else Status.PASS
    return Check("large-enough", status, line)


def _check_shuffled(
    submission: bytes, graded: GraderResult | None, answers: Answers, trial: Trial
) -> Iterator[Check]:
    """The same rows in another order get the same scores."""
    header, *rows = submission.decode("utf-8-sig").splitlines()
    order = hashed_order(len(rows), seed=0, purpose="shuffle")
    shuffled = "\n".join([header, *(rows[place] for place in order)]).encode()
    splits = SHOWN if graded is None else _splits_of(answers)
    before = graded or trial.grade(submission, splits)
    after = trial.grade(shuffled, splits)
    same = before.verdict == after.verdict and all(
        math.isclose(before.scores[split], after.scores.get(split, math.nan), rel_tol=1e-9, abs_tol=1e-12)
        for split in before.scores
    )
    if same:
        yield Check("ids-shuffled", Status.PASS, "rows in another order get the same scores")
    else:
        yield Check("ids-shuffled", Status.FAIL, f"rows in another order: {after.verdict} {after.reason}")


def _number(value: float) -> str:
    """Five digits, and no rest of a rounding error around zero."""
    return f"{0.0 if abs(value) < _ROUNDING else value:.5g}"


def _splits_of(answers: Answers) -> tuple[Split, ...]:
    return tuple(split for split in Split if split in answers.counts())


def _way(reference: TaskReference) -> float:
    """The distance from baseline to best, what scores are measured against."""
    if reference.best is None or reference.best == reference.baseline:
        return max(abs(reference.baseline), 1e-9)
    return abs(reference.best - reference.baseline)

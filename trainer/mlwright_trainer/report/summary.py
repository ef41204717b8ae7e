"""A run in two sentences: what happened, and how it learned; several runs in one."""

from __future__ import annotations

from collections.abc import Sequence

from mlwright_api.trainingrun import TrainingRun, WeightingMode

from mlwright_trainer.report import words
from mlwright_trainer.report.model import Report, RunReport, SeveralRuns, UpdateReport
from mlwright_trainer.report.notes import no_valid_script


def closing_sentence(report: Report) -> str:
    """What a run, or several, came to: the sentence that commands end with."""
    return report.seeds.sentence if isinstance(report, SeveralRuns) else headline(report)


def headline(run: RunReport) -> str:
    """What happened, in a sentence or two."""
    for sentence in no_valid_script(run.state, run.rollouts, run.reasons):
        return sentence
    if run.fresh.difference is not None:
        return run.fresh.difference.sentence
    learned = [update for update in run.per_update if update.published]
    if not learned:
        return "Nothing has been learned yet."
    return (
        f"So far {words.plural(len(learned), 'update')}: {_batches(learned)}. Batches are small and noisy; the "
        "comparison that counts is the one of fresh samples at the end."
    )


def _batches(learned: Sequence[UpdateReport]) -> str:
    first, last = learned[0], learned[-1]
    reward, valid = words.score(first.reward_mean), words.percent(first.valid_fraction)
    if len(learned) == 1:
        return f"mean reward {reward} and valid scripts {valid} in the only batch"
    return (
        f"mean reward {reward} in the first batch and {words.score(last.reward_mean)} in the last, "
        f"valid scripts {valid} and {words.percent(last.valid_fraction)}"
    )


def method(run: RunReport) -> str:
    """How the run learned, in a line."""
    spec = TrainingRun.model_validate(run.settings).spec
    algorithm, collection = spec.algorithm, spec.collection
    weighting = algorithm.duration_weighting.mode
    parts = [
        f"{algorithm.kind}, {collection.mode} collection",
        f"batches of {algorithm.batch_size}"
        if algorithm.batch_size
        else f"windows of {collection.window_seconds:g} s",
        f"learning rate {algorithm.learning_rate:g}",
        f"{spec.prompts.improve_fraction:.0%} improvement prompts",
        f"{spec.reward.score} reward",
        "no duration weights" if weighting is WeightingMode.NONE else f"{weighting} duration weights",
    ]
    return " · ".join(parts)

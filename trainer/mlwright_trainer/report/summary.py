"""A run in two sentences: what happened, and how it learned."""

from __future__ import annotations

from mlwright_api.trainingrun import TrainingRun, WeightingMode

from mlwright_trainer.report import words
from mlwright_trainer.report.model import RunReport


def headline(run: RunReport) -> str:
    """What happened, in a sentence or two."""
    if run.fresh.difference is not None:
        return run.fresh.difference.sentence
    learned = [update for update in run.per_update if update.published]
    if not learned:
        return "Nothing has been learned yet."
    first, last = learned[0], learned[-1]
    return (
        f"So far {words.plural(len(learned), 'update')}: mean reward {words.score(first.reward_mean)} in the first "
        f"batch and {words.score(last.reward_mean)} in the last, valid scripts {words.percent(first.valid_fraction)} "
        f"and {words.percent(last.valid_fraction)}. Batches are small and noisy; the comparison that counts is the "
        "one of fresh samples at the end."
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

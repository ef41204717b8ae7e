"""Presets: what is filled in, what the user wrote, and when neither fits."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.presets import DESIGN_DEFAULTS, PRESET_COVERED, PRESETS, PresetError, resolve
from mlwright_api.trainingrun import (
    Algorithm,
    Collection,
    CollectionMode,
    ExamplesSource,
    FineTuning,
    KlPenalty,
    ModelSource,
    ModelSpec,
    Prompts,
    RewardSpec,
    RunTask,
    Sampling,
    TrainingRunSpec,
    WeightingMode,
)
from pydantic import BaseModel

MODEL = ModelSpec(source=ModelSource(path="model"))
WINDOW = Collection(mode=CollectionMode.WINDOW, window_seconds=30)


def spec(**fields: Any) -> TrainingRunSpec:
    return TrainingRunSpec(**({"tasks": [RunTask(name="churn")], "model": MODEL} | fields))


def at(model: BaseModel, path: str) -> Any:
    for name in path.split("."):
        model = getattr(model, name)
    return model


def test_without_a_preset_the_designs_defaults_are_filled_in() -> None:
    resolved = resolve(spec())
    assert {path: at(resolved, path) for path in DESIGN_DEFAULTS} == DESIGN_DEFAULTS
    assert resolved.algorithm.minibatch_size == 128


def test_the_models_plain_defaults_are_the_designs() -> None:
    """But for the batch size, which depends on the collection mode."""
    unresolved = spec()
    differing = {path for path in DESIGN_DEFAULTS if at(unresolved, path) != DESIGN_DEFAULTS[path]}
    assert differing == {"algorithm.batch_size"}


def test_rl_for_mle_is_the_papers_setting() -> None:
    resolved = resolve(spec(preset="RLforMLE"))
    algorithm, reward = resolved.algorithm, resolved.reward
    assert (algorithm.batch_size, algorithm.minibatch_size, algorithm.epochs) == (128, 128, 1)
    assert (algorithm.learning_rate, algorithm.critic_learning_rate) == (1e-6, 1e-5)
    assert (algorithm.clip_range, algorithm.value_clip_range) == (0.2, 0.5)
    assert (algorithm.kl.coefficient, algorithm.entropy_coefficient) == (0.001, 0.001)
    assert (reward.score, reward.invalid, reward.milestone) == ("Raw", -10, 0.1)
    assert (resolved.prompts.max_prompt_tokens, resolved.sampling.max_tokens) == (1024, 1024)
    assert resolved.prompts.improve_fraction == 0.5


def test_rl_for_mle_weights_by_duration_only_where_the_clock_closes_the_batch() -> None:
    windowed = resolve(spec(preset="RLforMLE", collection=WINDOW))
    assert windowed.algorithm.duration_weighting.mode is WeightingMode.DURATION_AWARE
    assert resolve(spec(preset="RLforMLE")).algorithm.duration_weighting.mode is WeightingMode.NONE
    assert resolve(spec(collection=WINDOW)).algorithm.duration_weighting.mode is WeightingMode.NONE


def test_with_a_window_the_batch_has_no_size() -> None:
    resolved = resolve(spec(collection=WINDOW))
    assert (resolved.algorithm.batch_size, resolved.algorithm.minibatch_size) == (None, None)


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_what_the_user_wrote_wins(preset: str | None) -> None:
    written = spec(
        preset=preset,
        algorithm=Algorithm(
            batch_size=7, learning_rate=0.5, kl=KlPenalty(coefficient=0.0), entropy_coefficient=0
        ),
        prompts=Prompts(improve_fraction=0),
        sampling=Sampling(max_tokens=9),
        reward=RewardSpec(score="Normalized", invalid=-3, milestone=0),
    )
    resolved = resolve(written)
    assert (resolved.algorithm.batch_size, resolved.algorithm.minibatch_size) == (7, 7)
    assert (resolved.algorithm.learning_rate, resolved.algorithm.kl.coefficient) == (0.5, 0)
    assert resolved.algorithm.entropy_coefficient == 0
    assert (resolved.prompts.improve_fraction, resolved.sampling.max_tokens) == (0, 9)
    assert (resolved.reward.score, resolved.reward.invalid, resolved.reward.milestone) == (
        "Normalized",
        -3,
        0,
    )


def test_writing_a_default_is_writing_it() -> None:
    written = spec(preset="RLforMLE", reward=RewardSpec(score="Normalized", invalid=-0.5, milestone=0.05))
    assert resolve(written).reward.invalid == -0.5


def test_the_neighbours_of_a_written_field_are_still_filled_in() -> None:
    resolved = resolve(spec(preset="RLforMLE", reward=RewardSpec(grade_partial=True)))
    assert (resolved.reward.grade_partial, resolved.reward.invalid) == (True, -10)


@pytest.mark.parametrize("preset", [None, *PRESETS])
@pytest.mark.parametrize("collection", [Collection(), WINDOW, Collection(mode=CollectionMode.SYNCHRONOUS)])
def test_resolving_twice_changes_nothing(preset: str | None, collection: Collection) -> None:
    resolved = resolve(spec(preset=preset, collection=collection))
    assert resolve(resolved) == resolved


def test_a_resolved_spec_no_longer_depends_on_the_preset() -> None:
    resolved = resolve(spec(preset="RLforMLE"))
    without = resolved.model_copy(update={"preset": None})
    assert resolve(without).model_dump(exclude={"preset"}) == resolved.model_dump(exclude={"preset"})


def test_what_was_filled_in_counts_as_written() -> None:
    resolved = resolve(spec())
    assert {"batch_size", "minibatch_size", "learning_rate"} <= resolved.algorithm.model_fields_set


def test_a_generator_makes_20_000_examples_and_a_file_is_used_whole() -> None:
    generated = FineTuning(examples=ExamplesSource(generator="sklearn-tabular"))
    from_file = FineTuning(examples=ExamplesSource(path="examples.jsonl"))
    counts = [resolve(spec(fine_tuning=each)).fine_tuning for each in (generated, from_file)]
    assert [each.count for each in counts if each is not None] == [20_000, None]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"algorithm": Algorithm(minibatch_size=129)},
            "algorithm.minibatchSize: must be at most batchSize (128)",
        ),
        (
            {"collection": Collection(max_in_flight=300)},
            "collection.maxInFlight: must be at most algorithm.batchSize x (targetStaleness + 1) = 256, not 300",
        ),
        (
            {"preset": "RLforMLE", "reward": RewardSpec(score="Normalized", invalid=-0.5)},
            "reward: invalid + 7 x milestone must be below -0.1, so that",
        ),
        (
            {"collection": Collection(mode=CollectionMode.SYNCHRONOUS, max_in_flight=129)},
            "collection.maxInFlight: must be at most algorithm.batchSize (128)",
        ),
    ],
)
def test_what_does_not_fit_the_filled_in_values_is_an_error(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(PresetError) as caught:
        resolve(spec(**fields))
    assert str(caught.value).startswith(problem)


def test_every_preset_covers_the_same_fields() -> None:
    for values in PRESETS.values():
        assert set(values) == PRESET_COVERED

"""Fills in what a preset, or the design's defaults, say about fields that the user left out.

The models carry the design's defaults as plain values, so that types stay simple; what counts here is whether
the user *wrote* a field (pydantic's `model_fields_set`). PRESET_COVERED lists the fields on which presets may
differ: a CRD must give them no schema default, or the API server would fill them in before a preset could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from mlwright_api.base import ApiModel
from mlwright_api.errors import ApiError
from mlwright_api.explanations import Explanation, dotted, explain
from mlwright_api.trainingrun import DEFAULT_BATCH_SIZE, CollectionMode, TrainingRunSpec, WeightingMode
from mlwright_api.violations import Violation

Values = Mapping[str, Any]
"""Values by dotted path of attribute names below TrainingRun.spec."""

DESIGN_DEFAULTS: Values = MappingProxyType(
    {
        "algorithm.batch_size": DEFAULT_BATCH_SIZE,
        "algorithm.epochs": 1,
        "algorithm.learning_rate": 1e-6,
        "algorithm.critic_learning_rate": 1e-5,
        "algorithm.clip_range": 0.2,
        "algorithm.value_clip_range": None,
        "algorithm.kl.coefficient": 0.001,
        "algorithm.entropy_coefficient": 0.0,
        "algorithm.duration_weighting.mode": WeightingMode.NONE,
        "prompts.improve_fraction": 0.5,
        "prompts.max_prompt_tokens": 1024,
        "sampling.max_tokens": 1024,
        "reward.score": "Normalized",
        "reward.invalid": -0.5,
        "reward.milestone": 0.05,
    }
)

# arXiv 2509.01684; what the paper leaves open is taken from the open follow-up (reference/algorithms.md, A).
RL_FOR_MLE: Values = MappingProxyType(
    {
        **DESIGN_DEFAULTS,
        "algorithm.value_clip_range": 0.5,
        "algorithm.entropy_coefficient": 0.001,
        "reward.score": "Raw",
        "reward.invalid": -10.0,
        "reward.milestone": 0.1,
    }
)

PRESETS: Mapping[str, Values] = MappingProxyType({"RLforMLE": RL_FOR_MLE})
PRESET_COVERED: frozenset[str] = frozenset(DESIGN_DEFAULTS)
GENERATED_EXAMPLES = 20_000


def preset_values(spec: TrainingRunSpec) -> Values:
    """What `spec.preset` says about covered fields, given the collection mode."""
    values = dict(DESIGN_DEFAULTS if spec.preset is None else PRESETS[spec.preset])
    if spec.collection.mode is CollectionMode.WINDOW:
        del values["algorithm.batch_size"]  # The clock closes the batch.
        if spec.preset == "RLforMLE":
            # Weights belong to the paper's setting; where nothing is cut off they would be a bias.
            values["algorithm.duration_weighting.mode"] = WeightingMode.DURATION_AWARE
    return values


def resolve(spec: TrainingRunSpec) -> TrainingRunSpec:
    """Return `spec` with every default that depends on a preset or on another field filled in.

    What the user wrote wins; PresetError where it does not fit what was filled in (the loader reports that as any
    other problem). Resolving twice changes nothing. In a resolved spec `algorithm.batch_size` and
    `minibatch_size` are numbers except with Window, where None means the whole batch.
    """
    resolved = spec
    for path, value in preset_values(spec).items():
        resolved = _fill(resolved, path.split("."), value)
    algorithm = resolved.algorithm
    if algorithm.minibatch_size is None and algorithm.batch_size is not None:
        resolved = _fill(resolved, ["algorithm", "minibatch_size"], algorithm.batch_size)
    if spec.fine_tuning is not None and spec.fine_tuning.examples.generator is not None:
        resolved = _fill(resolved, ["fine_tuning", "count"], GENERATED_EXAMPLES)
    filled = resolved.model_dump(exclude_unset=True, by_alias=True)
    try:
        return TrainingRunSpec.model_validate(filled)
    except ValidationError as error:
        raise PresetError(explain(error, TrainingRunSpec, filled)) from None


class PresetError(ApiError):
    """A spec that a preset's (or a default's) values make inconsistent."""

    def __init__(self, explanations: Iterable[Explanation]) -> None:
        self.violations = tuple(Violation(dotted(each.path), each.message) for each in explanations)
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in self.violations))


Model = TypeVar("Model", bound=ApiModel)


def _fill(model: Model, path: list[str], value: Any) -> Model:
    """`model` with the field at `path` set to `value`, unless it was set to something already."""
    name, *rest = path
    current = getattr(model, name)
    if rest:
        return model.model_copy(update={name: _fill(current, rest, value)})
    written = name in model.model_fields_set and current is not None
    return model if written else model.model_copy(update={name: value})

"""What travels in annotations: all that the pod needs, nothing that it must not know, and what does not fit is told."""

from __future__ import annotations

import json

import pytest
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import FILES_BYTES, RolloutSpec
from mlwright_operator.sandbox.requests import (
    ANNOTATIONS_BYTES,
    sandbox_requests,
    task_check_requests,
    too_large,
)
from sandbox_pods import ROLLOUT, TASK, changed

API_BYTES = 256 * 1024
"""TotalAnnotationSizeLimitB of the API server: keys and values together."""


def rollout(path: str = "seed", value: object = 7) -> RolloutSpec:
    return RolloutSpec.model_validate(changed(ROLLOUT, path, value))


TASK_SPEC = MLTaskSpec.model_validate(TASK)


def test_the_runner_is_told_what_to_run_and_what_it_may_use() -> None:
    assert json.loads(sandbox_requests(rollout(), TASK_SPEC)["mlwright.dev/job"]) == {
        "entrypoint": "script.py",
        "seed": 7,
        "timeoutSeconds": 60,
        "memoryBytes": 1024**3,
        "workBytes": 256 * 1024**2,
        "submission": "answer.csv",
        "instrument": True,
    }


def test_milestones_can_be_switched_off() -> None:
    asked = sandbox_requests(rollout("instrumentation", "None"), TASK_SPEC)["mlwright.dev/job"]
    assert json.loads(asked)["instrument"] is False


@pytest.mark.parametrize("text", ["", "print('é')\n", "\0\x1f\u2028", '"}]', "\\u0000", "$(HOME)", "\r\n"])
def test_a_script_arrives_as_it_was_written(text: str) -> None:
    asked = sandbox_requests(rollout("files.0.content", text), TASK_SPEC)["mlwright.dev/files"]
    assert json.loads(asked) == [{"path": "script.py", "content": text}]


def test_the_grader_is_told_the_task_without_its_prose_and_without_its_data() -> None:
    told = json.loads(sandbox_requests(rollout(), TASK_SPEC)["mlwright.dev/task"])
    assert told["description"] == "-"
    assert "data" not in told
    assert told["submission"]["targetColumns"] == ["quality"]
    assert MLTaskSpec.model_validate(told).metric == TASK_SPEC.metric


def test_no_annotation_says_where_answers_are() -> None:
    everything = "".join(sandbox_requests(rollout(), TASK_SPEC).values())
    assert "sealed" not in everything
    assert "wine/private" not in everything


def test_a_check_has_the_task_and_no_script() -> None:
    asked = task_check_requests(TASK_SPEC)
    assert asked == {"mlwright.dev/task": sandbox_requests(rollout(), TASK_SPEC)["mlwright.dev/task"]}


def test_the_largest_script_of_ordinary_text_fits() -> None:
    line = "model = Pipeline([('scale', StandardScaler())])  # é\n"
    text = (line * FILES_BYTES)[: FILES_BYTES - FILES_BYTES // len(line) - 1]
    spec = rollout("files.0.content", text)
    assert len(text.encode()) > 0.97 * FILES_BYTES
    assert too_large(sandbox_requests(spec, TASK_SPEC)) is None


@pytest.mark.parametrize("character", ["\0", "\x1f"])
def test_a_script_that_grows_too_large_as_json_is_told_so(character: str) -> None:
    problem = too_large(sandbox_requests(rollout("files.0.content", character * FILES_BYTES), TASK_SPEC))
    assert problem is not None
    assert problem.startswith("spec.files of the rollout is too large for a pod: ")
    assert str(ANNOTATIONS_BYTES) in problem


def test_a_task_whose_columns_do_not_fit_is_told_so() -> None:
    columns = [f"{n:04}{'é' * 124}" for n in range(1024)]
    wide = MLTaskSpec.model_validate(changed(TASK, "submission.targetColumns", columns))
    assert (too_large(task_check_requests(wide)) or "").startswith("spec of the task is too large")


@pytest.mark.parametrize("spare", [0, 1])
def test_what_fits_leaves_room_below_the_api_servers_limit(spare: int) -> None:
    key = "mlwright.dev/files"
    annotations = {key: "x" * (ANNOTATIONS_BYTES - len(key) + spare)}
    assert (too_large(annotations) is None) == (spare == 0)
    assert ANNOTATIONS_BYTES + 8 * 1024 < API_BYTES

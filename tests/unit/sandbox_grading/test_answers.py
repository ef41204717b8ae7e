"""A task's own files: what is wrong with them is said of the task, never of a submission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionSpec, TaskReference
from mlwright_sandbox.answers import load_answers
from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError

MakeTask = Callable[..., TaskMounts]
HEADER = "id,target,split"


def spec_of(metric: str, kind: str, **parameters: Any) -> MLTaskSpec:
    return MLTaskSpec(
        title="task",
        description="-",
        metric=MetricSpec(name=metric, **parameters),
        submission=SubmissionSpec(target_columns=["target"], kind=kind),
        reference=TaskReference(baseline=0),
    )


def complaint(task: TaskMounts, *, sealed: bool = True) -> str:
    with pytest.raises(AnswersError) as caught:
        load_answers(task, sealed=sealed)
    return str(caught.value)


def test_answers_are_aligned_with_the_sample_whatever_their_order(make_task: MakeTask) -> None:
    task = make_task(private=[HEADER, "4,40,Selection", "1,10,Reward", "3,30,Selection", "2,20,Reward"])
    answers = load_answers(task, sealed=False)
    assert answers.expected.identifiers.ids == ("1", "2", "3", "4", "5", "6")
    reward = answers.splits[Split.REWARD]
    assert dict(zip(reward.rows.tolist(), reward.columns["target"].tolist(), strict=True)) == {
        0: 10.0,
        1: 20.0,
    }


def test_columns_that_answers_have_besides_do_not_matter(make_task: MakeTask) -> None:
    task = make_task(private=["usage,id,target,split", "x,1,1,Reward", "y,2,2,Selection"], sealed=None)
    assert load_answers(task, sealed=False).splits[Split.REWARD].columns.keys() == {"target"}


def test_all_three_splits_are_there_when_final_is_asked_for(make_task: MakeTask) -> None:
    assert load_answers(make_task(), sealed=True).splits.keys() == set(Split)


WRONG: list[tuple[str, dict[str, Sequence[str] | None], str]] = [
    (
        "a sample without rows",
        {"sample": ["id,target"]},
        "public/sample_submission.csv has a header and no rows",
    ),
    (
        "a sample with other columns",
        {"sample": ["id,y", "1,0"]},
        "public/sample_submission.csv has no column 'target'",
    ),
    ("a sample with an id twice", {"sample": ["id,target", "1,0", "1,0"]}, "has an id more than once"),
    ("a sample that is not valid", {"sample": ["id,target", "1,x"]}, "'target' is 'x', not a number"),
    ("no split", {"private": ["id,target", "1,1"]}, "private/answers.csv has no column 'split'"),
    ("an unknown split", {"private": [HEADER, "1,1,Train"]}, "split is 'Train', not Reward or Selection"),
    (
        "Final among the private",
        {"private": [HEADER, "1,1,Final"]},
        "split is 'Final', not Reward or Selection",
    ),
    (
        "Reward among the sealed",
        {"sealed": [HEADER, "5,1,Reward"]},
        "sealed/answers.csv: split is 'Reward', not Final",
    ),
    (
        "an id that the sample lacks",
        {"private": [HEADER, "9,1,Reward"]},
        "id '9' is not in public/sample_submission",
    ),
    (
        "an id twice",
        {"private": [HEADER, "1,1,Reward", "1,2,Selection"]},
        "private/answers.csv has an id more than",
    ),
    ("an id in two files", {"sealed": [HEADER, "1,1,Final"]}, "an id is in private and in sealed answers"),
    ("an id without answer", {"sealed": [HEADER, "5,5,Final"]}, "id '6' has no answer"),
    (
        "an answer that is no number",
        {"private": [HEADER, "1,?,Reward"]},
        "private/answers.csv: line 2: 'target' is '?'",
    ),
]


@pytest.mark.parametrize(
    ("files", "expected"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG]
)
def test_what_is_wrong_with_a_task_is_said_in_one_line(
    make_task: MakeTask, files: dict[str, Any], expected: str
) -> None:
    found = complaint(make_task(**files))
    assert expected in found
    assert "\n" not in found


def test_an_id_without_answer_may_be_sealed(make_task: MakeTask) -> None:
    assert load_answers(make_task(), sealed=False).splits.keys() == {Split.REWARD, Split.SELECTION}


def test_a_missing_file_is_named(make_task: MakeTask) -> None:
    task = make_task()
    (task.private / "answers.csv").unlink()
    assert complaint(task) == "private/answers.csv cannot be read: No such file or directory"


def test_final_of_a_task_without_sealed_answers_cannot_be_asked_for(make_task: MakeTask) -> None:
    assert (
        complaint(make_task(sealed=None))
        == "task task has no sealed answers, so nothing can be graded on Final"
    )


def test_an_unknown_metric_is_the_tasks_fault(make_task: MakeTask) -> None:
    task = make_task(spec=spec_of("profit", "Values", direction="Maximize"))
    assert complaint(task) == "metric profit is not in the catalogue, and the task has no grade.py"


def test_a_metric_that_cannot_score_the_kind_is_the_tasks_fault(make_task: MakeTask) -> None:
    assert (
        complaint(make_task(spec=spec_of("rmse", "Labels")))
        == "metric rmse scores Values, not Labels (submission.kind)"
    )


def test_a_direction_against_the_catalogue_is_the_tasks_fault(make_task: MakeTask) -> None:
    assert "has the direction Minimize" in complaint(
        make_task(spec=spec_of("rmse", "Values", direction="Maximize"))
    )


def test_answers_on_which_the_metric_is_not_defined_are_found_at_once_with_their_split(
    make_task: MakeTask,
) -> None:
    task = make_task(
        spec=spec_of("roc_auc", "Probabilities"),
        private=[HEADER, "1,1,Reward", "2,0,Reward", "3,1,Selection", "4,1,Selection"],
    )
    expected = "Selection answers: the answers have one class only, for which the metric is not defined"
    assert complaint(task, sealed=False) == expected


def test_labels_are_numeric_only_if_all_of_a_task_are(make_task: MakeTask) -> None:
    mixed = make_task(
        spec=spec_of("accuracy", "Labels"),
        private=[HEADER, "1,1,Reward", "2,1.0,Reward", "3,x,Selection", "4,01,Selection"],
        sample=["id,target", "1,x", "2,x", "3,x", "4,x", "5,x", "6,x"],
    )
    vocabulary = load_answers(mixed, sealed=False).expected.vocabularies["target"]
    assert not vocabulary.numeric
    assert vocabulary.labels == {"1", "1.0", "x", "01"}

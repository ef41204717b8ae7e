"""Loading, dumping and digesting manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_api.digests import spec_digest
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import dump_manifest, load_manifests, parse_manifests
from mlwright_api.mltask import MLTask
from mlwright_api.trainingrun import TrainingRun

TASK = """\
apiVersion: mlwright.dev/v1alpha1
kind: MLTask
metadata:
  name: churn
spec:
  title: Who leaves?
  description: |
    # Who leaves?
      Predict it.
  metric: {name: roc_auc}
  submission: {targetColumns: [churn], kind: Probabilities}
  reference: {baseline: 0.5}
"""
RUN = """\
apiVersion: mlwright.dev/v1alpha1
kind: TrainingRun
metadata: {name: run}
spec:
  tasks: [{name: churn}]
  model: {source: {path: model}}
  algorithm:
    learningRate: 3e-4
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, source="run.yaml")
    return str(caught.value).splitlines()


def test_a_file_may_hold_several_documents(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(f"{TASK}---\n{RUN}")
    task, run = load_manifests(file)
    assert isinstance(task, MLTask)
    assert isinstance(run, TrainingRun)
    assert task.spec.description == "# Who leaves?\n  Predict it.\n"
    assert run.spec.algorithm.learning_rate == 3e-4


def test_a_problem_names_file_document_line_field_and_what_is_allowed() -> None:
    text = f"{TASK}---\n{RUN.replace('3e-4', '-1')}"
    assert problems(text) == [
        "run.yaml, document 2, line 21: spec.algorithm.learningRate: must be greater than 0, not -1"
    ]


def test_all_problems_of_all_documents_come_at_once_a_line_each() -> None:
    text = f"{TASK.replace('roc_auc', 'auc_roc').replace('0.5', 'x')}---\n{RUN.replace('tasks', 'task')}"
    found = problems(text)
    assert [line.split(": ")[1] for line in found] == ["spec.reference.baseline", "spec.tasks", "spec.task"]
    assert found[2].startswith(
        "run.yaml, document 2, line 18: spec.task: unknown field 'task': did you mean tasks?"
    )


def test_an_unknown_metric_comes_with_the_nearest_name() -> None:
    (line,) = problems(TASK.replace("roc_auc", "rocauc"))
    assert "spec.metric.name: unknown metric 'rocauc': did you mean roc_auc?" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "run.yaml: is empty: expected MLTask, TrainingRun, Rollout of mlwright.dev/v1alpha1"),
        ("# only a comment\n---\n", "run.yaml: is empty: expected MLTask, TrainingRun, Rollout"),
        (
            "just text",
            "run.yaml, document 1, line 1: must be a mapping with apiVersion, kind, metadata and spec",
        ),
        ("- a\n- b", "run.yaml, document 1, line 1: must be a mapping"),
        (RUN.replace("kind: TrainingRun\n", ""), "kind: is required: one of MLTask, TrainingRun, Rollout"),
        (
            RUN.replace("TrainingRun", "Trainingrun"),
            "line 2: kind: unknown kind 'Trainingrun': did you mean Train",
        ),
        (RUN.replace("TrainingRun", "[x]"), "line 2: kind: unknown kind \"['x']\": allowed are MLTask"),
        (RUN.replace("v1alpha1", "v1"), "apiVersion: must be mlwright.dev/v1alpha1, not 'mlwright.dev/v1'"),
        (
            RUN.replace("apiVersion: mlwright.dev/v1alpha1\n", ""),
            "apiVersion: is required: mlwright.dev/v1alpha1",
        ),
        ("a: [", "run.yaml, document 1, line 1: while parsing a flow node"),
        ("a: 1\na: 2", "run.yaml, document 1, line 2: duplicate key 'a'"),
    ],
)
def test_what_is_no_manifest_is_refused_with_one_line(text: str, expected: str) -> None:
    (line,) = problems(text)
    assert expected in line


def test_apiversion_and_kind_are_checked_before_everything_else() -> None:
    found = problems("apiVersion: x\nkind: y\nspec: {wrong: 1}")
    assert [line.split(": ")[1] for line in found] == ["apiVersion", "kind"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such file or directory"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.symlink_to(path), "too many levels of symbolic links"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem_like_any_other(tmp_path: Path, make, message: str) -> None:  # type: ignore[no-untyped-def]  # three kinds of callable
    path = tmp_path / "run.yaml"
    make(path)
    with pytest.raises(ManifestError) as caught:
        load_manifests(path)
    assert str(caught.value) == f"{path}: {message}"


def test_names_are_camel_case_only_as_on_an_api_server() -> None:
    (line,) = problems(RUN.replace("learningRate", "learning_rate"))
    assert "spec.algorithm.learning_rate: unknown field 'learning_rate': did you mean learningRate?" in line


def test_what_a_preset_fills_in_is_checked_with_what_was_written() -> None:
    (line,) = problems(RUN.replace("learningRate: 3e-4", "minibatchSize: 500"))
    assert line == (
        "run.yaml, document 1, line 8: spec.algorithm.minibatchSize: must be at most batchSize (128), not 500"
    )


def test_an_object_read_back_from_an_api_server_loads() -> None:
    added = """\
metadata:
  name: run
  namespace: team-a
  uid: 0b4b6c3e-0000-4000-8000-000000000000
  resourceVersion: "4711"
  generation: 3
  creationTimestamp: "2026-01-31T12:00:00Z"
  managedFields: [{manager: kubectl, operation: Apply}]
  ownerReferences: [{apiVersion: v1, kind: Namespace, name: x, uid: y}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
status:
  conditions: [{type: Ready, status: "True", reason: Up, lastTransitionTime: "2026-01-31T12:00:00Z"}]
"""
    (run,) = parse_manifests(RUN.replace("metadata: {name: run}\n", added), source="run.yaml")
    assert run.metadata.namespace == "team-a"


def test_dump_gives_back_an_equal_object() -> None:
    for text in (TASK, RUN):
        (manifest,) = parse_manifests(text, source="a")
        assert parse_manifests(dump_manifest(manifest), source="b") == [manifest]


def test_dump_is_readable() -> None:
    (task,) = parse_manifests(TASK, source="a")
    dumped = dump_manifest(task)
    assert "  description: |\n    # Who leaves?\n      Predict it.\n" in dumped
    assert dumped.startswith("apiVersion: mlwright.dev/v1alpha1\nkind: MLTask\nmetadata:\n  name: churn\n")


def test_dump_quotes_what_older_readers_would_take_for_something_else() -> None:
    (task,) = parse_manifests(TASK.replace("[churn]", "['yes']"), source="a")
    assert '- "yes"' in dump_manifest(task)
    (run,) = parse_manifests(RUN.replace("3e-4", "1e-6"), source="a")
    assert "learningRate: 1.0e-06" in dump_manifest(run)


def test_a_digest_depends_on_the_spec_and_on_nothing_else() -> None:
    def digest(text: str) -> str:
        (task,) = parse_manifests(text, source="a")
        assert isinstance(task, MLTask)
        return spec_digest(task.spec)

    same = [
        TASK,
        TASK.replace("name: churn", "name: other"),
        TASK.replace("  reference", "  limits: {timeoutSeconds: 300}\n  reference"),
        TASK.replace("  reference", "  limits: {timeoutSeconds: 300.0, gpus: 0}\n  reference"),
        TASK.replace("0.5}", "5e-1, best: null}"),
    ]
    other = [TASK.replace("0.5", "0.51"), TASK.replace("Who leaves?\n  d", "Who?\n  d")]
    assert len({digest(text) for text in same}) == 1
    assert len({digest(text) for text in [TASK, *other]}) == 3
    assert digest(TASK).startswith("sha256:")
    assert len(digest(TASK)) == len("sha256:") + 64


def test_a_digest_never_changes_between_releases() -> None:
    (task,) = parse_manifests(TASK, source="a")
    assert isinstance(task, MLTask)
    assert spec_digest(task.spec) == "sha256:c3d3d18bfee5394d4a3f10d43749bc51f7742a12ced2bb28ced82b2262ef2458"


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    (run,) = parse_manifests(RUN.replace("learningRate: 3e-4", "{updates: 4.0, epochs: 1e1}"), source="a")
    assert isinstance(run, TrainingRun)
    assert (run.spec.algorithm.updates, run.spec.algorithm.epochs) == (4, 10)


def test_a_models_configuration_keeps_its_types() -> None:
    scratch = "{scratch: {config: {model_type: qwen2, rope_theta: 10000.0, hidden_size: 8}}}"
    text = RUN.replace("{path: model}", scratch) + "  fineTuning: {examples: {generator: x}}\n"
    (run,) = parse_manifests(text, source="a")
    (again,) = parse_manifests(dump_manifest(run), source="b")
    for each in (run, again):
        assert isinstance(each, TrainingRun)
        assert each.spec.model.source.scratch is not None
        config = each.spec.model.source.scratch.config
        assert [type(config[name]) for name in ("rope_theta", "hidden_size")] == [float, int]


def test_a_problem_inside_one_form_of_a_field_hides_the_other_forms() -> None:
    (line,) = problems(RUN.replace("{path: model}}", "{path: model}, lora: {targetModules: [q, 1]}}"))
    assert "spec.model.lora.targetModules[1]: must be text, not 1" in line

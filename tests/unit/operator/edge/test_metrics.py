"""Metrics: names that stay, labels with few values, and a page that lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_operator.actions import Kind
from mlwright_operator.edge.metrics import STAGES, Metrics

PAGE = Path(__file__).parents[4] / "docs/reference/operator-metrics.md"


def text(metrics: Metrics) -> str:
    return metrics.exposition().decode()


def names(metrics: Metrics) -> set[str]:
    return {line.split()[2] for line in text(metrics).splitlines() if line.startswith("# TYPE mlwright")}


def test_requests_are_counted_by_verb_and_code() -> None:
    metrics = Metrics()
    metrics.request("apply", 201)
    metrics.request("apply", 201)
    metrics.request("apply", 0)
    assert 'mlwright_operator_api_requests_total{code="201",verb="apply"} 2.0' in text(metrics)
    assert 'mlwright_operator_api_requests_total{code="0",verb="apply"} 1.0' in text(metrics)


def test_live_objects_are_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.objects({Kind.ROLLOUT: 3, Kind.JOB: 2})
    metrics.objects({Kind.ROLLOUT: 4, Kind.JOB: 0})
    assert 'mlwright_live_objects{kind="Rollout"} 4.0' in text(metrics)
    assert 'mlwright_live_objects{kind="Job"} 0.0' in text(metrics)


def test_two_operators_in_one_process_do_not_share_metrics() -> None:
    first, second = Metrics(), Metrics()
    first.failure("pass")
    assert 'mlwright_operator_errors_total{what="pass"} 1.0' in text(first)
    assert 'what="pass"' not in text(second)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_a_rollout_has_a_histogram(stage: str) -> None:
    assert f"mlwright_rollout_{stage}_seconds" in names(Metrics())


def test_a_finished_rollout_is_counted_and_its_stages_are_measured() -> None:
    metrics = Metrics()
    seconds = RolloutSeconds(queued=1, starting=4, execution=9, grading=0)
    metrics.rollout_finished(RolloutStatus(attempt=1, outcome=Outcome.TIMEOUT, seconds=seconds))
    assert 'mlwright_rollouts_finished_total{outcome="Timeout"} 1.0' in text(metrics)
    assert "mlwright_rollout_execution_seconds_sum 9.0" in text(metrics)
    assert "mlwright_rollout_grading_seconds_count 0.0" in text(metrics)


def test_the_page_lists_exactly_the_metrics_that_there_are() -> None:
    listed = set(re.findall(r"^\| `(mlwright_[a-z_]+)", PAGE.read_text(), flags=re.MULTILINE))
    assert listed == {name for name in names(Metrics()) if not name.endswith("_created")}


def test_a_success_leaves_its_time() -> None:
    metrics = Metrics()
    assert "mlwright_operator_last_successful_pass_timestamp_seconds 0.0" in text(metrics)
    metrics.pass_succeeded()
    assert "mlwright_operator_last_successful_pass_timestamp_seconds 0.0" not in text(metrics)
